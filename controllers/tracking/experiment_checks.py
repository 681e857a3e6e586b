"""The experiments of a sweep in MLflow, before it begins: none is deleted, and their artifacts can be kept.

MLflow answers for a deleted one as ever, and takes nothing. Importing this module imports no MLflow.
"""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from controllers.core.errors import SpeconError
from controllers.tracking.access import shown

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_DELETED: Final = "deleted"
_QUESTION: Final = "SELECT name, experiment_id FROM experiments WHERE lifecycle_stage = ?"


class DeletedExperimentError(SpeconError):
    """The experiment of a sweep is deleted: MLflow would take nothing of it."""


def check_experiments(client: "MlflowClient", names: Iterable[str], uri: str) -> None:
    """Check that no experiment of a sweep is deleted; one that is not there is made later.

    Raises:
        DeletedExperimentError: one is.
        MlflowException: MLflow is away or refuses.
    """
    for name in names:
        found = client.get_experiment_by_name(name)
        if found is not None and found.lifecycle_stage == _DELETED:
            raise DeletedExperimentError(_told(name, str(found.experiment_id), uri))


def check_experiments_in(database: Path, names: Iterable[str], uri: str) -> None:
    """Check the same in the database of an MLflow that is not up, see ``check_experiments``."""
    if not database.exists():
        return
    rows: list[tuple[str, str]] = []
    with closing(sqlite3.connect(database)) as opened, suppress(sqlite3.Error):
        rows = opened.execute(_QUESTION, (_DELETED,)).fetchall()
    deleted = {str(name): str(number) for name, number in rows}
    for name in names:
        if name in deleted:
            raise DeletedExperimentError(_told(name, deleted[name], uri))


def _told(name: str, number: str, uri: str) -> str:
    return (
        f"experiment {name!r} is deleted in MLflow at {shown(uri)}, which takes nothing for it. Put it back with "
        f"`mlflow experiments restore --experiment-id {number}` (MLFLOW_TRACKING_URI={shown(uri)}), or name another "
        "one with Sweep(experiment=...)"
    )


def why_no_artifacts(client: "MlflowClient", names: Iterable[str]) -> list[str]:
    """Return of each experiment why this machine cannot keep its artifacts, where they are in a folder and it cannot.

    Raises:
        MlflowException: MLflow is away or refuses.
    """
    problems = []
    for name in names:
        found = client.get_experiment_by_name(name)
        place = urlsplit(str(found.artifact_location)) if found is not None else None
        if found is not None and place is not None and place.scheme in {"", "file"}:
            folder = Path(unquote(place.path))
            if not _can_be_written(folder):
                problems.append(
                    f"experiment {name!r} keeps its artifacts in {folder}, where this machine cannot write: what "
                    "trials log as artifacts fails, and so does the record of the sweep"
                )
    return problems


def _can_be_written(folder: Path) -> bool:
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
