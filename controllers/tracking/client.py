"""MLflow's own client, held to what it promises: whatever a server answers, it raises nothing but MLflow's errors.

The client takes the JSON of an answer for what it should be. A proxy, a captive portal or a broken server may answer
with a list, a number or half of a run, on which the client fails with whatever error that leads to.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

from mlflow.entities import Experiment, Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

_MOST_ERROR: Final = 200
_MAKES: Final = "create_experiment"
"""The only method that returns an id as it is."""


class CarefulClient(MlflowClient):
    """A client of a tracking server whose methods all raise ``MlflowException`` or ``OSError`` where they fail."""

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - whatever MLflow's client has
        """Return an attribute of MLflow's client; a method of it is held to the two errors."""
        attribute = super().__getattribute__(name)
        return _careful(name, attribute) if callable(attribute) and not name.startswith("_") else attribute


def _careful(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - those of the method
        try:
            answer = method(*arguments, **named)
        except (MlflowException, OSError):
            raise
        except Exception as error:
            message = f"MLflow did not answer properly to {name}: {type(error).__name__}: {str(error)[:_MOST_ERROR]}"
            raise MlflowException(message) from error
        if not _has_ids(name, answer):
            message = f"MLflow did not answer properly to {name}: an id is missing"
            raise MlflowException(message)
        return answer

    return called


def _has_ids(name: str, answer: object) -> bool:
    """Return whether all that was found or made has an id: protobuf reads an answer without one as an empty one."""
    if name == _MAKES:
        return bool(answer)
    for entity in answer if isinstance(answer, list) else [answer]:
        if isinstance(entity, Run) and not entity.info.run_id:
            return False
        if isinstance(entity, Experiment) and not entity.experiment_id:
            return False
    return True
