"""How an attempt begins with a store of objects."""

import time
from collections.abc import Callable
from typing import Final

from mlflow_hooks import run_artifacts
from mlflow_hooks.delivery import open_run, sends_itself
from mlflow_hooks.mirror import Mirror
from mlflow_hooks.objects import ObjectStore, StoreError
from mlflow_hooks.settings import AttemptSettings
from mlflow_hooks.state_folder import Identity, report
from mlflow_hooks.store_address import open_store
from mlflow_hooks.tracking_server import tracking_server

PATIENCE_S: Final = 300.0
"""Seconds for which a store may be away before the attempt leaves it to the next one."""
_LONGEST_PAUSE_S: Final = 10.0


def open_mirror(settings: AttemptSettings) -> Mirror | None:
    """Return what keeps the trial's folder in a store; None where no store was named.

    Raises:
        BadEnvironmentError: the address is none, or what it needs is not installed.
    """
    if settings.store == run_artifacts.ADDRESS:
        if not sends_itself():
            return None  # The sweep makes the run, and has the folder on its own machine.
        store: ObjectStore = run_artifacts.RunArtifacts(lambda: _artifacts_of(settings))
    elif settings.store:
        store = open_store(settings.store)
    else:
        return None
    return Mirror(store, settings.folder, settings.trial_id, settings.attempt)


def _artifacts_of(settings: AttemptSettings) -> str:
    """Return where the artifacts of the trial's run are; the run is made where there is none.

    Raises:
        TrackingError: MLflow is away.
    """
    server = tracking_server()
    settings.folder.mkdir(parents=True, exist_ok=True)
    return server.artifact_uri(open_run(server, settings.folder, Identity.of(settings)))


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
