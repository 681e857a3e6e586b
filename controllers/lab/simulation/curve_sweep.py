"""Sweeps drawn from a table of learning curves: real hyperparameters, real curves, submitted all at once."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from controllers.core.model import Direction, NodeName, TrialId
from controllers.lab.simulation.arrivals import generator
from controllers.lab.simulation.catalogue import NODE_CORES
from controllers.lab.simulation.curve_table import read_curves
from controllers.lab.simulation.experiment import OwnExperiment
from controllers.lab.simulation.tables import TableError
from controllers.worlds.simulated.workload import NodeSpec, Report, Speedup, TrialSpec, Workload

_REQUEST: Final = 1.0
_SPEEDUP: Final = Speedup.linear(NODE_CORES)


def curve_sweep(path: Path, metric: str, direction: Direction, trials: int, nodes: int) -> OwnExperiment:
    """Return the experiment in which each seed draws a task and ``trials`` of its configurations.

    Each trial requests one core and can use all 16 of a node; the seconds of its curve are those that it needs alone.

    Args:
        path: A table as ``read_curves`` takes it.
        metric: Column of the objective.
        direction: Which way that improves.
        trials: How many are submitted.
        nodes: How many nodes of 16 cores there are.

    Raises:
        TableError: It is no such table, or a task has fewer configurations than that.
        WorkloadError: A curve is over in no time.
    """
    tasks = read_curves(path, metric)
    for task, curves in tasks.items():
        if len(curves) < trials:
            message = f"{path}: task {task} has {len(curves)} configurations, fewer than {trials} trials"
            raise TableError(message)
    choices = tuple(tuple(_trial(*curve, direction) for curve in curves.items()) for curves in tasks.values())
    title = f"{trials} trials of a task, all at once, {nodes} node{'s' * (nodes > 1)}"
    return OwnExperiment(str(path), title, partial(_drawn, choices, trials, nodes))


def _trial(name: TrialId, reports: tuple[Report, ...], direction: Direction) -> TrialSpec:
    return TrialSpec(name, 0.0, reports[-1].work_s, reports, _REQUEST, _SPEEDUP, direction=direction)


def _drawn(tasks: Sequence[Sequence[TrialSpec]], trials: int, nodes: int, seed: int) -> Workload:
    chance = generator(seed, "curves")
    return Workload(
        tuple(chance.sample(chance.choice(tasks), trials)),
        tuple(NodeSpec(NodeName(f"worker-{number}"), NODE_CORES) for number in range(1, nodes + 1)),
    )
