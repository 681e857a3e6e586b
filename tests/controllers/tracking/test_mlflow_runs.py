"""Runs read from a server's JSON are those that MLflow's own client reads; odd answers are told as MLflow's fault."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.tracking.metric_source import FoundRun, find_runs
from controllers.tracking.values import MetricPoint
from mlflow_hooks import contract

Answer = Callable[[dict[str, Any]], tuple[int, bytes]]


@contextmanager
def server(answer: Answer) -> Iterator[MlflowClient]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/api/2.0/mlflow/runs/search"
            code, body = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield MlflowClient(f"http://127.0.0.1:{httpd.server_address[1]}")
        httpd.shutdown()


def run(trial: str, **metrics: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    points = [{"key": key, "value": value, "timestamp": 5000, "step": 3} for key, value in metrics.items()]
    tags = [{"key": "mlflow.user", "value": "x"}, {"key": contract.TAG_TRIAL_ID, "value": trial}]
    return {"info": {"run_id": f"run-{trial}"}, "data": {"metrics": points, "tags": tags}}


def test_every_page_is_read_with_the_same_filter() -> None:
    asked: list[dict[str, Any]] = []

    def answer(query: dict[str, Any]) -> tuple[int, bytes]:
        asked.append(query)
        more = {} if query.get("page_token") else {"next_page_token": "more"}
        return 200, json.dumps({"runs": [run(f"t{len(asked)}", loss=0.5)], **more}).encode()

    with server(answer) as client:
        found = list(find_runs(client, ["7"], "tags.a != ''", ["loss"]))
    assert found == [FoundRun(TrialId(f"t{n}"), f"run-t{n}", {"loss": MetricPoint(0.5, 3, 5.0)}) for n in (1, 2)]
    assert [(query["experiment_ids"], query["filter"], query.get("page_token")) for query in asked] == [
        (["7"], "tags.a != ''", None),
        (["7"], "tags.a != ''", "more"),
    ]


def test_not_a_number_and_left_out_zeros_are_read_as_mlflow_means_them() -> None:
    odd = run("t", loss="NaN")
    odd["data"]["metrics"].append({"key": "zero"})
    with server(lambda _: (200, json.dumps({"runs": [odd]}).encode())) as client:
        (found,) = find_runs(client, ["7"], "", ["loss", "zero"])
    assert found.metrics["loss"].value != found.metrics["loss"].value
    assert found.metrics["zero"] == MetricPoint(0.0, 0, 0.0)


def test_of_a_run_with_a_hundred_thousand_metrics_only_those_that_are_wanted_are_kept() -> None:
    crowd = run("t", loss=0.5, **{f"m{number}": 1.0 for number in range(100_000)})
    asked: list[int] = []

    def answer(query: dict[str, Any]) -> tuple[int, bytes]:
        asked.append(query["max_results"])
        first = int(query.get("page_token") or 0)
        last = min(12, first + query["max_results"])
        more = {"next_page_token": str(last)} if last < 12 else {}
        return 200, json.dumps({"runs": [crowd] * (last - first), **more}).encode()

    with server(answer) as client:
        found = list(find_runs(client, ["7"], "", ["loss"]))
    assert [one.metrics for one in found] == [{"loss": MetricPoint(0.5, 3, 5.0)}] * 12
    assert all(len(one.others) <= 20 for one in found)
    assert asked[:3] == [500, 62, 7]
    assert asked[3] == 1


def test_no_runs_are_no_runs() -> None:
    with server(lambda _: (200, b"{}")) as client:
        assert list(find_runs(client, ["7"], "", ["loss", "zero"])) == []


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (200, b"<html>"),
        (200, b'{"runs": [{"info": {}}]}'),
        (200, b'{"runs": 3}'),
        (404, b'{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"}'),
        (502, b"bad gateway"),
    ],
)
def test_what_is_no_answer_is_an_error_of_mlflow(code: int, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with server(lambda _: (code, body)) as client, pytest.raises(MlflowException):
        list(find_runs(client, ["7"], "", ["loss", "zero"]))
