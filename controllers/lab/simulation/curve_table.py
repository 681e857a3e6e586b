"""Learning curves with times out of one table, as LCBench gives them (Zimmer et al., Auto-PyTorch Tabular, 2021)."""

from pathlib import Path
from typing import Final

from controllers.core.model import TrialId
from controllers.lab.simulation.tables import TableError, read_rows
from controllers.worlds.simulated.workload import Report

_COLUMNS: Final = ("task", "config", "epoch", "seconds")


def metrics_in(path: Path) -> tuple[str, ...]:
    """Return the columns of ``path`` that hold metrics.

    Raises:
        TableError: It is no table of curves, or has no rows.
    """
    for row in read_rows(path, _COLUMNS):
        return tuple(column for column in row.cells if column not in _COLUMNS)
    raise _without_rows(path)


def read_curves(path: Path, metric: str) -> dict[str, dict[TrialId, tuple[Report, ...]]]:
    """Return the curve of ``metric`` of each configuration, by its task and the id ``TASK.CONFIG``.

    Args:
        path: A ``.csv`` or ``.csv.gz`` with the columns task, config, epoch, seconds (of training so far, alone on
            all the cores it can use) and any number of metrics; the rows of a configuration in the order of epochs.
        metric: Column of the values.

    Raises:
        TableError: It is no such table; names file, line, column and value.
    """
    tasks: dict[str, dict[TrialId, list[Report]]] = {}
    epochs: dict[tuple[str, TrialId], int] = {}
    for row in read_rows(path, (*_COLUMNS, metric)):
        task = row.text("task")
        name = TrialId(f"{task}.{row.text('config')}")
        curve = tasks.setdefault(task, {}).setdefault(name, [])
        epoch, seconds = row.whole("epoch", least=0), row.number("seconds", least=0)
        if epoch <= (before := epochs.get((task, name), -1)):
            raise row.problem(column="epoch", expected=f"more than the {before} of the row before it")
        if curve and seconds < curve[-1].work_s:
            raise row.problem(column="seconds", expected=f"at least the {curve[-1].work_s:g} of the epoch before it")
        curve.append(Report(seconds, row.number(metric)))
        epochs[task, name] = epoch
    if not tasks:
        raise _without_rows(path)
    return {task: {name: tuple(curve) for name, curve in curves.items()} for task, curves in tasks.items()}


def _without_rows(path: Path) -> TableError:
    message = f"{path} has no rows"
    return TableError(message)
