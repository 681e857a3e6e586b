"""MLflow, or whatever stands in its place, answers with JSON of another kind: it does not answer properly, no more."""

from collections.abc import Callable, Iterator

import pytest
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.errors import SpeconError
from controllers.core.model import TrialId
from controllers.tracking.access import problem_with
from controllers.tracking.client import CarefulClient
from controllers.tracking.mlflow_source import MlflowSource, Scope
from controllers.tracking.sweep_runs import Steering, SweepRun, open_sweep
from controllers.tracking.trial_runs import open_trial_run
from controllers.worlds.local.pulse import answers
from hera_specon.cluster.sweep_state import tracked_sweeps
from hera_specon.records.tracked import tracked_record
from mlflow_hooks.points import Point
from mlflow_hooks.tracking_server import RestServer, TrackingError
from tests.io_faults.bad_server import BadServer

NO_OBJECTS = ("[]", "5", '"runs"', "null", "[[" * 5000, "<html>log in</html>", "")
NO_RUNS = (
    '{"runs": 5}',
    '{"runs": [5]}',
    '{"runs": [{}]}',
    '{"runs": {"info": {}}}',
    '{"runs": [{"info": {"run_id": "r"}, "data": {"tags": []}}]}',
    '{"runs": [{"info": {}, "data": {"tags": [{"key": "specon.trial_id", "value": "uid.s.a"}]}}]}',
    (
        '{"runs": [{"info": {"run_id": "r"}, "data": {"tags": [{"key": "specon.trial_id", "value": "uid.s.a"}],'
        ' "metrics": [{"key": "loss", "value": 1, "step": 1e400, "timestamp": 1}]}}]}'
    ),
    (
        '{"runs": [{"info": {"run_id": "r"}, "data": {"tags": [{"key": "specon.trial_id", "value": "uid.s.a"}],'
        f' "metrics": [{{"key": "loss", "value": 1, "step": {10**400}, "timestamp": 1}}]}}}}]}}'
    ),
    '{"runs": [], "next_page_token": [1]}',
)
NOTHING_MADE = ('{"experiment": {}, "run": {}}', '{"experiment": 5, "run": []}', '{"run": {"info": {"run_id": null}}}')
PARENT = SweepRun("uid.s", "1", "parent")


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Returns the address of a server that gives one answer to everything."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    opened = []

    def serve(body: str) -> str:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        server = BadServer(f"{head}Connection: close\r\n\r\n{body}".encode())
        context = server.serving()
        context.__enter__()
        opened.append(context)
        return server.url

    yield serve
    for context in opened:
        context.__exit__(None, None, None)


@pytest.mark.parametrize("body", [*NO_OBJECTS, *NO_RUNS])
def test_a_look_finds_mlflow_away(answering: Callable[[str], str], body: str) -> None:
    client = CarefulClient(answering(body))
    objectives = {TrialId("uid.s.a"): "loss"}
    source = MlflowSource(client, lambda: Scope(["1"], "uid."), lambda: objectives, float)
    assert source.poll() == {}
    assert source.away


@pytest.mark.parametrize("body", [*NO_OBJECTS, *NO_RUNS[:4], *NOTHING_MADE, '{"experiments": 5}'])
@pytest.mark.parametrize(
    "ask",
    [
        lambda client: open_sweep(client, "uid.s", "e", Steering("t", "p", "uid")),
        lambda client: open_trial_run(client, PARENT, "uid.s.a", {"k": 1}, may_exist=False),
        lambda client: tracked_record(client, "s"),
        lambda client: tracked_sweeps(client, {"uid.s": "e"}, {}),
    ],
    ids=["opens a sweep", "opens a trial", "reads a record", "reads a status"],
)
def test_a_reader_gets_an_error_that_can_be_told(
    answering: Callable[[str], str], ask: Callable[[MlflowClient], object], body: str
) -> None:
    with pytest.raises((MlflowException, SpeconError, OSError)):
        ask(CarefulClient(answering(body)))


@pytest.mark.parametrize("body", [*NO_OBJECTS[:-1], '{"experiments": 5}'])
def test_the_check_before_a_run_says_that_nobody_answers(answering: Callable[[str], str], body: str) -> None:
    assert problem_with(CarefulClient(answering(body)))


@pytest.mark.parametrize("body", [*NO_OBJECTS, *NOTHING_MADE])
def test_a_trial_keeps_its_points_and_tries_again(answering: Callable[[str], str], body: str) -> None:
    server = RestServer(answering(body))
    for ask in (
        lambda: server.experiment("e"),
        lambda: server.create_experiment("e"),
        lambda: server.create_run("1", "n", {}),
        lambda: server.is_active("r") if body not in NOTHING_MADE else server.create_experiment("e"),
    ):
        with pytest.raises(TrackingError):
            ask()
    if body in NO_OBJECTS:
        with pytest.raises(TrackingError):
            server.log_metrics("r", [Point("loss", 1.0, 1, 1)])


@pytest.mark.parametrize("body", NO_RUNS[:4])
def test_a_trial_takes_no_run_out_of_such_an_answer(answering: Callable[[str], str], body: str) -> None:
    with pytest.raises(TrackingError):
        RestServer(answering(body)).runs("1", "", 1)


def test_what_is_not_even_http_is_no_answer() -> None:
    with BadServer(b"220 smtp\r\n").serving() as server:
        assert not answers(f"{server.url}/health", 2.0)
