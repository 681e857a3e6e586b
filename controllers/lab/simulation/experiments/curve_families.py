"""Sweeps that look for the best model, C1 to C4: drawn from learning curves that we recorded ourselves.

Eight sets of real data, three schedules of the learning rate, and for each of these 24 tasks 120 configurations of a
network, each trained for 50 steps (benchmarks/learning_curves.py). A seed has a task, and draws some of its
configurations. Lengths are scaled so that the median trial of a task takes five minutes, which leaves starts and
resumes on Argo at about 4 % of it.
"""

import statistics
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from controllers.core.model import Direction, TrialId
from controllers.lab.simulation.best_models import BEST_MODELS, SEARCHES
from controllers.lab.simulation.experiments.arrivals import generator
from controllers.lab.simulation.experiments.curve_sweep import read_curves
from controllers.lab.simulation.experiments.experiment import OwnExperiment, equal_nodes
from controllers.lab.simulation.experiments.nearest_curves import Configuration, NearestCurves
from controllers.search import SearchSpec
from controllers.worlds.simulated.workload import CurvePoint, Speedup, TrialSpec, Workload

TABLE: Final = Path(__file__).with_name("learning_curves.csv.gz")
USUAL_S: Final = 300.0
"""Lone seconds of a task's median trial."""
NODES: Final = 4
POLICIES: Final = (
    "default",
    "promote",
    "promote:finish=best",
    "promote:finish=fast",
    "promote:rungs=best",
    "promote:rungs=fast",
    "optuna:pruner=asha",
    "optuna:pruner=hyperband",
    "optuna:pruner=median",
)


@dataclass(frozen=True, slots=True)
class Family:
    """Sweeps of ``trials`` trials; ``at_a_time`` of them fit.

    ``spare`` is how many times as many cores as it requests a trial can use. ``schedule`` is the one that all tasks
    have, empty for any. ``sampler`` is what gives trials their hyperparameters; without one, they are drawn by chance.
    """

    trials: int
    at_a_time: int
    spare: float = 1.0
    schedule: str = ""
    sampler: str = ""

    def surrogate(self, seed: int) -> NearestCurves:
        """Return how trials of ``seed`` train with what a search gives them."""
        return NearestCurves.of(_tasks()[self.task(seed)])

    def task(self, seed: int) -> str:
        """Return the task of ``seed``: seeds that follow each other go through all of them."""
        named = task_names(self.schedule)
        return named[seed % len(named)]

    def workload(self, seed: int) -> Workload:
        """Return the workload of ``seed``."""
        task = self.task(seed)
        drawn = generator(seed, "curve families").sample(sorted(_tasks()[task]), self.trials)
        search = ""
        if self.sampler:
            search = SearchSpec(sampler=self.sampler, seed=seed, space=self.surrogate(seed).space()).written()
        trials = tuple(
            self._trial(number, name, _tasks()[task][name], search) for number, name in enumerate(drawn, start=1)
        )
        return Workload(trials, equal_nodes(NODES, self.at_a_time / NODES))

    def _trial(self, number: int, name: TrialId, configuration: Configuration, search: str) -> TrialSpec:
        return TrialSpec(
            *(TrialId(f"{number:03d}-{name}"), 0.0, configuration.reports[-1].work_s, configuration.reports, 1.0),
            Speedup.linear(self.spare),
            direction=Direction.MINIMIZE,
            # A trial that has hyperparameters is asked for none: a search would never be heard.
            parameters=() if search else configuration.parameters,
            search=search,
        )


def task_names(schedule: str = "") -> list[str]:
    """Return the tasks of the table, sorted; with a ``schedule``, those that have it."""
    return [task for task in sorted(_tasks()) if task.endswith(f"/{schedule}" if schedule else "")]


@lru_cache(maxsize=1)
def _tasks() -> dict[str, dict[TrialId, Configuration]]:
    """Return the table with all lengths scaled."""
    tasks = read_curves(TABLE, "loss")
    return {task: _scaled(curves) for task, curves in tasks.items()}


def _scaled(curves: dict[TrialId, Configuration]) -> dict[TrialId, Configuration]:
    factor = USUAL_S / statistics.median(curve.reports[-1].work_s for curve in curves.values())
    return {
        name: replace(curve, reports=tuple(CurvePoint(point.work_s * factor, point.value) for point in curve.reports))
        for name, curve in curves.items()
    }


def _experiment(name: str, family: Family, title: str = "") -> OwnExperiment:
    told = f"{family.trials} trials for the best model, {family.at_a_time} at a time{title}"
    measures = SEARCHES if family.sampler else tuple(BEST_MODELS.values())
    surrogate = family.surrogate if family.sampler else None
    return OwnExperiment(name, told, family.workload, measures=measures, compared=POLICIES, surrogates=surrogate)


# A search of a hundred trials would find nothing: the best of a hundred configurations by chance is as a rule among the
# best of the table's 120.
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
    _experiment("C1-random", Family(30, 4, sampler="random"), ", asked for as they start: by chance"),
    _experiment("C1-tpe", Family(30, 4, sampler="tpe"), ", asked for as they start: TPE"),
)
