"""The policies by name, and the one line that says which one and how: ``specon:alpha=0.01+flowcon``.

The imports below are the only list of policies. A policy that is imported here as itself can be named on the command
line, imported from ``controllers.policies`` and ``hera_specon``, is held to the properties that hold for every policy,
and must be in the tables of docs/reference/policies.md.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controllers.core.actions import Place, Suspend
from controllers.core.policy import Policy
from controllers.policies.ahead import Ahead as Ahead
from controllers.policies.cbalancer import CBalancer as CBalancer
from controllers.policies.comparison.clairvoyant import LongestRemaining as LongestRemaining
from controllers.policies.comparison.clairvoyant import ShortestRemaining as ShortestRemaining
from controllers.policies.comparison.default_scheduler import Default as Default
from controllers.policies.comparison.default_scheduler import LeastUsed as LeastUsed
from controllers.policies.comparison.gandiva import Gandiva as Gandiva
from controllers.policies.comparison.gangs import GangFifo as GangFifo
from controllers.policies.comparison.gangs import Volcano as Volcano
from controllers.policies.comparison.textbook import Edf as Edf
from controllers.policies.comparison.textbook import FairShare as FairShare
from controllers.policies.comparison.textbook import Fifo as Fifo
from controllers.policies.deadline import Deadline as Deadline
from controllers.policies.dqoes import DQoES as DQoES
from controllers.policies.dragon import Dragon as Dragon
from controllers.policies.flowcon import FlowCon as FlowCon
from controllers.policies.flowcon2 import FlowCon2 as FlowCon2
from controllers.policies.kais import Kais as Kais
from controllers.policies.kit.settings import (
    ParameterInfo,
    PolicyError,
    PolicyParameterError,
    PolicySettings,
    suggestion,
)
from controllers.policies.optuna_pruners import OptunaPruner as OptunaPruner
from controllers.policies.population import Population as Population
from controllers.policies.procon import ProCon as ProCon
from controllers.policies.promote import Promote as Promote
from controllers.policies.specon import SpeCon as SpeCon
from controllers.policies.tradl import Tradl as Tradl
from controllers.policies.wrappers.stacked import Stacked
from controllers.policies.wrappers.wrapper import Wrapper, parts

POLICIES: Final[dict[str, type[PolicySettings]]] = {
    kind.name: kind
    for kind in sorted(
        (
            value
            for value in list(globals().values())
            if isinstance(value, type) and issubclass(value, PolicySettings) and value is not PolicySettings
        ),
        key=lambda kind: kind.name,
    )
}
"""Every policy by the name that people type, sorted: what is imported above."""

# A "+" before a digit belongs to a number such as 1e+3.
_BETWEEN_POLICIES = re.compile(r"\+(?!\d)")


class UnknownPolicyError(PolicyError):
    """No policy has that name."""


class PolicyOrderError(PolicyError):
    """Two policies would undo each other's actions in this order."""


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    """What people are told of a policy; ``rules`` says what it is made of (placement, shares, moves).

    ``most_moves`` is how often it moves one trial at most, None where there is no limit.
    """

    name: str
    summary: str
    source: str
    rules: Mapping[str, str]
    most_moves: int | None
    parameters: tuple[ParameterInfo, ...]


def describe() -> list[PolicyInfo]:
    """Return every policy that can be named, sorted."""
    return [
        PolicyInfo(name, kind.summary, kind.source, kind.rules(), kind.most_moves, kind.parameters())
        for name, kind in POLICIES.items()
    ]


def parse_policy(spec: str) -> Policy[Any]:
    """Return the policy that ``spec`` names: ``NAME[:PARAMETER=VALUE,...][+NAME...]``.

    Raises:
        UnknownPolicyError: a name is not that of a policy, or comes twice.
        PolicyOrderError: a policy that suspends comes after one that places.
        PolicyParameterError: a parameter is unknown, given twice, without a value, or out of bounds.
    """
    parts = [_parse_one(part.strip()) for part in _BETWEEN_POLICIES.split(spec)]
    names = [policy.name for policy in parts]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        message = f"policy {repeated[0]!r} is named twice in {spec!r}"
        raise UnknownPolicyError(message)
    for place, policy in enumerate(parts):
        earlier = next((before.name for before in parts[:place] if Place in before.needs), None)
        # Each would undo what the other did, again and again: the one before never learns what this one holds back.
        if Suspend in policy.needs and earlier is not None:
            message = f"in {spec!r}, {earlier} would start again what {policy.name} suspends; put {policy.name} first"
            raise PolicyOrderError(message)
    return parts[0] if len(parts) == 1 else Stacked(policies=tuple(parts))


def policy_spec(policy: Policy[Any]) -> str:
    """Return the line that ``parse_policy`` turns into ``policy``; parameters at their defaults are left out.

    Raises:
        UnknownPolicyError: ``policy`` is of a kind that has no name here.
    """
    return Wrapper.separator.join(_spec_of(part) for part in parts(policy))


def spec_or_name(policy: Policy[Any]) -> str:
    """Return the line that ``parse_policy`` turns into ``policy``, or its name where it is of a kind without a line."""
    try:
        return policy_spec(policy)
    except UnknownPolicyError:
        return policy.name


def _spec_of(policy: Policy[Any]) -> str:
    if not isinstance(policy, PolicySettings):
        message = f"{policy!r} is not a policy with a name; the names are {', '.join(POLICIES)}"
        raise UnknownPolicyError(message)
    changed: list[str] = []
    for parameter in policy.parameters():
        value = getattr(policy, parameter.name)
        if value != parameter.default:
            text = str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")
            changed.append(f"{parameter.name}={text}")
    return f"{policy.name}:{','.join(changed)}" if changed else policy.name


def _parse_one(part: str) -> Any:  # noqa: ANN401 - each policy has its own state
    name, _, settings = part.partition(":")
    name = name.strip()
    if name not in POLICIES:
        message = f"unknown policy {name!r}{suggestion(name, POLICIES)}"
        raise UnknownPolicyError(message)
    return POLICIES[name](**_parameters(name, settings))


def _parameters(policy: str, settings: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for setting in filter(None, (setting.strip() for setting in settings.split(","))):
        name, equals, value = (word.strip() for word in setting.partition("="))
        if not equals or not value:
            message = f"{policy}: {setting!r} has no value; write {name}=VALUE"
            raise PolicyParameterError(message)
        if name in parameters:
            message = f"{policy}: {name} is given twice, as {parameters[name]} and {value}"
            raise PolicyParameterError(message)
        parameters[name] = value
    return parameters
