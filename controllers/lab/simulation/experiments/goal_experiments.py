"""Experiments of ours with goals: deadlines (D1, D2), target losses (T1, for TRADL), times per step (Q1, for DQoES).

The abstracts tell results and nothing of their workloads: these are ours.

D1 has too few resources for all, D2 enough. Jobs of one to ten minutes that can use 2, 4 or 8 cores, ever less
efficiently, come one after the other; each is to be done within 1.5 to 4 times the time that it needs alone. What their
authors request is one core to start with, as a deadline is meant to stand in place of a request; in ``D1-half`` and
``D1-most`` half of the cores that a job can use, and all of them. ``D1-crowded`` is D1 where jobs slow each other down.

In T1 and Q1 ten trials share one node of 16 cores, and each can use all of them.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from random import Random
from typing import Final, Literal

from controllers.core.goals import AskedGoals
from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.experiments.arrivals import AllAtOnce, Poisson, UniformWindow, generator
from controllers.lab.simulation.experiments.experiment import OwnExperiment, Published
from controllers.lab.simulation.experiments.jobs import BI_RNN, GRU, NODE_CORES, VAE
from controllers.lab.simulation.measures import DEADLINES, PACES, TARGETS
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, Speedup, TrialSpec, Workload

RequestedCores = Literal["start", "half", "most"]
"""What authors ask for: one core to start with, half of the cores that a job can use, or all of them."""

JOBS: Final = 40
ARRIVALS: Final = Poisson(12.0)
DEADLINE_LONE_S: Final = (60.0, 600.0)
TIMES_LONE: Final = (1.5, 4.0)
"""Deadlines, as multiples of the time that a job needs alone."""
REPORTS: Final = 100
START_CORES: Final = 1.0
CONTENTION: Final = 0.035
"""For real, up to seven trials that took turns on a node needed about a fifth more CPU seconds than one at a time."""
SPEEDUPS: Final[Mapping[int, Speedup]] = {
    2: Speedup(((1, 0.55), (2, 1.0))),
    4: Speedup(((1, 0.30), (2, 0.57), (4, 1.0))),
    8: Speedup(((1, 0.17), (2, 0.33), (4, 0.61), (8, 1.0))),
}
"""By the cores that a job can use at most: each further core brings a little less."""

TRIALS: Final = 10
NODE: Final = NodeSpec(NodeName("worker-1"), NODE_CORES)
STEPS: Final = 500
"""Reports of a trial with a time per step: the time of each is then below the twenty seconds between two looks."""
TARGET_LONE_S: Final = (100.0, 300.0)
WINDOW: Final = UniformWindow(200.0)
REACHED: Final = (0.8, 0.95)
"""Part of its whole reduction at which a trial's loss is good enough."""
SLOWER: Final = (3.0, 24.0)
"""A step may take so many times as long as alone: the node can give all trials together about that."""


def deadline_workload(nodes: int, request: RequestedCores, seed: int, *, contention: float = 0.0) -> Workload:
    """Return the workload of ``seed`` on ``nodes`` nodes of 16 cores; ``request`` changes nothing else of it.

    ``contention`` is the nodes': what each further job that computes there costs all of them.
    """
    chance = generator(seed, "deadlines")
    times = ARRIVALS.times(JOBS, generator(seed, "deadlines", "arrivals"))
    trials = tuple(_trial(number, at, chance, request) for number, at in enumerate(times))
    names = (NodeName(f"worker-{number}") for number in range(1, nodes + 1))
    return Workload(trials, tuple(NodeSpec(name, NODE_CORES, contention=contention) for name in names))


def _trial(number: int, at: float, chance: Random, request: RequestedCores) -> TrialSpec:
    work, most = chance.uniform(*DEADLINE_LONE_S), chance.choice(sorted(SPEEDUPS))
    deadline = work * chance.uniform(*TIMES_LONE)
    return TrialSpec(
        id=TrialId(f"job-{number + 1:02d}"),
        submitted_at=at,
        work_s=work,
        reports=tuple(CurvePoint(work * step / REPORTS, 1 / step) for step in range(1, REPORTS + 1)),
        cpu={"start": START_CORES, "half": most / 2, "most": float(most)}[request],
        speedup=SPEEDUPS[most],
        goals=AskedGoals(deadline_s=deadline),
    )


def _experiments(name: str, nodes: int, room: str, told: Mapping[str, float]) -> Iterator[OwnExperiment]:
    """Yield an experiment for each thing to request; what was published stands where a deadline replaces a request."""
    for request, asked in _ASKED.items():
        published = Published("deadline", measures=told if request == "start" else {})
        yield OwnExperiment(
            id=name if request == "start" else f"{name}-{request}",
            title=f"{JOBS} jobs with deadlines that request {asked}, {nodes} nodes: {room}",
            draw=partial(deadline_workload, nodes, request),
            published=(*map(Published, ("default", "fifo", "edf")), published),
            measures=DEADLINES,
        )


_ASKED: Final[Mapping[RequestedCores, str]] = {
    "start": "one core",
    "half": "half of what they can use",
    "most": "all that they can use",
}
DEADLINE_EXPERIMENTS: Final = (
    *_experiments("D1", 2, "too little for all", {"deadlines_met_change": 0.26, "allocation_used": 1.0}),
    OwnExperiment(
        id="D1-crowded",
        title=f"D1 where each further job takes {CONTENTION:.1%} of a node's speed",
        draw=partial(deadline_workload, 2, "start", contention=CONTENTION),
        published=tuple(map(Published, ("default", "fifo", "edf", "deadline"))),
        measures=DEADLINES,
    ),
    *_experiments("D2", 6, "enough for all", {"deadlines_met": 1.0, "allocation_used": 1.0}),
)
"""D1, D1-half, D1-most, D1-crowded, D2, D2-half and D2-most."""


def target_workload(seed: int) -> Workload:
    """Return the trials of ``seed``, each with a loss that is good enough."""
    chance = generator(seed, "targets")
    trials = []
    for number, at in enumerate(WINDOW.times(TRIALS, generator(seed, "targets", "arrivals"))):
        curve, work = chance.choice((BI_RNN, GRU, VAE)), chance.uniform(*TARGET_LONE_S)
        target = curve.first - (curve.first - curve.last) * chance.uniform(*REACHED)
        reports = curve.reports(work, REPORTS, chance)
        name, speedup = TrialId(f"job-{number + 1:02d}"), Speedup.linear(NODE.cpu)
        trials.append(TrialSpec(name, at, work, reports, 1.0, speedup, goals=AskedGoals(target=target)))
    return Workload(tuple(trials), (NODE,))


def pace_workload(seed: int) -> Workload:
    """Return the trials of ``seed``, each with the seconds that a step should take."""
    chance = generator(seed, "paces")
    trials = []
    for number, at in enumerate(AllAtOnce().times(TRIALS, chance)):
        work = chance.uniform(*TARGET_LONE_S)
        goals = AskedGoals(seconds_per_step=work / STEPS * chance.uniform(*SLOWER))
        reports = VAE.reports(work, STEPS, chance)
        name, speedup = TrialId(f"job-{number + 1:02d}"), Speedup.linear(NODE.cpu)
        trials.append(TrialSpec(name, at, work, reports, 1.0, speedup, goals=goals))
    return Workload(tuple(trials), (NODE,))


TARGET_EXPERIMENTS: Final = (
    OwnExperiment(
        "T1",
        "10 trials with target losses in [0, 200] s on one node",
        target_workload,
        published=(
            *map(Published, ("default", "flowcon")),
            Published("tradl", measures={"time_to_target_change": -0.482}),
        ),
        measures=TARGETS,
    ),
    OwnExperiment(
        "Q1",
        "10 trials with times per step, all at once on one node",
        pace_workload,
        published=tuple(map(Published, ("default", "dqoes"))),
        measures=PACES,
    ),
)
