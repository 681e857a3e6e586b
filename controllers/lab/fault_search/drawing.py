"""Random cases: small sweeps in which all sorts of things go wrong. A seed gives one case, always the same."""

import random
from collections.abc import Sequence

from controllers.core.model import NodeName, TrialId
from controllers.lab.fault_search.case import Case
from controllers.lab.fault_search.controller_faults import (
    METRIC_TROUBLES,
    ClockStep,
    ControllerCrash,
    ControllerFault,
    MetricFault,
    Refusal,
    SlowController,
)
from controllers.lab.fault_search.workloads import draw_costs, draw_workload
from controllers.policies.registry import POLICIES
from controllers.worlds.simulated.faults import (
    Crowding,
    NodeLoss,
    ResizeDelay,
    RestoreFault,
    StartFailure,
    TrialCrash,
    WorldFault,
)
from controllers.worlds.simulated.scenario import Scenario

STACKED = ("specon+flowcon", "procon+flowcon+specon")
_SPANS_S = (20.0, 60.0, 150.0)
_EDGES = ((0, 4), (5, 8), (5, 8), (5, 30))


def every_policy() -> tuple[str, ...]:
    """Return the names of all policies there are, and some of several together."""
    return (*sorted(POLICIES), *STACKED)


def draw_case(seed: int, policy: str) -> Case:
    """Return the case of ``seed`` under ``policy``, whose intervals are drawn where it has no parameters."""
    chance = random.Random(seed)  # noqa: S311 - draws cases
    workload = draw_workload(chance)
    trials, nodes = [trial.id for trial in workload.trials], [node.name for node in workload.nodes]
    crowded, part = chance.choice((nodes[:1], nodes)), chance.choice((0.0, 0.2, 0.9))
    pinned = {trial: chance.choice(crowded) for trial in trials if chance.random() < part}
    scenario = Scenario(workload, draw_costs(chance), seed, pinned)
    faults = tuple(_fault(chance, trials, nodes) for _ in range(chance.choice((0, 2, 4, 8, 16, 32))))
    return Case(_with_intervals(policy, chance), scenario, faults, chance.choice((0.0, 10.0)))


def _with_intervals(policy: str, chance: random.Random) -> str:
    """Shorten the intervals of policies, so that they decide much in a little time."""
    interval = chance.choice((1, 2, 5, 10))
    return "+".join(f"{part}:interval={interval}" if _has_interval(part) else part for part in policy.split("+"))


def _has_interval(name: str) -> bool:
    return name in POLICIES and "interval" in {parameter.name for parameter in POLICIES[name].parameters()}


def _time(chance: random.Random) -> float:
    return round(chance.uniform(0, chance.choice(_SPANS_S)), 1)


def _fault(chance: random.Random, trials: Sequence[TrialId], nodes: Sequence[NodeName]) -> WorldFault | ControllerFault:
    kind = chance.randrange(3)
    if kind == 0:
        return _controller_fault(chance, trials)
    return _cluster_fault(chance, nodes) if kind == 1 else _attempt_fault(chance, trials)


def _controller_fault(chance: random.Random, trials: Sequence[TrialId]) -> ControllerFault:
    at, edge = _time(chance), chance.randint(*chance.choice(_EDGES))
    seconds = chance.choice((1.0, 5.0, 30.0))
    return chance.choice(
        (
            ControllerCrash(at, edge, chance.choice((0.0, 1.0, 20.0))),
            ControllerCrash(at, edge, 0.0),
            SlowController(at, edge, chance.choice((0.1, 2.0, 10.0, 40.0))),
            Refusal(chance.choice(("Resize", "Migrate", "Place")), at, seconds),
            ClockStep(at, chance.choice((-3.0, -0.5, 2.0, 60.0, 4000.0))),
            MetricFault(chance.choice(METRIC_TROUBLES), chance.choice((None, *trials)), at, seconds),
        )
    )


def _cluster_fault(chance: random.Random, nodes: Sequence[NodeName]) -> WorldFault:
    at, node = _time(chance), chance.choice(nodes)
    seconds = chance.choice((1.0, 10.0, 40.0))
    return chance.choice(
        (
            NodeLoss(node, at, chance.choice((0.0, 5.0, 40.0)), seconds),
            Crowding(node, at, seconds, chance.choice((0.5, 1.0, 4.0))),
            ResizeDelay(at, seconds, chance.choice((1.0, 15.0))),
        )
    )


def _attempt_fault(chance: random.Random, trials: Sequence[TrialId]) -> WorldFault:
    trial, attempt = chance.choice(trials), chance.randint(1, 4)
    return chance.choice(
        (
            TrialCrash(trial, _time(chance)),
            StartFailure(trial, attempt),
            RestoreFault(trial, attempt + 1, chance.choice((0.0, 2.0, 20.0)), chance.random() < 0.5),  # noqa: PLR2004
        )
    )
