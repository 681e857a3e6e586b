"""Learning curves with times out of one table, as LCBench gives them (Zimmer et al., Auto-PyTorch Tabular, 2021)."""

from pathlib import Path
from typing import Final

from controllers.model import TrialId
from controllers.simulation.tables import TableError, read_rows
from controllers.worlds.simulated.workload import Report

_COLUMNS: Final = ("task", "config", "epoch", "seconds")


def read_curves(path: Path, metric: str) -> dict[TrialId, tuple[Report, ...]]:
    """Return the curve of ``metric`` of each configuration of each task, by the id ``TASK.CONFIG``.

    Args:
        path: A ``.csv`` or ``.csv.gz`` with the columns task, config, epoch, seconds (of training so far, alone on
            all the cores it can use) and any number of metrics; the rows of a configuration in the order of epochs.
        metric: Column of the values.

    Raises:
        TableError: It is no such table; names file, line, column and value.
    """
    curves: dict[TrialId, list[Report]] = {}
    epochs: dict[TrialId, int] = {}
    for row in read_rows(path, (*_COLUMNS, metric)):
        name = TrialId(f"{row.text('task')}.{row.text('config')}")
        curve = curves.setdefault(name, [])
        epoch, seconds = row.whole("epoch", least=0), row.number("seconds", least=0)
        if epoch <= epochs.get(name, -1):
            raise row.problem(column="epoch", expected=f"more than the {epochs[name]} of the row before it")
        if curve and seconds < curve[-1].work_s:
            raise row.problem(column="seconds", expected=f"at least the {curve[-1].work_s:g} of the epoch before it")
        curve.append(Report(seconds, row.number(metric)))
        epochs[name] = epoch
    if not curves:
        message = f"{path} has no rows"
        raise TableError(message)
    return {name: tuple(curve) for name, curve in curves.items()}
