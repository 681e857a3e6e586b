"""What MLflow knows of the runs that the scripts of a run on this machine made themselves."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.tracking.script_runs import ended_badly, retire, runs_of_trial
from controllers.tracking.sweep_runs import SweepRun

_AWAY_S: Final = 30.0
"""Seconds for which nothing is asked of an MLflow that did not answer: trials start without."""
_Answer = TypeVar("_Answer")


class ScriptRuns:
    """Answers what attempts need to know before they start and once they are over; knows nothing while MLflow is away.

    Args:
        client: of the tracking server.
        sweeps: the parent runs by the ids of their sweeps.
        experiments: gives the ids of all that the trials are known to log to.
    """

    def __init__(
        self, client: MlflowClient, sweeps: Mapping[str, SweepRun], experiments: Callable[[], Sequence[str]]
    ) -> None:
        self._client = client
        self._sweeps = sweeps
        self._experiments = experiments
        self._away_until = -math.inf

    def parent(self, sweep: str) -> str:
        """Return the run of a sweep, by the id of that."""
        return self._sweeps[sweep].run_id

    def to_go_on_with(self, sweep: str, trial: str, objective: str) -> str:
        """Return the run that a trial goes on with: one in the sweep's experiment; empty where there is none."""
        home = [self._sweeps[sweep].experiment_id]
        nothing: list[str] = []
        runs = self._ask(lambda: [run.run_id for run in runs_of_trial(self._client, home, trial, objective)], nothing)
        return next(iter(runs), "")

    def retire(self, trial: str, objective: str) -> None:
        """Take what was copied of a trial out of the account; which of a script's own runs count, they tell."""

        def copies() -> None:
            runs = runs_of_trial(self._client, self._experiments(), trial, objective)
            retire(self._client, (run for run in runs if not run.attempt))

        self._ask(copies, default=None)

    def ended_badly(self, trial: str, attempt: str) -> bool:
        """Return whether an attempt is known to have failed, whatever its launcher's exit code."""
        return self._ask(lambda: ended_badly(self._client, self._experiments(), trial, attempt), default=False)

    def _ask(self, question: Callable[[], _Answer], default: _Answer) -> _Answer:
        """Ask MLflow, unless it was away a short time ago."""
        if time.monotonic() < self._away_until:
            return default
        try:
            return question()
        except (MlflowException, OSError):
            self._away_until = time.monotonic() + _AWAY_S
            return default
