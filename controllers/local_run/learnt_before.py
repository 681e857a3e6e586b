"""What a run on this machine learns from earlier sweeps: read out of MLflow once, before anything runs, and kept.

A run that is gone on with, and each further policy, learns the same, whatever MLflow has by then.
"""

import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from controllers.core import labels
from controllers.core.after_sweeps import AfterSweeps, after_in
from controllers.core.earlier import NOTHING_EARLIER, Earlier, EarlierTrial
from controllers.core.errors import SpeconError
from controllers.local_run.order import Order
from controllers.local_run.run_folder import RunFolder
from controllers.local_run.services import TRACKING_URI, experiments_of
from controllers.search import what_is_learnt
from controllers.tracking.access import shown
from controllers.worlds.local.jobs import write_whole
from controllers.worlds.local.serve_mlflow import DATABASE, database_uri
from controllers.worlds.local.workflow import PlannedTrial
from mlflow_hooks import contract

LEARNT_FILE: Final = "earlier.json"
_LEARNT: Final = TypeAdapter(dict[str, tuple[EarlierTrial, ...]])


class UnknownEarlierError(SpeconError):
    """A sweep is to learn from one that MLflow does not have."""


def learn(order: Order, planned: Sequence[PlannedTrial], folder: RunFolder) -> list[str]:
    """Read what the sweeps of a run learn, unless it was read before, and keep it; return what to say of it.

    Args:
        order: What was asked for.
        planned: The trials that are known before running.
        folder: That of the run. One that was just made goes again where this fails.

    Raises:
        UnknownEarlierError: A sweep is named that is not there.
        OSError: The disk takes nothing.
    """
    asked = {trial.step.labels.get(labels.LABEL_SWEEP, ""): after_in(trial.step.annotations) for trial in planned}
    learning = {sweep: after for sweep, after in asked.items() if after}
    if not learning:
        return []
    lines: list[str] = []
    if not (folder.path / LEARNT_FILE).exists():
        try:
            known = _read(order, planned, folder, learning, lines)
            write_whole(folder.path / LEARNT_FILE, _LEARNT.dump_json(known, indent=1))
        except (UnknownEarlierError, OSError):
            if not folder.resumed:
                shutil.rmtree(folder.path, ignore_errors=True)
            raise
    trials = learnt_in(folder.path).trials
    told = ((sweep, what_is_learnt(trials.get(sweep, ()), after.search)) for sweep, after in learning.items())
    return [*lines, *(f"{sweep}: {line}" if len(learning) > 1 else line for sweep, line in told)]


def learnt_in(folder: Path) -> Earlier:
    """Return what the run in ``folder`` learnt; nothing where it learnt nothing, or that cannot be read any more."""
    try:
        return Earlier(_LEARNT.validate_json((folder / LEARNT_FILE).read_bytes()))
    except (OSError, ValidationError):
        return NOTHING_EARLIER


def _read(
    order: Order,
    planned: Sequence[PlannedTrial],
    folder: RunFolder,
    learning: Mapping[str, AfterSweeps],
    lines: list[str],
) -> dict[str, tuple[EarlierTrial, ...]]:
    """Return the earlier trials of each sweep; add to ``lines`` where MLflow does not tell."""
    from mlflow.exceptions import MlflowException  # noqa: PLC0415 - seconds, which few runs need

    from controllers.tracking.bounded_answers import TooMuchError  # noqa: PLC0415
    from controllers.tracking.client import CarefulClient  # noqa: PLC0415
    from controllers.tracking.earlier_sweeps import FoundEarlier, Wanted, read_earlier  # noqa: PLC0415

    uri, now = _store(order), time.time()
    experiments = {
        sweep.rpartition(".")[2]: name
        for sweep, name in experiments_of((trial.step for trial in planned), order.sweep).items()
    }
    uid = order.continues or folder.uid(0).rpartition("-")[0]
    known: dict[str, tuple[EarlierTrial, ...]] = {}
    for sweep, after in learning.items():
        wanted = Wanted(after, experiments.get(sweep, order.sweep), uid, now)
        try:
            found = FoundEarlier((), after.ids) if uri is None else read_earlier(CarefulClient(uri), wanted)
        except (MlflowException, OSError, TooMuchError) as error:
            lines.append(f"nothing was learnt before, as MLflow does not tell: {shown(str(error))[:200]}")
            found = FoundEarlier()
        if found.unknown:
            raise UnknownEarlierError(_unknown(found.unknown, uri))
        known[sweep] = found.trials
    return known


def _store(order: Order) -> str | None:
    """Return where MLflow is: the user's own, or the database that runs on this machine share; None where none is."""
    kept = order.settings.state_dir / "mlflow"
    return os.environ.get(TRACKING_URI) or (database_uri(kept) if (kept / DATABASE).is_file() else None)


def _unknown(names: Iterable[str], uri: str | None) -> str:
    where = f"MLflow at {shown(uri)}" if uri else "MLflow, which is still empty here,"
    return (
        f"after= names {', '.join(map(repr, names))}, and {where} has no trial of such a sweep: give the tag "
        f"{contract.TAG_SWEEP_ID} of its runs, or the name that its run on this machine has"
    )
