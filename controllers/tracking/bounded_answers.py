"""Answers of MLflow's REST API as JSON, no larger than this process will hold. Whatever they say is untrusted data."""

from collections.abc import Mapping
from typing import Any, Final

from mlflow.exceptions import MlflowException
from mlflow.utils.credentials import get_default_host_creds
from mlflow.utils.rest_utils import http_request
from urllib3.exceptions import HTTPError

from controllers.core.errors import SpeconError
from mlflow_hooks import foreign_json

_ANSWER_S: Final = 30
"""Seconds that an answer may take: nobody waits for it, and a busy server is not away."""
_MOST_ANSWER: Final = 16 * 2**20
"""Bytes of an answer: a single wide character in it makes it four times as large in memory."""
_MOST_PARTS: Final = 1_000_000
"""Values in an answer: so many take a hundred megabytes."""


class TooMuchError(SpeconError):
    """MLflow answered with more than this process will hold."""


def search_answer(uri: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a page of a search of runs, as MLflow's ``runs/search`` gives it.

    Args:
        uri: Address of the tracking server.
        query: What is searched for.

    Raises:
        MlflowException: MLflow is away, refuses or answers with something else.
        TooMuchError: The answer is too large.
    """
    return _answer(uri, "runs/search", "POST", f"a search of {query['max_results']} runs", json=query)


def history_answer(uri: str, run_id: str, metric: str, most: int, page: str = "") -> Mapping[str, Any]:
    """Return ``most`` points of a metric, as MLflow's ``metrics/get-history`` gives them: the first, or another page.

    Raises:
        MlflowException: MLflow is away, refuses or answers with something else.
        TooMuchError: The answer is too large.
    """
    query = {"run_id": run_id, "metric_key": metric, "max_results": most, **({"page_token": page} if page else {})}
    return _answer(uri, "metrics/get-history", "GET", "a question for the points of a metric", params=query)


def _answer(uri: str, path: str, method: str, what: str, **content: Any) -> Mapping[str, Any]:  # noqa: ANN401 - http_request's
    credentials = get_default_host_creds(uri)  # type: ignore[no-untyped-call]
    response = http_request(  # type: ignore[no-untyped-call]
        credentials, f"/api/2.0/mlflow/{path}", method, timeout=_ANSWER_S, stream=True, **content
    )
    with response:
        try:
            held = response.raw.read(_MOST_ANSWER + 1, decode_content=True)
        except HTTPError as error:
            message = f"MLflow's answer to {what} broke off: {str(error)[:200]}"
            raise MlflowException(message) from error
        if response.status_code != 200:  # noqa: PLR2004 - HTTP's OK
            message = f"MLflow answered {what} with status {response.status_code}: {held[:200]!r}"
            raise MlflowException(message)
    if len(held) > _MOST_ANSWER or sum(map(held.count, (b",", b"[", b"{"))) > _MOST_PARTS:
        message = f"MLflow's answer to {what} holds more than is read"
        raise TooMuchError(message)
    try:
        parsed = foreign_json.parsed(held)
    except ValueError as error:
        message = f"MLflow answered {what} without JSON: {str(error)[:200]}"
        raise MlflowException(message) from error
    if not isinstance(parsed, dict):
        message = f"MLflow answered {what} with JSON of another kind: {parsed!r:.200}"
        raise MlflowException(message)
    return parsed
