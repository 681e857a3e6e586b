"""The policies by name, and the one line that says which one and how: ``specon:alpha=0.01+flowcon``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controllers.core.errors import SpeconError
from controllers.core.policy import Policy
from controllers.policies.cbalancer.policy import CBalancer
from controllers.policies.comparison.default import Default
from controllers.policies.comparison.edf import Edf
from controllers.policies.comparison.fair_share import FairShare
from controllers.policies.comparison.fifo import Fifo
from controllers.policies.comparison.gandiva import Gandiva
from controllers.policies.comparison.least_used import LeastUsed
from controllers.policies.comparison.longest_remaining import LongestRemaining
from controllers.policies.comparison.shortest_remaining import ShortestRemaining
from controllers.policies.deadline.policy import Deadline
from controllers.policies.dqoes.policy import DQoES
from controllers.policies.flowcon.policy import FlowCon
from controllers.policies.flowcon2.policy import FlowCon2
from controllers.policies.kit.settings import ParameterInfo, PolicyParameterError, PolicySettings, suggestion
from controllers.policies.procon import ProCon
from controllers.policies.specon.policy import SpeCon
from controllers.policies.tradl import Tradl
from controllers.policies.wrappers.guarded import Guarded
from controllers.policies.wrappers.pinned import Pinned
from controllers.policies.wrappers.stacked import Stacked

_ALL = (
    CBalancer,
    Deadline,
    Default,
    DQoES,
    Edf,
    FairShare,
    Fifo,
    FlowCon,
    FlowCon2,
    Gandiva,
    LeastUsed,
    LongestRemaining,
    ProCon,
    ShortestRemaining,
    SpeCon,
    Tradl,
)
POLICIES: dict[str, type[PolicySettings]] = {policy.name: policy for policy in _ALL}

# A "+" before a digit belongs to a number such as 1e+3.
_BETWEEN_POLICIES = re.compile(r"\+(?!\d)")


class UnknownPolicyError(SpeconError, ValueError):
    """No policy has that name."""


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    """What people are told of a policy; ``rules`` says what it is made of (placement, shares, moves)."""

    name: str
    summary: str
    source: str
    rules: Mapping[str, str]
    parameters: tuple[ParameterInfo, ...]


def describe() -> list[PolicyInfo]:
    """Return every policy that can be named, sorted."""
    return [
        PolicyInfo(name, policy.summary, policy.source, policy.rules(), policy.parameters())
        for name, policy in sorted(POLICIES.items())
    ]


def parse_policy(spec: str) -> Policy[Any]:
    """Return the policy that ``spec`` names: ``NAME[:PARAMETER=VALUE,...][+NAME...]``.

    Raises:
        UnknownPolicyError: a name is not that of a policy, or comes twice.
        PolicyParameterError: a parameter is unknown, given twice, without a value, or out of bounds.
    """
    parts = [_parse_one(part.strip()) for part in _BETWEEN_POLICIES.split(spec)]
    names = [policy.name for policy in parts]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        message = f"policy {repeated[0]!r} is named twice in {spec!r}"
        raise UnknownPolicyError(message)
    return parts[0] if len(parts) == 1 else Stacked(policies=tuple(parts))


def policy_spec(policy: Policy[Any]) -> str:
    """Return the line that ``parse_policy`` turns into ``policy``; parameters at their defaults are left out.

    Raises:
        UnknownPolicyError: ``policy`` is of a kind that has no name here.
    """
    if isinstance(policy, Guarded | Pinned):
        return policy_spec(policy.policy)
    if isinstance(policy, Stacked):
        return Stacked.separator.join(policy_spec(part) for part in policy.policies)
    if not isinstance(policy, PolicySettings):
        message = f"not a named policy: {policy!r}"
        raise UnknownPolicyError(message)
    return _spec_of(policy)


def _spec_of(policy: PolicySettings) -> str:
    changed = [
        f"{parameter.name}={_written(getattr(policy, parameter.name))}"
        for parameter in policy.parameters()
        if getattr(policy, parameter.name) != parameter.default
    ]
    return f"{policy.name}:{','.join(changed)}" if changed else policy.name


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).removesuffix(".0")


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
