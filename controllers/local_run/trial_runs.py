"""What each attempt of a run on this machine is told of MLflow, so that its script may use it as in the user's shell.

Our hooks find or make the run of their trial. A script without them makes its runs itself, and they are found by the
tags that MLflow gives them. Started again, it may go on with its own or make new ones: what it logs there tells whether
it goes on.

Nothing here waits for MLflow where it need not: the first trials begin while MLflow does, too.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from controllers.tracking.run_context import run_context
from controllers.worlds.local.endings import is_hooked
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract
from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.journal import POINTS, SENT
from mlflow_hooks.state_folder import ENDED, IDENTITY, RUN, note_run_asked_for

WAIT_S: Final = 30.0
"""Seconds for which an attempt waits for an MLflow that it must ask something of."""
_EXPERIMENT: Final = "MLFLOW_EXPERIMENT_NAME"
_COPIED: Final = (RUN, IDENTITY, ENDED, POINTS, SENT)
"""Files of a trial's folder that others than its hooks may have written there."""


class KnownRuns(Protocol):
    """What MLflow knows of the runs that scripts made, see ``ScriptRuns``."""

    def parent(self, sweep: str) -> str:
        """Return the run of a sweep, by the id of that."""
        ...

    def to_go_on_with(self, sweep: str, trial: str, objective: str) -> str:
        """Return the run that a trial goes on with, empty where there is none."""
        ...

    def retire(self, trial: str, objective: str) -> None:
        """Take what was copied of an earlier training of a trial out of the account."""
        ...

    def ended_badly(self, trial: str, attempt: str) -> bool:
        """Return whether an attempt is known to have failed."""
        ...


class TrialRuns:
    """Tells attempts where to log, and what MLflow knows of those that are over.

    Args:
        known: returns what MLflow knows; None while it has not answered within so many seconds.
        state_root: where trials keep what they must not lose.
        names: of the experiments of the sweeps, by the ids of the sweeps.
        given: what ``MLFLOW_RUN_CONTEXT`` is in the user's environment.
        begun_elsewhere: whether MLflow may have runs that this machine knows nothing of.
    """

    def __init__(
        self,
        known: Callable[[float], KnownRuns | None],
        state_root: Path,
        names: Mapping[str, str],
        given: str = "",
        *,
        begun_elsewhere: bool = False,
    ) -> None:
        self._known = known
        self._root = state_root
        self._names = names
        self._given = given
        self._begun_elsewhere = begun_elsewhere

    def environment(self, step: PodStep, attempt: str, *, left: bool) -> Mapping[str, str]:
        """Return the variables of an attempt that is about to start; none for a step that is no trial.

        Args:
            step: what it trains.
            attempt: its token.
            left: whether the attempt before left with exit code 75: then this one goes on with its run.
        """
        env = step.environment
        trial, sweep = env.get(contract.ENV_TRIAL_ID, ""), env.get(contract.ENV_SWEEP_ID, "")
        if not trial or sweep not in self._names:
            return {}
        folder = self._root / trial
        # What goes on from a store has hooks, though the first attempt here may have ended before they took the folder.
        by_script = folder.exists() and not is_hooked(folder) and not self._begun_elsewhere
        copied = by_script and any((folder / kept).exists() for kept in _COPIED)
        known = self._known(WAIT_S if copied or (by_script and left) else 0.0)
        given = (self._given, env.get(contract.ENV_RUN_CONTEXT, ""))
        parent = known.parent(sweep) if known else None
        told = {
            contract.ENV_SENDER: contract.SENDER_SWEEP,
            contract.ENV_RUN_CONTEXT: run_context(sweep, parent, trial, attempt, params_of(env), *given),
        }
        if _EXPERIMENT not in env:
            told[_EXPERIMENT] = self._names[sweep]
        if by_script:
            told |= _going_on(known, step) if left else {}
        if copied and not left:
            _forget_copy(known, step, folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self._begun_elsewhere:
            note_run_asked_for(folder)
        return told

    def hid_a_failure(self, step: PodStep, attempt: str) -> bool:
        """Return whether MLflow knows that an attempt without hooks has failed, whatever its launcher's exit code."""
        known = self._known(WAIT_S)
        return known is not None and known.ended_badly(step.environment.get(contract.ENV_TRIAL_ID, ""), attempt)


def params_of(env: Mapping[str, str]) -> dict[str, Any]:
    """Return the hyperparameters that an environment tells; none where it has no JSON object of them."""
    try:
        params = parsed(env.get(contract.ENV_PARAMS) or "{}")
    except ValueError:
        return {}
    return params if isinstance(params, dict) else {}


def _going_on(known: KnownRuns | None, step: PodStep) -> dict[str, str]:
    """Return the run to go on with, if it is in the sweep's experiment: one that named another cannot use it."""
    sweep = step.environment.get(contract.ENV_SWEEP_ID, "")
    run = known.to_go_on_with(sweep, *_trial_and_objective(step)) if known else ""
    return {contract.ENV_RUN: run} if run else {}


def _forget_copy(known: KnownRuns | None, step: PodStep, folder: Path) -> None:
    """Forget what was kept in the place of hooks once a trial was over, which is not over: it is kept once more.

    That is what it printed. An earlier version made the run of each trial before it started.
    """
    for kept in _COPIED:
        (folder / kept).unlink(missing_ok=True)
    if known:
        known.retire(*_trial_and_objective(step))


def _trial_and_objective(step: PodStep) -> tuple[str, str]:
    env = step.environment
    return env.get(contract.ENV_TRIAL_ID, ""), env.get(contract.ENV_OBJECTIVE, "")
