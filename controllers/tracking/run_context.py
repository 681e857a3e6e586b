"""The tags by which the runs that a training script makes itself are found. Imports nothing of MLflow."""

import json
from collections.abc import Mapping
from typing import Any, Final

from mlflow_hooks import contract, foreign_json
from mlflow_hooks.state_folder import sendable

PARENT: Final = "mlflow.parentRunId"
_NAME: Final = "mlflow.runName"
_MOST_TAG: Final = 4000


def run_context(
    sweep: str, parent: str | None, trial: str, attempt: str, params: Mapping[str, Any], *given: str
) -> str:
    """Return what ``MLFLOW_RUN_CONTEXT`` must be for an attempt, so that the runs of its script are found.

    Args:
        sweep: id of the sweep.
        parent: the run that they are nested under; None while there is none.
        trial: id of the trial.
        attempt: token of the attempt.
        params: the hyperparameters of the trial.
        given: what the variable is without us, in the shell and in the sweep; its tags stay.
    """
    ours = {
        contract.TAG_TRIAL_ID: trial,
        contract.TAG_SWEEP_ID: sweep,
        contract.TAG_ATTEMPT: attempt,
        **({PARENT: parent} if parent else {}),
        _NAME: trial.rpartition(".")[2],
        **params_tag(params),
    }
    return json.dumps({**{tag: text for context in given for tag, text in _object(context).items()}, **ours})


def params_tag(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the tag with the hyperparameters; none where MLflow would not take it."""
    written = sendable(json.dumps(params, default=str, ensure_ascii=False))
    return {contract.TAG_PARAMS: written} if params and len(written) <= _MOST_TAG else {}


def _object(text: str) -> dict[str, Any]:
    try:
        parsed = foreign_json.parsed(text or "{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
