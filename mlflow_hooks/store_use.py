"""How an attempt begins with a store of objects."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from mlflow_hooks import run_artifacts
from mlflow_hooks.delivery import find_run, open_run, sends_itself
from mlflow_hooks.meeting import FolderMeeting, MeetingPlace, StoreMeeting
from mlflow_hooks.mirror import Mirror
from mlflow_hooks.objects import ObjectStore, StoreError
from mlflow_hooks.settings import AttemptSettings
from mlflow_hooks.state_folder import Identity, report
from mlflow_hooks.store_address import open_store
from mlflow_hooks.tracking_server import tracking_server

PATIENCE_S: Final = 300.0
"""Seconds for which a store may be away before the attempt leaves it to the next one."""
_LONGEST_PAUSE_S: Final = 10.0


class KeptElsewhere(NamedTuple):
    """What an attempt has of a store of objects; ``mirror`` is None where no store was named."""

    mirror: Mirror | None
    meeting: MeetingPlace


def open_elsewhere(settings: AttemptSettings) -> KeptElsewhere:
    """Return what keeps the trial's folder in a store, and where the workers of a gang meet.

    Raises:
        BadEnvironmentError: the address is none, or what it needs is not installed.
    """
    store = _open(settings)
    if store is None:
        return KeptElsewhere(None, FolderMeeting(settings.folder, settings.attempt))
    with suppress(OSError):  # told where it matters
        settings.folder.mkdir(parents=True, exist_ok=True)  # a script may write there on each worker
    mirror = Mirror(store, settings.folder, settings.trial_id, settings.attempt)
    return KeptElsewhere(mirror, StoreMeeting(store, settings.trial_id, settings.attempt))


def _open(settings: AttemptSettings) -> ObjectStore | None:
    if settings.store == run_artifacts.ADDRESS:
        # A sweep on this machine makes the run itself, and has the folder.
        return run_artifacts.RunArtifacts(lambda: _artifacts_of(settings)) if sends_itself() else None
    return open_store(settings.store) if settings.store else None


def _artifacts_of(settings: AttemptSettings) -> str:
    """Return where the artifacts of the trial's run are; rank 0 makes the run where there is none.

    Raises:
        StoreError: rank 0 has not made the run yet.
        TrackingError: MLflow is away.
    """
    server = tracking_server()
    settings.folder.mkdir(parents=True, exist_ok=True)
    if settings.rank == 0:
        return server.artifact_uri(open_run(server, settings.folder, Identity.of(settings)))
    run = find_run(server, Identity.of(settings))
    if run is None:
        message = f"rank 0 has not made the run of {settings.trial_id} yet"
        raise StoreError(message)
    return server.artifact_uri(run)


def ask_patiently(ask: Callable[[], None], leaving: Callable[[], bool]) -> Exception | None:
    """Call ``ask`` until it is answered; return the last error where the patience ended, or ``leaving`` says so."""
    began, pause = time.monotonic(), 1.0
    while True:
        try:
            ask()
        except (StoreError, OSError) as error:
            if pause == 1.0:
                report(f"the store of checkpoints does not answer ({error}); trying again")
            if leaving() or time.monotonic() > began + PATIENCE_S:
                return error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        else:
            return None
