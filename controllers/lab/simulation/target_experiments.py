"""Experiments with targets: of the objective (T1, for TRADL), and of the time that a step takes (Q1, for DQoES).

The abstracts tell results and nothing of their workloads: these are ours. Ten trials share one node of 16 cores, of
which each can use all.
"""

from typing import Final

from controllers.core.goals import AskedGoals
from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.arrivals import AllAtOnce, UniformWindow, generator
from controllers.lab.simulation.catalogue import NODE_CORES
from controllers.lab.simulation.curves import BI_RNN, GRU, VAE
from controllers.lab.simulation.experiment import OwnExperiment, Published
from controllers.lab.simulation.measures import PACES, TARGETS
from controllers.worlds.simulated.workload import NodeSpec, Speedup, TrialSpec, Workload

TRIALS: Final = 10
NODE: Final = NodeSpec(NodeName("worker-1"), NODE_CORES)
REPORTS: Final = 100
STEPS: Final = 500
"""Reports of a trial with a time per step: the time of each is then below the twenty seconds between two looks."""
LONE_S: Final = (100.0, 300.0)
WINDOW: Final = UniformWindow(200.0)
REACHED: Final = (0.8, 0.95)
"""Part of its whole reduction at which a trial's loss is good enough."""
SLOWER: Final = (3.0, 24.0)
"""How many times as long as alone a step may take: about as much as the node can give all of them together."""


def target_workload(seed: int) -> Workload:
    """Return the trials of ``seed``, each with a loss that is good enough."""
    chance = generator(seed, "targets")
    trials = []
    for number, at in enumerate(WINDOW.times(TRIALS, generator(seed, "targets", "arrivals"))):
        curve, work = chance.choice((BI_RNN, GRU, VAE)), chance.uniform(*LONE_S)
        target = curve.first - (curve.first - curve.last) * chance.uniform(*REACHED)
        reports = curve.reports(work, REPORTS, chance)
        name, speedup = TrialId(f"job-{number + 1:02d}"), Speedup.linear(NODE.cpu)
        trials.append(TrialSpec(name, at, work, reports, 1.0, speedup, goals=AskedGoals(target=target)))
    return Workload(tuple(trials), (NODE,))


def pace_workload(seed: int) -> Workload:
    """Return the trials of ``seed``, each with the seconds that a step shall take."""
    chance = generator(seed, "paces")
    trials = []
    for number, at in enumerate(AllAtOnce().times(TRIALS, chance)):
        work = chance.uniform(*LONE_S)
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
