"""MLflow over plain HTTP and through its library: the same runs, the same refusals; and which way is taken when."""

import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from mlflow import MlflowClient

from mlflow_hooks import delivery
from mlflow_hooks.delivery import Delivery
from mlflow_hooks.journal import Journal
from mlflow_hooks.points import Point
from mlflow_hooks.state_folder import Identity, write_identity
from mlflow_hooks.tracking_server import (
    EXISTS,
    NOT_FOUND,
    REFUSED,
    LibraryServer,
    NotMlflowError,
    RestServer,
    TrackingError,
    TrackingServer,
    tracking_server,
)
from tests.mlflow_hooks.hook_jobs import RunJob, Server

VALUES = [0.5, math.nan, math.inf, -math.inf, 1e300]
Opened = Callable[[], TrackingServer]


@pytest.fixture(params=["plain HTTP", "library"])
def tracking(request: pytest.FixtureRequest, mlflow_server: Server, monkeypatch: pytest.MonkeyPatch) -> TrackingServer:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_server.uri)
    return RestServer(mlflow_server.uri) if request.param == "plain HTTP" else LibraryServer()


def test_a_run_is_made_logged_to_and_ended(
    tracking: TrackingServer, mlflow_server: Server, request: pytest.FixtureRequest
) -> None:
    experiment = tracking.create_experiment(request.node.name)
    assert tracking.experiment(request.node.name) == experiment
    run = tracking.create_run(experiment, "t1", {"a.tag": "with 'quotes'"})
    tracking.log_params(run, {"lr": "0.1", "text": 'a "b"'})
    tracking.log_metrics(run, [Point("loss", value, step, 1000 + step) for step, value in enumerate(VALUES)])
    tracking.set_status(run, "FINISHED", 2000)
    second = tracking.create_run(experiment, "t1", {})
    assert tracking.runs(experiment, "attributes.run_name = 't1'", 5) == [run, second]
    tracking.delete_run(second)
    assert tracking.runs(experiment, "attributes.run_name = 't1'", 5) == [run]

    client = MlflowClient(mlflow_server.uri)
    found = client.get_run(run)
    assert (found.info.run_name, found.info.status, found.info.end_time) == ("t1", "FINISHED", 2000)
    assert (found.data.params, found.data.tags["a.tag"]) == ({"lr": "0.1", "text": 'a "b"'}, "with 'quotes'")
    points = sorted((point.step, point.timestamp, point.value) for point in client.get_metric_history(run, "loss"))
    largest = sys.float_info.max  # MLflow's database has no infinities
    kept = [0.5, math.nan, largest, -largest, 1e300]
    assert [value for *_, value in points] == pytest.approx(kept, nan_ok=True)
    assert [(step, at) for step, at, _ in points] == [(step, 1000 + step) for step in range(5)]


def test_mlflows_refusals_are_told_apart(tracking: TrackingServer, request: pytest.FixtureRequest) -> None:
    assert tracking.experiment("there is none") is None
    experiment = tracking.create_experiment(request.node.name)
    run = tracking.create_run(experiment, "t1", {})
    assert refusal(lambda: tracking.create_experiment(request.node.name)) == EXISTS
    assert refusal(lambda: tracking.set_status("0" * 32, "RUNNING")) == NOT_FOUND
    assert refusal(lambda: tracking.log_metrics(run, [Point("not\na name", 1.0, 0, 1)])) == REFUSED


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(TrackingError) as refused:
        call()
    return refused.value.code


@pytest.mark.slow
def test_a_trial_reports_without_ever_importing_mlflow(
    run_job: RunJob, mlflow_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mlflow.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    root = Path(__file__).parents[2]
    ended = run_job("plain", "s.light", MLFLOW_TRACKING_URI=mlflow_server.uri, PYTHONPATH=f"{tmp_path}:{root}")
    assert ended.code == 0
    client = MlflowClient(mlflow_server.uri)
    (run,) = client.search_runs(["0"], "tags.`specon.trial_id` = 's.light'")
    assert run.info.status == "FINISHED"
    assert len(client.get_metric_history(run.info.run_id, "total")) == 30


@pytest.mark.parametrize(
    ("uri", "more", "plain"),
    [
        ("http://mlflow:5000", {}, True),
        ("https://mlflow/base/", {}, True),
        ("https://mlflow", {"MLFLOW_TRACKING_TOKEN": "t"}, False),
        ("https://mlflow", {"MLFLOW_TRACKING_SERVER_CERT_PATH": "/c"}, False),
        ("https://user:word@mlflow", {}, False),
        ("sqlite:///mlflow.db", {}, False),
        ("databricks", {}, False),
    ],
)
def test_the_library_is_taken_where_it_is_needed(
    uri: str,
    more: Mapping[str, str],
    plain: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = library_instead(monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    found = tracking_server()
    assert isinstance(found, RestServer) if plain else found is library


def test_the_library_is_taken_where_credentials_are_kept_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".mlflow").mkdir()
    (tmp_path / ".mlflow" / "credentials").touch()
    library = library_instead(monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow:5000")
    assert tracking_server() is library


def library_instead(monkeypatch: pytest.MonkeyPatch) -> object:
    """Return what ``tracking_server`` returns for MLflow's library from now on."""
    library = object()
    monkeypatch.setattr("mlflow_hooks.tracking_server.LibraryServer", lambda: library)
    return library


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """Yield the address of a server that always answers so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "body"), [(200, b"<html>log in</html>"), (401, b""), (404, b"[]"), (308, b"")])
def test_what_is_not_mlflows_answer_is_told_apart(status: int, body: bytes) -> None:
    with answering(status, body) as uri, pytest.raises(NotMlflowError):
        RestServer(uri).delete_run("r")


@pytest.mark.parametrize("status", [502, 503, 429])
def test_a_gateway_before_an_absent_server_only_means_that_it_is_away(status: int) -> None:
    with answering(status, b"<html>try later</html>") as uri, pytest.raises(TrackingError) as away:
        RestServer(uri).delete_run("r")
    assert not isinstance(away.value, NotMlflowError)


def test_the_library_takes_over_where_plain_http_gets_no_answer_of_mlflows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Library(RestServer):
        def __init__(self) -> None:
            self.logged: list[tuple[str, list[Point]]] = []

        def experiment(self, name: str) -> str | None:
            return name

        def runs(self, experiment: str, wanted: str, most: int) -> list[str]:
            return ["r1"] if experiment and wanted and most else []

        def set_status(self, run: str, status: str, ended_at: int | None = None) -> None: ...

        def log_params(self, run: str, params: Mapping[str, str]) -> None: ...

        def log_metrics(self, run: str, points: Sequence[Point]) -> None:
            self.logged.append((run, list(points)))

    library = Library()
    monkeypatch.setattr(delivery, "LibraryServer", lambda: library)
    write_identity(tmp_path, Identity("s.a", "a", "Default", None, None, {}))
    point = Point("loss", 1.0, 0, 1)
    Journal(tmp_path).append([point])
    with answering(200, b"<html>log in</html>") as uri:
        monkeypatch.setattr(delivery, "tracking_server", lambda: RestServer(uri))
        Delivery(tmp_path).deliver()
    assert library.logged == [("r1", [point])]
