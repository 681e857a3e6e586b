"""Sweeps that look for the best model, C1 to C4: drawn from learning curves that we recorded ourselves.

Eight sets of real data, three schedules of the learning rate, and for each of these 24 tasks 120 configurations of a
network, each trained for 50 steps (benchmarks/learning_curves.py). A seed draws a task and some of its configurations.
Lengths are scaled so that the median trial of a task takes five minutes, which leaves starts and resumes on Argo at
about 4 % of it.
"""

import statistics
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from controllers.core.model import Direction, NodeName, TrialId
from controllers.lab.simulation.best_models import BEST_MODELS
from controllers.lab.simulation.experiments.arrivals import generator
from controllers.lab.simulation.experiments.curve_sweep import Configuration, read_curves
from controllers.lab.simulation.experiments.experiment import OwnExperiment
from controllers.worlds.simulated.workload import NodeSpec, Report, Speedup, TrialSpec, Workload

TABLE: Final = Path(__file__).with_name("learning_curves.csv.gz")
USUAL_S: Final = 300.0
"""Lone seconds of a task's median trial."""
NODES: Final = 4
POLICIES: Final = (
    "default",
    "promote",
    "promote:finish=best",
    "promote:finish=fast",
    "optuna:pruner=asha",
    "optuna:pruner=hyperband",
    "optuna:pruner=median",
)


@dataclass(frozen=True, slots=True)
class Family:
    """Sweeps of ``trials`` trials, ``at_a_time`` of which fit.

    ``spare`` is how many times as many cores as it requests a trial can use. ``schedule`` is the one that all tasks
    have, empty for any.
    """

    trials: int
    at_a_time: int
    spare: float = 1.0
    schedule: str = ""

    def workload(self, seed: int) -> Workload:
        """Return the workload of ``seed``."""
        chance = generator(seed, "curve families")
        tasks = [task for task in sorted(_tasks()) if task.endswith(f"/{self.schedule}" if self.schedule else "")]
        task = chance.choice(tasks)
        drawn = chance.sample(sorted(_tasks()[task]), self.trials)
        trials = tuple(self._trial(number, name, _tasks()[task][name]) for number, name in enumerate(drawn, start=1))
        cores = self.at_a_time / NODES
        return Workload(trials, tuple(NodeSpec(NodeName(f"worker-{n}"), cores) for n in range(1, NODES + 1)))

    def _trial(self, number: int, name: TrialId, found: Configuration) -> TrialSpec:
        return TrialSpec(
            *(TrialId(f"{number:03d}-{name}"), 0.0, found.reports[-1].work_s, found.reports, 1.0),
            Speedup.linear(self.spare),
            direction=Direction.MINIMIZE,
            parameters=found.parameters,
        )


@lru_cache(maxsize=1)
def _tasks() -> dict[str, dict[TrialId, Configuration]]:
    """Return the table with all lengths scaled."""
    found = read_curves(TABLE, "loss")
    return {task: _scaled(curves) for task, curves in found.items()}


def _scaled(curves: dict[TrialId, Configuration]) -> dict[TrialId, Configuration]:
    factor = USUAL_S / statistics.median(curve.reports[-1].work_s for curve in curves.values())
    return {
        name: replace(curve, reports=tuple(Report(one.work_s * factor, one.value) for one in curve.reports))
        for name, curve in curves.items()
    }


def _experiment(name: str, family: Family, title: str = "") -> OwnExperiment:
    told = f"{family.trials} trials for the best model, {family.at_a_time} at a time{title}"
    return OwnExperiment(name, told, family.workload, measures=tuple(BEST_MODELS.values()), compared=POLICIES)


CURVE_EXPERIMENTS: Final = (
    _experiment("C1", Family(30, 4)),
    _experiment("C2", Family(30, 16)),
    _experiment("C3", Family(100, 4)),
    _experiment("C4", Family(100, 16)),
    _experiment("C2-spare", Family(30, 16, 4.0), ", each can use all of a node"),
    _experiment("C4-spare", Family(100, 16, 4.0), ", each can use all of a node"),
    _experiment("C4-constant", Family(100, 16, schedule="constant"), ", constant learning rate"),
    _experiment("C4-cosine", Family(100, 16, schedule="cosine"), ", learning rate along a cosine"),
    _experiment("C4-one-cycle", Family(100, 16, schedule="one-cycle"), ", learning rate in one cycle"),
)
