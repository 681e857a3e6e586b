"""Whether the runs of a sweep are still there: anybody may delete them in MLflow, alone or with their experiment.

MLflow answers as ever then, and takes nothing.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from mlflow.entities import LifecycleStage
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import RESOURCE_DOES_NOT_EXIST, ErrorCode
from mlflow.tracking import MlflowClient

from controllers.core.model import Sample, TrialId

_EVERY_S: Final = 10.0
_GONE: Final = ErrorCode.Name(RESOURCE_DOES_NOT_EXIST)


class StillThere:
    """Notices while a sweep trains that its runs were deleted in MLflow, alone or with their experiment.

    It is polled as a source of metrics is, by the thread that asks MLflow, and has none.

    Args:
        client: of the tracking server.
        runs: names of the runs of the sweeps by their ids.
    """

    def __init__(self, client: MlflowClient, runs: Mapping[str, str]) -> None:
        self._client = client
        self._runs = runs
        self._due_at = 0.0
        self._deleted: frozenset[str] = frozenset()
        self._told: frozenset[str] = frozenset()

    def poll(self) -> Mapping[TrialId, Sample]:
        """Look, once in a while; return nothing."""
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + _EVERY_S
            with suppress(MlflowException, OSError):
                self._deleted = frozenset(run for run in self._runs if self._is_deleted(run))
        return {}

    def news(self) -> Iterator[str]:
        """Yield in words, once for each time, which runs were deleted, and which are back."""
        deleted, told = self._deleted, self._told
        self._told = deleted
        for run in sorted(deleted - told):
            yield (
                f"Warning: the run of sweep {self._runs[run]} ({run}) was deleted in MLflow, alone or with its "
                "experiment. Trials with hooks train on, and what they log is kept; a script that logs by MLflow alone "
                "fails where its experiment is deleted. Restore it in MLflow, and it gets what it lacks"
            )
        for run in sorted(told - deleted):
            yield f"the run of sweep {self._runs[run]} is back in MLflow"

    def _is_deleted(self, run: str) -> bool:
        try:
            return bool(self._client.get_run(run).info.lifecycle_stage == LifecycleStage.DELETED)
        except MlflowException as error:
            if error.error_code == _GONE:
                return True  # removed for good
            raise
