"""The one place where an engine is put together, whatever world it drives."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from controllers.core.actions import Action, Resize
from controllers.core.earlier import NOTHING_EARLIER, Earlier
from controllers.core.engine import Engine
from controllers.core.errors import SpeconError
from controllers.core.means import NO_MEANS, Means
from controllers.core.policy import Policy
from controllers.core.ports import ActionLog, MetricSource, Observer, Requests, Search, StateStore, World
from controllers.core.stop_rules import StopRules
from controllers.policies import Guarded, LetGo, Managed, OffLeavingNodes, UntilEnough, WithinMeans
from controllers.policies.comparison.clairvoyant import uninformed_parts
from controllers.policies.wrappers.wrapper import one_objective_only
from controllers.search import OptunaSearch, explored, why_settled

RESIZES_FREELY_S: Final = 0.5
"""The cooldown of a resize where it costs nothing, as the weight of a process does: less than between two looks."""


def guard_policy(policy: Policy[Any], means: Means = NO_MEANS, **settings: float) -> Policy[Any]:
    """Return ``policy`` behind the guards that every world needs, and within the ``means`` of its sweep.

    ``settings`` are those of ``Guarded``.
    """
    letting_go = LetGo(policy=OffLeavingNodes(policy=policy))
    return Guarded(policy=WithinMeans(policy=letting_go, means=means) if means else letting_go, **settings)


def assemble(  # noqa: PLR0913 - the ports of an engine, each named
    policy: Policy[Any],
    world: World,
    source: MetricSource,
    store: StateStore,
    *,
    logs: Sequence[ActionLog] = (),
    observers: Sequence[Observer] = (),
    guard: Callable[[Policy[Any]], Policy[Any]] = guard_policy,
    requests: Requests | None = None,
    search: Search | None = None,
    stops: Mapping[str, StopRules] | None = None,
    earlier: Callable[[], Earlier] = lambda: NOTHING_EARLIER,
) -> Engine[Any]:
    """Return the engine that steers the sweep of ``world`` by ``policy``.

    Args:
        policy: What decides.
        world: Where the trials run.
        source: Their metrics.
        store: What outlives this process.
        logs: Told of each action that was wanted.
        observers: Told of each tick.
        guard: Wraps the policy in what keeps it from harm.
        requests: What owners ask of their trials; nobody can ask without.
        search: Finds the hyperparameters that are left to a search; without it, they are looked for at once.
        stops: When each sweep ends before all its trials have, by its name.
        earlier: Tells what was learnt before.
    """
    steered = Managed(policy=guard(policy)) if requests is not None else guard(policy)
    if rules := {sweep: given for sweep, given in (stops or {}).items() if given}:
        steered = UntilEnough(policy=steered, rules=rules, settles=why_settled)
    return Engine(
        steered,
        world,
        source,
        store,
        logs,
        observers,
        search=search or OptunaSearch(),
        requests=requests,
        earlier=earlier,
        explore=explored,
    )


def check_policy(
    policy: Policy[Any], can: frozenset[type[Action]], world: str, why_not: str = "", *, several: bool = False
) -> None:
    """Refuse a policy that needs what is not there: an action of the world, knowledge, or a single objective.

    A share decides how fast a trial is, and never whether it runs: a policy that does more besides goes without.

    Args:
        policy: What is to decide.
        can: The actions that the world can do.
        world: What people call it.
        why_not: Why it cannot do the others, and what to do.
        several: Whether the sweep has several objectives.

    Raises:
        SpeconError: names the policy, and the world and the missing actions or why it goes by one objective.
    """
    missing = policy.needs - can
    if missing and not goes_without_shares(policy, can):
        named = ", ".join(sorted(action.__name__ for action in missing))
        cause = f" here: {why_not}; or choose a policy that does not need it: specon policies" if why_not else ""
        message = f"policy {policy.name!r} needs {named}, which the {world} world cannot do{cause}"
        raise SpeconError(message)
    if clairvoyant := uninformed_parts(policy):
        message = (
            f"policy {clairvoyant[0]!r} must know how much work each trial has, which the {world} world cannot tell; "
            "it is there to compare with, in the simulator: specon simulate"
        )
        raise SpeconError(message)
    if several and (only_one := one_objective_only(policy)):
        raise SpeconError(only_one)


def goes_without_shares(policy: Policy[Any], can: frozenset[type[Action]]) -> bool:
    """Return whether ``policy`` wants shares that a world which ``can`` these actions cannot give, and does more."""
    return policy.needs - can == {Resize} and policy.needs != {Resize}
