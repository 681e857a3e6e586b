"""Sweeps drawn from a table of learning curves: real hyperparameters, real curves, submitted all at once.

The table is as LCBench gives it (Zimmer et al., Auto-PyTorch Tabular, 2021).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from controllers.core.model import Direction, Parameters, TrialId
from controllers.lab.simulation.best_models import BEST_MODELS, SEARCHES
from controllers.lab.simulation.experiments.arrivals import generator
from controllers.lab.simulation.experiments.experiment import OwnExperiment, equal_nodes
from controllers.lab.simulation.experiments.jobs import NODE_CORES
from controllers.lab.simulation.experiments.nearest_curves import Configuration, NearestCurves
from controllers.lab.simulation.tables import PARAMETER, TableError, read_rows
from controllers.search import SearchSpec
from controllers.search.optuna_search import sampler_of
from controllers.worlds.simulated.workload import CurvePoint, Speedup, TrialSpec, Workload

_COLUMNS: Final = ("task", "config", "epoch", "seconds")


def metrics_in(path: Path) -> tuple[str, ...]:
    """Return the columns of ``path`` that hold metrics: those that are no hyperparameter's either.

    Raises:
        TableError: It is no table of curves, or has no rows.
    """
    for row in read_rows(path, _COLUMNS):
        return tuple(column for column in row.cells if not (column in _COLUMNS or column.startswith(PARAMETER)))
    raise _without_rows(path)


def read_curves(path: Path, metric: str) -> dict[str, dict[TrialId, Configuration]]:
    """Return each configuration with its curve of ``metric``, by its task and the id ``TASK.CONFIG``.

    Args:
        path: A ``.csv`` or ``.csv.gz`` with the columns task, config, epoch, seconds (of training so far, alone on
            all the cores it can use), any number of metrics, and ``parameter.NAME`` for each hyperparameter (read from
            a configuration's first row); the rows of a configuration in the order of epochs.
        metric: Column of the values; NaN where a trial diverged.

    Raises:
        TableError: It is no such table; names file, line, column and value.
    """
    tasks: dict[str, dict[TrialId, list[CurvePoint]]] = {}
    epochs: dict[tuple[str, TrialId], int] = {}
    parameters: dict[tuple[str, TrialId], Parameters] = {}
    for row in read_rows(path, (*_COLUMNS, metric)):
        task = row.text("task")
        name = TrialId(f"{task}.{row.text('config')}")
        curve = tasks.setdefault(task, {}).setdefault(name, [])
        epoch, seconds = row.whole("epoch", least=0), row.number("seconds", least=0)
        if epoch <= (before := epochs.get((task, name), -1)):
            raise row.problem(column="epoch", expected=f"more than the {before} of the row before it")
        if curve and seconds < curve[-1].work_s:
            raise row.problem(column="seconds", expected=f"at least the {curve[-1].work_s:g} of the epoch before it")
        if not curve:
            parameters[task, name] = row.parameters()
        curve.append(CurvePoint(seconds, row.logged(metric)))
        epochs[task, name] = epoch
    if not tasks:
        raise _without_rows(path)
    return {
        task: {name: Configuration(tuple(curve), parameters[task, name]) for name, curve in curves.items()}
        for task, curves in tasks.items()
    }


def _without_rows(path: Path) -> TableError:
    message = f"{path} has no rows"
    return TableError(message)


_REQUEST: Final = 1.0
_SPEEDUP: Final = Speedup.linear(NODE_CORES)


def curve_sweep(
    path: Path, metric: str, direction: Direction, trials: int, nodes: int, sampler: str = ""
) -> OwnExperiment:
    """Return the experiment in which each seed draws a task and ``trials`` of its configurations.

    Each trial requests one core and can use all 16 of a node; the seconds of its curve are those that it needs alone.
    With a sampler, trials get their hyperparameters from a search, and train as the nearest configuration did.

    Args:
        path: A table as ``read_curves`` takes it.
        metric: Column of the objective.
        direction: Which way that improves.
        trials: How many are submitted.
        nodes: How many nodes of 16 cores there are.
        sampler: A sampler as ``controllers.search`` knows it, empty where the table's configurations are drawn.

    Raises:
        TableError: It is no such table, a task has fewer configurations than that, or hyperparameters are missing.
        SearchError: There is no such sampler.
        WorkloadError: A curve is over in no time.
    """
    tasks = read_curves(path, metric)
    for task, curves in tasks.items():
        if len(curves) < trials:
            message = f"{path}: task {task} has {len(curves)} configurations, fewer than {trials} trials"
            raise TableError(message)
    choices = tuple(
        tuple(
            TrialSpec(
                *(name, 0.0, curve.reports[-1].work_s, curve.reports, _REQUEST, _SPEEDUP),
                direction=direction,
                parameters=curve.parameters,
            )
            for name, curve in curves.items()
        )
        for curves in tasks.values()
    )
    title = f"{trials} trials of a task, all at once, {nodes} node{'s' * (nodes > 1)}"
    draw = partial(_drawn, choices, trials, nodes, sampler)
    if not sampler:
        return OwnExperiment(str(path), title, draw, measures=tuple(BEST_MODELS.values()))
    if not all(trial.parameters for task in choices for trial in task):
        message = f"{path}: a search needs the hyperparameters of each configuration, in columns {PARAMETER}NAME"
        raise TableError(message)
    sampler_of(SearchSpec(sampler=sampler, space=_nearest(choices, 0).space()), 0)
    return OwnExperiment(
        str(path), f"{title}, {sampler}", draw, measures=SEARCHES, surrogates=partial(_nearest, choices)
    )


def _drawn(tasks: Sequence[Sequence[TrialSpec]], trials: int, nodes: int, sampler: str, seed: int) -> Workload:
    chance = generator(seed, "curves")
    drawn, search = chance.sample(chance.choice(tasks), trials), ""
    if sampler:
        search = SearchSpec(sampler=sampler, seed=seed, space=_nearest(tasks, seed).space()).written()
    return Workload(tuple(replace(trial, search=search) for trial in drawn), equal_nodes(nodes, NODE_CORES))


def _nearest(tasks: Sequence[Sequence[TrialSpec]], seed: int) -> NearestCurves:
    """Return the configurations of the task that ``seed`` draws."""
    task = generator(seed, "curves").choice(tasks)
    return NearestCurves(tuple(Configuration(trial.reports, trial.parameters) for trial in task))
