"""Random cases: small sweeps with faults of every kind. A seed gives one case, always the same."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from controllers.core.devices import Devices
from controllers.core.goals import AskedGoals
from controllers.core.model import Direction, NodeName, TrialId
from controllers.core.stop_rules import NO_RULES, StopRules, rules_of
from controllers.policies import Population
from controllers.policies.registry import POLICIES, parse_policy
from controllers.search import Dimension, NumberRange, SearchSpec
from controllers.worlds.simulated.faults import (
    Crowding,
    NodeLoss,
    ResizeDelay,
    RestoreFault,
    StartFailure,
    TrialCrash,
    WorkerMissing,
    WorldFault,
)
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, Speedup, TrialSpec, WorkerExchange, Workload
from tests.fault_search.case import (
    ACTION_NAMES,
    METRIC_TROUBLES,
    ActionRefusal,
    Case,
    ClockStep,
    ControllerCrash,
    ControllerFault,
    MetricFault,
    SlowController,
)
from tests.fault_search.random_groups import with_groups
from tests.fault_search.several_sweeps import NOT_SHARED, Sharing, draw_sharing

_STRANGE = (math.nan, math.inf, -math.inf, 1e300, -1e300)
STACKED = (
    "specon+flowcon",
    "procon+flowcon+specon",
    "dragon+ahead",
    "population:perturbation_interval=0.2,quantile=0.5+ahead",
    "promote:rungs=best+dragon+ahead",
    "promote:risk=0.05",
    "promote:risk=0.2,warmup=0.3+ahead",
    "dragon:interval=1,starving=2,quiet=4,cost=0.5,patience=10",
)
_SPANS_S = (20.0, 60.0, 150.0)
_WITHOUT_DEVICES = 0.7
_WITHOUT_GANGS = 0.6
_WITHOUT_STOPS = 0.6
_WITHOUT_SEARCHES = 0.2
SEARCH = SearchSpec(
    sampler="random", space=(Dimension(name="lr", domain=NumberRange(low=1e-3, high=10.0, log=True)),)
).written()
_PARTS = (0.0, 0.0, 0.3, 1.0)
"""Of the trials of a workload, that part which tells less than it might."""
_EDGES = ((0, 4), (5, 8), (5, 8), (5, 30))


def every_policy() -> tuple[str, ...]:
    """Return the names of all policies, some stacks of several, and one that scales as often as it can."""
    return (*sorted(POLICIES), *STACKED)


def draw_case(seed: int, policy: str) -> Case:
    """Return the case of ``seed`` under ``policy``, whose intervals are drawn where it has no parameters."""
    chance = random.Random(seed)  # noqa: S311 - draws cases
    # Devices, tellings, gangs, searches and groups have generators of their own: all else is as it was without them.
    workload = with_devices(draw_workload(chance), random.Random(f"{seed}:devices"))  # noqa: S311 - as above
    workload = with_tellings(workload, random.Random(f"{seed}:tellings"))  # noqa: S311 - as above
    gangs = random.Random(f"{seed}:gangs")  # noqa: S311 - as above
    workload = with_gangs(workload, gangs)
    if Population.name in policy:
        workload = with_searches(workload, random.Random(f"{seed}:searches"))  # noqa: S311 - as above
    trials, nodes = [trial.id for trial in workload.trials], [node.name for node in workload.nodes]
    crowded, part = chance.choice((nodes[:1], nodes)), chance.choice((0.0, 0.2, 0.9))
    pinned = {trial: chance.choice(crowded) for trial in trials if chance.random() < part}
    scenario = Scenario(workload, draw_costs(chance), seed, pinned)
    sorts: tuple[Callable[[], WorldFault | ControllerFault], ...] = (
        partial(_controller_fault, chance, trials),
        partial(_cluster_fault, chance, nodes),
        partial(_attempt_fault, chance, trials),
    )
    faults = tuple(sorts[chance.randrange(len(sorts))]() for _ in range(chance.choice((0, 2, 4, 8, 16, 32))))
    together = [trial.id for trial in workload.trials if trial.gang]
    if together:
        missing = range(gangs.choice((0, 0, 1, 3)))
        faults += tuple(WorkerMissing(gangs.choice(together), gangs.randint(1, 4)) for _ in missing)
        scenario = replace(scenario, costs=_with_meetings(scenario.costs, gangs))
    case = Case(_with_intervals(policy, chance), scenario, faults, chance.choice((0.0, 10.0)))
    case = replace(case, stops=draw_stops(random.Random(f"{seed}:stops")))  # noqa: S311 - as above
    case = with_groups(case, random.Random(f"{seed}:groups"))  # noqa: S311 - as above
    return replace(case, sharing=_sharing(case, random.Random(f"{seed}:owners")))  # noqa: S311 - as above


def _sharing(case: Case, chance: random.Random) -> Sharing:
    trials = case.scenario.workload.trials
    gangs = any(trial.gang for trial in trials)
    if gangs and not parse_policy(case.policy).needs:
        return NOT_SHARED  # Such a policy leaves gangs to the scheduler, which is not what is searched here.
    sweeps, largest = sorted({trial.sweep for trial in trials}), max(trial.cpu for trial in trials)
    # How many workers a gang has is decided as it is placed: what it will hold is not known before.
    return draw_sharing(chance, sweeps, largest, quotas=not gangs)


def _with_intervals(policy: str, chance: random.Random) -> str:
    """Shorten the intervals of policies, so that they decide much in a little time."""
    interval = chance.choice((1, 2, 5, 10))

    def with_interval(name: str) -> str:
        has_one = name in POLICIES and "interval" in {parameter.name for parameter in POLICIES[name].parameters()}
        return f"{name}:interval={interval}" if has_one else name

    return "+".join(map(with_interval, policy.split("+")))


def draw_stops(chance: random.Random) -> StopRules:
    """Return the rules that end sweeps early: none, one or several."""
    rules = NO_RULES
    if chance.random() < _WITHOUT_STOPS:
        return rules
    drawn = (
        rules_of(value=chance.choice((0.9, 0.1, -1e9))),
        rules_of(plateau={"trials": chance.randint(1, 3), "by": chance.choice((0.01, 0.3))}),
        rules_of(after_s=chance.choice((0.5, 15.0, 60.0))),
        rules_of(cpu_hours=chance.choice((0.001, 0.01))),
    )
    for rule in chance.sample(drawn, chance.choice((1, 1, 2, 4))):
        rules |= rule
    return rules


def _time(chance: random.Random) -> float:
    return round(chance.uniform(0, chance.choice(_SPANS_S)), 1)


def _controller_fault(chance: random.Random, trials: Sequence[TrialId]) -> ControllerFault:
    at, edge = _time(chance), chance.randint(*chance.choice(_EDGES))
    seconds = chance.choice((1.0, 5.0, 30.0))
    return chance.choice(
        (
            ControllerCrash(at, edge, chance.choice((0.0, 1.0, 20.0))),
            ControllerCrash(at, edge, 0.0),
            SlowController(at, edge, chance.choice((0.1, 2.0, 10.0, 40.0))),
            ActionRefusal(chance.choice(ACTION_NAMES), at, seconds),
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
            RestoreFault(trial, attempt + 1, chance.choice((0.0, 2.0, 20.0)), chance.random() < 0.5),
        )
    )


def draw_workload(chance: random.Random) -> Workload:
    """Return 2 to 12 trials and 1 to 5 nodes; each trial fits on each node."""
    nodes = tuple(_node(chance, number) for number in range(chance.randint(1, 5)))
    return Workload(tuple(_trial(chance, number) for number in range(chance.randint(2, 12))), nodes)


def with_devices(workload: Workload, chance: random.Random) -> Workload:
    """Return ``workload``, or the same on nodes with devices that some trials ask for; each still fits on each node."""
    if chance.random() < _WITHOUT_DEVICES:
        return workload
    trials = tuple(replace(trial, devices=_gpus(chance.choice((0, 1, 1, 2)))) for trial in workload.trials)
    nodes = tuple(replace(node, devices=_gpus(chance.choice((2, 3)))) for node in workload.nodes)
    return replace(workload, trials=trials, nodes=nodes)


def with_gangs(workload: Workload, chance: random.Random) -> Workload:
    """Return ``workload``, or the same with gangs among its trials, whose least workers all nodes together hold."""
    if chance.random() < _WITHOUT_GANGS:
        return workload
    part = chance.choice((0.3, 1.0))
    nodes = tuple(replace(node, zone=chance.choice(("", "a", "b"))) for node in workload.nodes)
    trials = tuple(_as_gang(trial, nodes, chance) if chance.random() < part else trial for trial in workload.trials)
    return replace(workload, trials=trials, nodes=nodes)


def with_searches(workload: Workload, chance: random.Random) -> Workload:
    """Return ``workload``, or the same with trials of a search that report equally often, and may follow each other."""
    if chance.random() < _WITHOUT_SEARCHES:
        return workload
    number = chance.choice((5, 20, 40))

    def searched(trial: TrialSpec) -> TrialSpec:
        reports = _reports(chance, trial.work_s)
        while len(reports) != number:
            reports = _reports(chance, trial.work_s)
        parameters = (("lr", round(chance.uniform(0.01, 1.0), 3)),)
        return replace(trial, reports=reports, search=SEARCH, parameters=parameters, sweep="")

    return replace(workload, trials=tuple(searched(trial) for trial in workload.trials))


def _as_gang(trial: TrialSpec, nodes: Sequence[NodeSpec], chance: random.Random) -> TrialSpec:
    most = chance.choice((2, 2, 3, 4))
    held = sum(_holds(node, trial) for node in nodes)
    least = min(chance.randint(1, most), held)
    exchange = WorkerExchange(chance.choice((0.05, 0.5, 2.0)), chance.choice((0.0, 1e5, 5e6)))
    return replace(trial, min_workers=least, max_workers=most, exchange=exchange)


def _holds(node: NodeSpec, trial: TrialSpec) -> int:
    """Return how many workers like ``trial`` the node holds, up to four."""
    return sum(
        trial.cpu * workers <= node.cpu
        and trial.memory * workers <= node.memory
        and (trial.devices * workers).within(node.devices)
        for workers in range(1, 5)
    )


def with_tellings(workload: Workload, chance: random.Random) -> Workload:
    """Return ``workload`` with trials that tell no steps in all, or wrong ones, or CPU seconds only now and then."""
    silent, wrong, seldom = (chance.choice(_PARTS) for _ in range(3))

    def steps_told() -> int | None:
        if chance.random() < silent:
            return 0
        return chance.choice((1, 10, 1000)) if chance.random() < wrong / 4 else None

    trials = tuple(
        replace(
            trial,
            steps_told=steps_told(),
            cpu_every_s=chance.choice((2.0, 15.0, 1e6)) if chance.random() < seldom else 0.0,
        )
        for trial in workload.trials
    )
    return replace(workload, trials=trials)


def _gpus(count: int) -> Devices:
    return Devices.of({"example.com/gpu": count})


def _with_meetings(costs: Costs, chance: random.Random) -> Costs:
    return replace(costs, meet_s=chance.choice((0.0, 1.0)), meet_within_s=chance.choice((2.0, 5.0, 60.0)))


def draw_costs(chance: random.Random) -> Costs:
    """Return costs that were measured, or any others."""
    measured = (Costs.free(), Costs.argo(), Costs.local(), Costs.thesis())
    some = (0.0, 0.5, 3.0)
    drawn = Costs(
        start_s=chance.choice(some),
        start_cpu_s=chance.choice(some),
        leave_s=chance.choice(some),
        next_attempt_s=chance.choice(some),
        restore_s=chance.choice(some),
        retry_s=chance.choice((0.0, 1.0, 10.0)),
        resize_s=chance.choice(some),
        grace_s=chance.choice((0.0, 2.0, 30.0)),
        metric_delay_s=chance.choice((0.0, 1.0, 7.0)),
        heartbeat_s=chance.choice((0.5, 1.0, 2.0)),
    )
    return chance.choice((*measured, drawn, drawn, drawn, drawn))


def _node(chance: random.Random, number: int) -> NodeSpec:
    return NodeSpec(
        NodeName(f"n{number}"),
        cpu=chance.choice((1.0, 2.0, 4.0)),
        memory=chance.choice((math.inf, 4e9)),
        speed=chance.choice((0.5, 1.0, 1.0, 2.0)),
        contention=chance.choice((0.0, 0.0, 0.1)),
    )


def _trial(chance: random.Random, number: int) -> TrialSpec:
    work, cores, deaf = chance.uniform(5, 90), chance.choice((0.5, 1.0, 2.0)), chance.randrange(10) == 0
    return TrialSpec(
        id=TrialId(f"t{number:02}"),
        submitted_at=chance.choice((0.0, 0.0, round(chance.uniform(0, 60), 1))),
        work_s=work,
        reports=_reports(chance, work),
        cpu=chance.choice((0.0, 0.1, 0.1, 0.1, 0.25, 0.5, 0.5, 1.0)),
        speedup=chance.choice((Speedup.linear(cores), Speedup(((cores / 2, 0.7), (cores, 1.0))))),
        memory=chance.choice((0.0, 1e9, 2e9)),
        direction=chance.choice(list(Direction)),
        retries=chance.randint(0, 3),
        checkpoint_every_s=chance.choice((5.0, 20.0) if deaf else (None, 5.0, 20.0)),
        limit=chance.choice((math.inf, 1.0)),
        deaf=deaf,
        goals=AskedGoals(
            deadline_s=chance.choice((None, None, 20.0, 100.0)),
            target=chance.choice((None, None, 0.5, 0.0)),
            seconds_per_step=chance.choice((None, None, 0.5, 5.0)),
        ),
        sweep=chance.choice(("", "", "other")),
    )


def _reports(chance: random.Random, work: float) -> tuple[CurvePoint, ...]:
    number, speed = chance.choice((0, 1, 5, 20, 40, 40, 40)), chance.uniform(0, 20)
    noise, odd = chance.choice((0.0, 0.01, 0.3)), chance.choice((0.0, 0.0, 0.2))
    values = [math.exp(-speed * part / number) + chance.gauss(0, noise) for part in range(number)]
    values = [chance.choice(_STRANGE) if chance.random() < odd else value for value in values]
    return tuple(CurvePoint(work * part / number, value) for part, value in enumerate(values, start=1))
