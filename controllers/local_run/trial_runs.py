"""What each attempt of a run on this machine is told of MLflow, so that its script may use it as in the user's shell.

Our hooks find or make the run of their trial. A script without them makes its runs itself, and they are found by the
tags that MLflow gives them. Where it begins again, it makes new ones, and those of the attempts before do not count.
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.tracking.script_runs import ended_badly, retire, run_context, runs_of_trial
from controllers.tracking.sweep_runs import SweepRun
from controllers.worlds.local.endings import is_hooked
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract
from mlflow_hooks.journal import POINTS, SENT
from mlflow_hooks.state_folder import forget_ending, forget_identity, forget_run

_AWAY_S: Final = 30.0
"""Seconds for which nothing is asked of an MLflow that did not answer: trials start without."""
_EXPERIMENT: Final = "MLFLOW_EXPERIMENT_NAME"


class TrialRuns:
    """Tells attempts where to log, and what MLflow knows of those that are over.

    Args:
        client: of the tracking server.
        state_root: where trials keep what they must not lose.
        sweeps: the parent runs by the id of their sweep.
        names: of the experiments of the sweeps, by the ids of the sweeps.
        experiments: gives the ids of all that the trials are known to log to.
        given: what ``MLFLOW_RUN_CONTEXT`` is in the user's environment.
    """

    def __init__(
        self,
        client: MlflowClient,
        state_root: Path,
        sweeps: Mapping[str, SweepRun],
        names: Mapping[str, str],
        experiments: Callable[[], Sequence[str]],
        given: str = "",
    ) -> None:
        self._client = client
        self._root = state_root
        self._sweeps = sweeps
        self._names = names
        self._experiments = experiments
        self._given = given
        self._away_until = -math.inf

    def environment(self, step: PodStep, attempt: str, *, left: bool) -> Mapping[str, str]:
        """Return the variables of an attempt that is about to start; none for a step that is no trial.

        Args:
            step: what it trains.
            attempt: its token.
            left: whether the attempt before left with exit code 75: then this one goes on with its run.
        """
        env = step.environment
        trial, sweep = env.get(contract.ENV_TRIAL_ID, ""), self._sweeps.get(env.get(contract.ENV_SWEEP_ID, ""))
        if not trial or sweep is None:
            return {}
        given = (self._given, env.get(contract.ENV_RUN_CONTEXT, ""))
        told = {contract.ENV_RUN_CONTEXT: run_context(sweep, trial, attempt, params_of(env), *given)}
        if _EXPERIMENT not in env:
            told[_EXPERIMENT] = self._names[sweep.sweep_id]
        folder = self._root / trial
        if folder.exists() and not is_hooked(folder):
            told |= self._going_on(step, sweep) if left else self._beginning_again(step, folder)
        folder.mkdir(parents=True, exist_ok=True)
        return told

    def hid_a_failure(self, step: PodStep, attempt: str) -> bool:
        """Return whether MLflow knows that an attempt without hooks has failed, whatever its launcher's exit code."""
        trial = step.environment.get(contract.ENV_TRIAL_ID, "")
        return bool(self._asked(lambda: ended_badly(self._client, self._experiments(), trial, attempt), default=False))

    def _going_on(self, step: PodStep, sweep: SweepRun) -> dict[str, str]:
        """Return the run to go on with, if it is in the sweep's experiment: one that named another cannot use it."""
        trial, objective = _names(step)
        runs = self._asked(lambda: runs_of_trial(self._client, [sweep.experiment_id], trial, objective)[:1], default=[])
        return {contract.ENV_RUN: runs[0].run_id} if runs else {}

    def _beginning_again(self, step: PodStep, folder: Path) -> dict[str, str]:
        # An earlier version made the run of each trial before it started. What it printed is kept as well, once over.
        forget_run(folder)
        forget_identity(folder)
        forget_ending(folder)
        for kept in (POINTS, SENT):
            (folder / kept).unlink(missing_ok=True)
        trial, objective = _names(step)
        self._asked(
            lambda: retire(self._client, runs_of_trial(self._client, self._experiments(), trial, objective)),
            default=None,
        )
        return {}

    def _asked(self, question: Callable[[], Any], default: Any) -> Any:  # noqa: ANN401 - what the question returns
        """Ask MLflow, unless it was away a short time ago."""
        if time.monotonic() < self._away_until:
            return default
        try:
            return question()
        except (MlflowException, OSError):
            self._away_until = time.monotonic() + _AWAY_S
            return default


def params_of(env: Mapping[str, str]) -> dict[str, Any]:
    """Return the hyperparameters that an environment tells; none where it has no JSON object of them."""
    try:
        found = json.loads(env.get(contract.ENV_PARAMS) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _names(step: PodStep) -> tuple[str, str]:
    """Return the trial that a step is, and its objective."""
    env = step.environment
    return env.get(contract.ENV_TRIAL_ID, ""), env.get(contract.ENV_OBJECTIVE, "")
