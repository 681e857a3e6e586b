"""The MLflow run of each trial of a run on this machine, made before the trial starts.

A script that knows nothing of our hooks logs into it too: MLflow goes on with the run that ``MLFLOW_RUN_ID`` names. It
is nested under the sweep, has its parameters, and policies see its metrics.
"""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.tracking.sweep_runs import SweepRun
from controllers.tracking.trial_runs import open_trial_run
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract
from mlflow_hooks.state_folder import Identity, Run, read_run, write_identity, write_run

_AWAY_S: Final = 30.0
"""Seconds for which nothing is asked of an MLflow that did not answer: trials start without."""


class TrialRuns:
    """Finds or makes the run of each trial.

    Args:
        client: of the tracking server.
        state_root: where trials keep what they must not lose.
        sweeps: the parent runs by the id of their sweep.
    """

    def __init__(self, client: MlflowClient, state_root: Path, sweeps: Mapping[str, SweepRun]) -> None:
        self._client = client
        self._root = state_root
        self._sweeps = sweeps
        self._away_until = -math.inf

    def of(self, step: PodStep) -> str:
        """Return the id of the run of a trial that is about to start, empty for any other step or without MLflow."""
        env = step.environment
        trial, sweep = env.get(contract.ENV_TRIAL_ID, ""), self._sweeps.get(env.get(contract.ENV_SWEEP_ID, ""))
        if not trial or sweep is None:
            return ""
        folder = self._root / trial
        # Whoever made the folder may have made a run too, and was killed, or not answered, before it noted that.
        begun = folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        if known := read_run(folder):
            return known.run_id
        if time.monotonic() < self._away_until:
            return ""
        try:
            run_id = self._opened(trial, sweep, _params(env), folder, begun=begun)
        except (MlflowException, OSError):
            self._away_until = time.monotonic() + _AWAY_S
            return ""
        return run_id

    def _opened(self, trial: str, sweep: SweepRun, params: Mapping[str, Any], folder: Path, *, begun: bool) -> str:
        run_id = open_trial_run(self._client, sweep, trial, params, may_exist=begun)
        name = trial.rpartition(".")[2]
        experiment = str(self._client.get_experiment(sweep.experiment_id).name)
        write_identity(folder, Identity(trial, name, experiment, sweep.sweep_id, sweep.run_id, dict(params)))
        write_run(folder, Run(run_id, has_params=True))
        return run_id


def _params(env: Mapping[str, str]) -> dict[str, Any]:
    try:
        found = json.loads(env.get(contract.ENV_PARAMS) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
