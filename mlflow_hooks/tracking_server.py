"""MLflow as the hooks need it: over plain HTTP where that is enough, else through MLflow's own library.

Importing the library takes one to three CPU seconds: on a small share that is half a minute without a report, and as
much training lost after each move.
"""

import email.utils
import http.client
import importlib.metadata
import json
import math
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from mlflow_hooks import contract, foreign_json
from mlflow_hooks.points import Point

if TYPE_CHECKING:
    from mlflow import MlflowClient

NOT_FOUND: Final = "RESOURCE_DOES_NOT_EXIST"
EXISTS: Final = "RESOURCE_ALREADY_EXISTS"
REFUSED: Final = "INVALID_PARAMETER_VALUE"
_ACTIVE: Final = "active"

_OLDEST_FIRST: Final = ("attributes.start_time ASC", "attributes.run_id ASC")
_USER: Final = "unknown"
"""Whom MLflow's own client names where nobody does."""
_MOST_BYTES: Final = 16 * 2**20
_MOST_ERROR: Final = 200
_AWAY: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Answers of whatever stands before a server that is away or busy."""
_BUSY: Final = frozenset({429, 503})
MOST_REST_S: Final = 30.0
_ONLY_LIBRARY: Final = (
    "MLFLOW_TRACKING_USERNAME",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_TRACKING_AUTH",
    "MLFLOW_TRACKING_AWS_SIGV4",
    "MLFLOW_TRACKING_INSECURE_TLS",
    "MLFLOW_TRACKING_CLIENT_CERT_PATH",
    "MLFLOW_TRACKING_SERVER_CERT_PATH",
    "MLFLOW_WORKSPACE",
)
"""Settings that MLflow's library heeds and the plain client does not."""
_CREDENTIALS: Final = Path(".mlflow", "credentials")
_HEADER_PLUGINS: Final = "mlflow.request_header_provider"


class TrackingError(Exception):
    """MLflow is away or refuses.

    ``code`` is MLflow's own error code, empty where it gave none; ``rest_s`` the seconds for which it asks to be
    left alone, ``MOST_REST_S`` at most.
    """

    def __init__(self, message: str, code: str = "", rest_s: float = 0.0) -> None:
        super().__init__(message)
        self.code = code
        self.rest_s = rest_s


class NotMlflowError(TrackingError):
    """A server answered, but not as MLflow's REST API does: a log-in page, a redirection, JSON of another kind."""


class TrackingServer(Protocol):
    """What is asked of MLflow. Every method may raise ``TrackingError``; times are in milliseconds since 1970."""

    def experiment(self, name: str) -> str | None:
        """Return the id of an experiment, None where there is none."""
        ...

    def create_experiment(self, name: str) -> str:
        """Create an experiment and return its id."""
        ...

    def runs(self, experiment: str, wanted: str, most: int) -> list[str]:
        """Return the ids of up to ``most`` runs that the filter ``wanted`` selects.

        Those that hold metrics come first, and of equals the oldest.
        """
        ...

    def create_run(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        """Create a run and return its id."""
        ...

    def delete_run(self, run: str) -> None:
        """Delete a run."""
        ...

    def is_active(self, run: str) -> bool:
        """Return whether a run is there and not deleted."""
        ...

    def artifact_uri(self, run: str) -> str:
        """Return where a run's artifacts are, as MLflow names it."""
        ...

    def newest_points(self, run: str) -> list[Point]:
        """Return the point of the highest step of each metric of a run."""
        ...

    def set_status(self, run: str, status: str, ended_at: int | None = None) -> None:
        """Set a run's status, and when it ended."""
        ...

    def log_metrics(self, run: str, points: Sequence[Point]) -> None:
        """Log up to 1,000 points."""
        ...

    def log_params(self, run: str, params: Mapping[str, str]) -> None:
        """Log up to 100 parameters."""
        ...


def tracking_server() -> TrackingServer:
    """Return the server that the hooks log to, without MLflow's library where nothing needs it."""
    uri = tracking_uri()
    return RestServer(uri) if _plain(uri) else LibraryServer()


def tracking_uri() -> str:
    """Return where the hooks log to, empty where nobody told.

    A sweep's own address comes first: a script may tell MLflow another one, for runs of its own.
    """
    uri = os.environ.get(contract.ENV_TRACKING, "")
    # Kubernetes leaves a reference as it stands where the variable that it names is not there.
    return uri if uri and not uri.startswith("$(") else os.environ.get("MLFLOW_TRACKING_URI", "")


def _plain(uri: str) -> bool:
    return (
        uri.startswith(("http://", "https://"))
        and "@" not in urllib.parse.urlsplit(uri).netloc
        and not any(os.environ.get(name) for name in _ONLY_LIBRARY)
        and not Path("~", _CREDENTIALS).expanduser().exists()
        and not importlib.metadata.entry_points(group=_HEADER_PLUGINS)
    )


class RestServer:
    """MLflow's REST API (version 2.0), as its documentation describes it. See ``TrackingServer``."""

    def __init__(self, uri: str) -> None:
        self._base = f"{uri.rstrip('/')}/api/2.0/mlflow/"

    def experiment(self, name: str) -> str | None:
        """See ``TrackingServer``."""
        query = urllib.parse.urlencode({"experiment_name": name})
        try:
            answer = self._ask(f"experiments/get-by-name?{query}")
        except TrackingError as error:
            if error.code == NOT_FOUND:
                return None
            raise
        with _of_another_kind():
            return _id(answer["experiment"]["experiment_id"])

    def create_experiment(self, name: str) -> str:
        """See ``TrackingServer``."""
        created = self._ask("experiments/create", {"name": name})
        with _of_another_kind():
            return _id(created["experiment_id"])

    def runs(self, experiment: str, wanted: str, most: int) -> list[str]:
        """See ``TrackingServer``."""
        question = {"experiment_ids": [experiment], "filter": wanted, "max_results": most}
        answer = self._ask("runs/search", {**question, "order_by": _OLDEST_FIRST})
        with _of_another_kind():
            runs = {_id(run["info"]["run_id"]): run.get("data", {}).get("metrics") for run in answer.get("runs", [])}
        return sorted(runs, key=lambda run: not runs[run])

    def create_run(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        """See ``TrackingServer``."""
        about = {"experiment_id": experiment, "run_name": name, "user_id": _USER, "start_time": int(time.time() * 1000)}
        created = self._ask("runs/create", {**about, "tags": _pairs(tags)})
        with _of_another_kind():
            return _id(created["run"]["info"]["run_id"])

    def delete_run(self, run: str) -> None:
        """See ``TrackingServer``."""
        self._ask("runs/delete", {"run_id": run})

    def is_active(self, run: str) -> bool:
        """See ``TrackingServer``."""
        answer = self._ask(f"runs/get?{urllib.parse.urlencode({'run_id': run})}")
        with _of_another_kind():
            return str(answer["run"]["info"].get("lifecycle_stage", _ACTIVE)) == _ACTIVE

    def artifact_uri(self, run: str) -> str:
        """See ``TrackingServer``."""
        answer = self._ask(f"runs/get?{urllib.parse.urlencode({'run_id': run})}")
        with _of_another_kind():
            return str(answer["run"]["info"]["artifact_uri"])

    def newest_points(self, run: str) -> list[Point]:
        """See ``TrackingServer``."""
        answer = self._ask(f"runs/get?{urllib.parse.urlencode({'run_id': run})}")
        with _of_another_kind():
            return [
                Point(str(of["key"]), float(of["value"]), int(of.get("step", 0)), int(of["timestamp"]))
                for of in answer["run"].get("data", {}).get("metrics", [])
            ]

    def set_status(self, run: str, status: str, ended_at: int | None = None) -> None:
        """See ``TrackingServer``."""
        ended = {} if ended_at is None else {"end_time": ended_at}
        self._ask("runs/update", {"run_id": run, "status": status, **ended})

    def log_metrics(self, run: str, points: Sequence[Point]) -> None:
        """See ``TrackingServer``."""
        metrics = [
            {"key": of.key, "value": _number(of.value), "step": of.step, "timestamp": of.timestamp} for of in points
        ]
        self._ask("runs/log-batch", {"run_id": run, "metrics": metrics})

    def log_params(self, run: str, params: Mapping[str, str]) -> None:
        """See ``TrackingServer``."""
        self._ask("runs/log-batch", {"run_id": run, "params": _pairs(params)})

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request (POST where it has a body) and return the answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._base + path, data, headers)  # noqa: S310 - _plain() let only HTTP pass
        timeout = float(os.environ.get("MLFLOW_HTTP_REQUEST_TIMEOUT") or 10)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310 - as above
                text = answer.read(_MOST_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(error) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise TrackingError(str(error)) from error
        parsed = _object(text)
        if parsed is None:
            message = f"{self._base}{path} did not answer with JSON"
            raise NotMlflowError(message)
        return parsed


def _refused(error: urllib.error.HTTPError) -> TrackingError:
    try:
        told = _object(error.read(_MOST_BYTES)) or {}
    except (OSError, http.client.HTTPException):  # it ends in the middle
        told = {}
    rest_s = _rest_s(error.headers.get("Retry-After", "")) if error.code in _BUSY else 0.0
    if "error_code" in told:
        return TrackingError(f"{told['error_code']}: {told.get('message', '')}", str(told["error_code"]), rest_s)
    return (TrackingError if error.code in _AWAY else NotMlflowError)(f"HTTP status {error.code}", rest_s=rest_s)


def _rest_s(asked: str) -> float:
    """Return the seconds of a ``Retry-After``, which may be a date; 0 where it makes no sense (RFC 9110, 10.2.3)."""
    try:
        if asked.strip().isdecimal():
            rest_s = float(asked)
        else:
            rest_s = email.utils.parsedate_to_datetime(asked).timestamp() - time.time()
    except (ValueError, OverflowError, TypeError):
        return 0.0
    return min(max(rest_s, 0.0), MOST_REST_S)


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        parsed = foreign_json.parsed(text)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _id(told: object) -> str:
    """Return the id of a run or an experiment, which would be believed for good."""
    if not isinstance(told, str) or not told:
        message = f"{told!r} is no id"
        raise ValueError(message)
    return told


@contextmanager
def _of_another_kind() -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"the server answered with JSON of another kind: {type(error).__name__}: {str(error)[:_MOST_ERROR]}"
        raise NotMlflowError(message) from error


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _number(value: float) -> float | str:
    """Return a value as protobuf's JSON has it, where NaN and infinities are words."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


class LibraryServer:
    """Whatever MLflow's own library reaches: files, databases, servers that ask for credentials."""

    def __init__(self) -> None:
        import mlflow  # noqa: PLC0415 - takes seconds, and only who needs it shall pay

        self._client: MlflowClient = mlflow.MlflowClient(tracking_uri() or None)

    def experiment(self, name: str) -> str | None:
        """See ``TrackingServer``."""
        with _translated():
            experiment = self._client.get_experiment_by_name(name)
        return None if experiment is None else str(experiment.experiment_id)

    def create_experiment(self, name: str) -> str:
        """See ``TrackingServer``."""
        with _translated():
            return str(self._client.create_experiment(name))

    def runs(self, experiment: str, wanted: str, most: int) -> list[str]:
        """See ``TrackingServer``."""
        with _translated():
            runs = self._client.search_runs([experiment], wanted, max_results=most, order_by=list(_OLDEST_FIRST))
        return [str(run.info.run_id) for run in sorted(runs, key=lambda run: not run.data.metrics)]

    def create_run(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        """See ``TrackingServer``."""
        with _translated():
            return str(self._client.create_run(experiment, tags=dict(tags), run_name=name).info.run_id)

    def delete_run(self, run: str) -> None:
        """See ``TrackingServer``."""
        with _translated():
            self._client.delete_run(run)

    def is_active(self, run: str) -> bool:
        """See ``TrackingServer``."""
        with _translated():
            return str(self._client.get_run(run).info.lifecycle_stage) == _ACTIVE

    def artifact_uri(self, run: str) -> str:
        """See ``TrackingServer``."""
        with _translated():
            return str(self._client.get_run(run).info.artifact_uri)

    def newest_points(self, run: str) -> list[Point]:
        """See ``TrackingServer``."""
        with _translated():
            metrics = self._client.get_run(run).data._metric_objs  # noqa: SLF001 - only it has the steps
        return [Point(of.key, float(of.value), int(of.step), int(of.timestamp)) for of in metrics]

    def set_status(self, run: str, status: str, ended_at: int | None = None) -> None:
        """See ``TrackingServer``."""
        with _translated():
            if ended_at is None:
                self._client.update_run(run, status=status)
                return
            # A script's stdout is its result in Argo; MLflow would add a line with the run's address.
            os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
            self._client.set_terminated(run, status, ended_at)

    def log_metrics(self, run: str, points: Sequence[Point]) -> None:
        """See ``TrackingServer``."""
        from mlflow.entities import Metric  # noqa: PLC0415 - see __init__

        metrics = [Metric(point.key, point.value, point.timestamp, point.step) for point in points]
        with _translated():
            self._client.log_batch(run, metrics=metrics, synchronous=True)

    def log_params(self, run: str, params: Mapping[str, str]) -> None:
        """See ``TrackingServer``."""
        from mlflow.entities import Param  # noqa: PLC0415 - see __init__

        with _translated():
            self._client.log_batch(run, params=[Param(*pair) for pair in params.items()], synchronous=True)


@contextmanager
def _translated() -> Iterator[None]:
    from mlflow.exceptions import MlflowException  # noqa: PLC0415 - see LibraryServer

    try:
        yield
    except MlflowException as error:
        raise TrackingError(error.message, error.error_code) from error
    except Exception as error:  # the library takes the JSON of an answer for what it should be
        message = f"{type(error).__name__}: {str(error)[:_MOST_ERROR]}"
        raise TrackingError(message) from error
