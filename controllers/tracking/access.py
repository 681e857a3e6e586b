"""How MLflow is reached: with short timeouts, so that a slow or absent server delays nothing, and a slim import.

Importing this module imports no MLflow, since ``import_slim`` must come first.
"""

import importlib
import os
import re
import sys
from typing import TYPE_CHECKING, Final

from controllers.core.errors import SpeconError

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_DEFAULTS: Final = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_POOL_MAXSIZE": "64",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # Else each small file that a command reads draws a bar of its own.
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
_NOT_FOR_TRIALS: Final = frozenset(name for name in _DEFAULTS if name.startswith(("MLFLOW_HTTP_", "MLFLOW_ENABLE_")))
_OF_ONE_RUN: Final = frozenset({"MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"})
"""Variables of whoever started us from within a run of theirs: all trials would log into that one."""
_ours: set[str] = set()
"""Variables that this process set itself."""
_LOGINS: Final = re.compile(r"://[^/\s\"]*@")
_TOKENS: Final = re.compile(r"(?i)([?&][\w-]*(?:password|passwd|pwd|token|secret|key)=)[^&\s\"]*")
_OPTIONAL: Final = ("numpy", "pandas", "pyarrow", "scipy")
"""What the distribution mlflow-skinny leaves out; MLflow loads each where it can be had, at 90 MB in all."""


class MlflowAwayError(SpeconError):
    """MLflow does not answer now; the same question may be answered later."""


def import_slim() -> None:
    """Import MLflow without the optional libraries. Do nothing where it, or one of these, is imported already.

    Later imports find these libraries as usual.
    """
    if any(name in sys.modules for name in ("mlflow", *_OPTIONAL)):
        return
    # None in sys.modules is Python's mark of a module that cannot be imported.
    hidden = dict.fromkeys(_OPTIONAL)
    sys.modules.update(hidden)  # type: ignore[arg-type] # typeshed knows modules only
    try:
        importlib.import_module("mlflow.tracking")
    finally:
        for name in hidden:
            del sys.modules[name]


def shown(text: str) -> str:
    """Return an address, or a message with addresses, as it may be shown and kept: without user, password or token."""
    return _TOKENS.sub(r"\1***", _LOGINS.sub("://***@", text))


def be_impatient() -> None:
    """Make every MLflow client of this process, and of those it starts, give up in seconds, unless told otherwise."""
    for name, value in _DEFAULTS.items():
        if name not in os.environ:
            os.environ[name] = value
            _ours.add(name)


def environment_as_given() -> dict[str, str]:
    """Return this process's environment without our own settings of MLflow, and without a run: trials have theirs."""
    left_out = (_ours & _NOT_FOR_TRIALS) | _OF_ONE_RUN
    return {name: value for name, value in os.environ.items() if name not in left_out}


def problem_with(client: "MlflowClient") -> str | None:
    """Ask the tracking server something small; return why it did not answer, None if it did."""
    from mlflow.exceptions import MlflowException  # noqa: PLC0415 - see the module's docstring

    try:
        client.search_experiments(max_results=1)
    except (MlflowException, OSError) as error:
        return shown(str(error))[:200]
    return None
