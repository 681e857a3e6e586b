"""The MLflow runs that attempts of a campaign's trials are told to log to before their pods start.

Programs make their runs themselves, as anywhere else. One that saved its state and left by exit code 75 goes on with
the run that it made. Pods of earlier versions are all told a run, which is made for them.
"""

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
from controllers.tracking.script_runs import runs_of_trial
from controllers.tracking.sweep_runs import SweepRun
from controllers.tracking.trial_runs import open_trial_run

_LOG = logging.getLogger(__name__)
_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
"""Ids of trials stand in MLflow's query language, and ids of runs in the annotations of pods."""
_LONGEST_RUN: Final = 64
_AWAY_S: Final = 30.0
"""Seconds for which nothing is asked of an MLflow that did not answer: pods start without."""


class CampaignTrialRuns:
    """Finds or makes the run of each trial; may be asked on several threads.

    Args:
        client: of the tracking server.
        parent_of: waits a few seconds for the parent run of a sweep, None where there is none by then.
        known: the runs that were found by their metrics.
        objectives: name of the objective of each trial.
    """

    def __init__(
        self,
        client: MlflowClient,
        parent_of: Callable[[str], SweepRun | None],
        known: Callable[[], Mapping[TrialId, str]],
        objectives: Callable[[], Mapping[TrialId, str]],
    ) -> None:
        self._client = client
        self._parent_of = parent_of
        self._known = known
        self._objectives = objectives
        self._made: dict[str, str] = {}
        self._away_until = -math.inf

    def of(self, trial: str, params: Mapping[str, Any], *, may_make: bool) -> str:
        """Return the id of a run for ``trial``; empty where there is none, or MLflow does not answer.

        Args:
            trial: its id.
            params: its hyperparameters.
            may_make: whether to make one where it has none; else only one counts that its script has made.
        """
        if not _SAFE.fullmatch(trial):
            return ""
        run = (self._known().get(TrialId(trial)) or self._made.get(trial)) if may_make else None
        if run is None and time.monotonic() >= self._away_until:
            run = self._ask(trial, params, may_make=may_make)
        return run if run and len(run) <= _LONGEST_RUN and _SAFE.fullmatch(run) else ""

    def _ask(self, trial: str, params: Mapping[str, Any], *, may_make: bool) -> str | None:
        parent = self._parent_of(trial.rpartition(".")[0])
        if parent is None:
            return None
        try:
            if may_make:
                run_id = open_trial_run(self._client, parent, trial, params, may_exist=True)
                return self._made.setdefault(trial, run_id)
            return self._of_script(parent, trial)
        except (MlflowException, OSError) as error:
            _LOG.warning("trial %s starts without a run in MLflow: %s", trial, shown(str(error))[:200])
            self._away_until = time.monotonic() + _AWAY_S
            return None

    def _of_script(self, parent: SweepRun, trial: str) -> str | None:
        """Return the run that counts, if a script made it in the sweep's experiment: it could use no other."""
        objective = self._objectives().get(TrialId(trial), "")
        runs = runs_of_trial(self._client, [parent.experiment_id], trial, objective)
        return runs[0].run_id if runs and runs[0].attempt else None
