"""How MLflow is reached: impatiently, so that a slow or absent server holds nothing up."""

import os

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_POOL_MAXSIZE": "64",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


def be_impatient() -> None:
    """Make every MLflow client of this process, and of those it starts, give up in seconds, unless told otherwise."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)


def problem_with(client: MlflowClient) -> str | None:
    """Ask the tracking server something small; return why it did not answer, None if it did."""
    try:
        client.search_experiments(max_results=1)
    except (MlflowException, OSError) as error:
        return str(error)[:200]
    return None
