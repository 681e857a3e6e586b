"""The MLflow runs that a controller makes for the trials of a campaign before their pods start."""

import logging
import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.tracking.access import shown
from controllers.tracking.sweep_runs import SweepRun
from controllers.tracking.trial_runs import open_trial_run

_LOG = logging.getLogger(__name__)
_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
"""Ids of trials stand in MLflow's query language, and ids of runs in the annotations of pods."""
_LONGEST_RUN: Final = 64
_AWAY_S: Final = 30.0
"""Seconds for which nothing is asked of an MLflow that did not answer: pods start without."""


class TrialRuns:
    """Finds or makes the run of each trial; may be asked on several threads.

    Args:
        client: of the tracking server.
        parent_of: waits a few seconds for the parent run of a sweep, None where there is none by then.
        known: the runs that were found by their metrics.
    """

    def __init__(
        self,
        client: MlflowClient,
        parent_of: Callable[[str], SweepRun | None],
        known: Callable[[], Mapping[TrialId, str]],
    ) -> None:
        self._client = client
        self._parent_of = parent_of
        self._known = known
        self._made: dict[str, str] = {}
        self._away_until = -math.inf

    def of(self, trial: str, params: Mapping[str, Any]) -> str:
        """Return the id of the run of ``trial``, empty where MLflow does not answer: then it starts without."""
        found = self._known().get(TrialId(trial)) or self._made.get(trial)
        if found is None and _SAFE.fullmatch(trial) and time.monotonic() >= self._away_until:
            found = self._opened(trial, params)
        return found if found and len(found) <= _LONGEST_RUN and _SAFE.fullmatch(found) else ""

    def _opened(self, trial: str, params: Mapping[str, Any]) -> str | None:
        parent = self._parent_of(trial.rpartition(".")[0])
        if parent is None:
            return None
        try:
            run_id = open_trial_run(self._client, parent, trial, params, may_exist=True)
        except (MlflowException, OSError) as error:
            _LOG.warning("trial %s starts without a run in MLflow: %s", trial, shown(str(error))[:200])
            self._away_until = time.monotonic() + _AWAY_S
            return None
        return self._made.setdefault(trial, run_id)
