"""Trials of earlier sweeps out of MLflow: which count, what they came to, and whose sweeps may be read."""

import itertools
import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.after_sweeps import SAME_EXPERIMENT, AfterSweeps
from controllers.core.aims import Aims, Constraint, FurtherObjective
from controllers.core.earlier import EarlierTrial
from controllers.core.model import Direction
from controllers.tracking.earlier_sweeps import FoundEarlier, Wanted, read_earlier
from controllers.tracking.homes import NAMESPACE_TAG
from mlflow_hooks import contract

BEGAN: Final = 10_000.0
_names = itertools.count()


class Past:
    """An experiment of its own, and the trials of earlier sweeps in it."""

    def __init__(self, client: MlflowClient) -> None:
        self.client = client
        self.name = f"past-{next(_names)}"
        self.where = str(client.create_experiment(self.name))
        self.sweep = f"uid{next(_names)}.vae"

    def trial(
        self,
        number: int,
        losses: tuple[float, ...] = (0.9, 0.4, 0.5),
        *,
        ended: float = BEGAN - 100,
        status: str = "FINISHED",
        **more: Any,  # noqa: ANN401 - parameters, and tags and metrics in mappings
    ) -> str:
        tags = {contract.TAG_SWEEP_ID: self.sweep, contract.TAG_TRIAL_ID: f"{self.sweep}.t{number:03}"}
        run = str(
            self.client.create_run(
                self.where, start_time=int(ended * 1000) - 5000, tags={**tags, **more.pop("tags", {})}
            ).info.run_id
        )
        at = int(ended * 1000) - 1000
        points = [Metric("loss", loss, at + step, step + 1) for step, loss in enumerate(losses)]
        points += [Metric(name, value, at, len(losses)) for name, value in more.pop("metrics", {}).items()]
        self.client.log_batch(run, metrics=points)
        for name, value in more.items():
            self.client.log_param(run, name, value)
        if status != "RUNNING":
            self.client.set_terminated(run, status, int(ended * 1000))
        return run

    def read(self, *names: str, uid: str = "new", namespace: str | None = None, **after: Any) -> FoundEarlier:  # noqa: ANN401 - of AfterSweeps
        wanted = AfterSweeps(names or (self.sweep,), **{"objective": "loss", **after})
        return read_earlier(self.client, Wanted(wanted, self.name, uid, BEGAN, namespace))

    def trials(self, *names: str, **more: Any) -> tuple[EarlierTrial, ...]:  # noqa: ANN401 - as above
        return self.read(*names, **more).trials


@pytest.fixture
def past(client: MlflowClient) -> Past:
    return Past(client)


def test_a_trial_tells_its_parameters_its_best_value_and_what_its_steps_cost(past: Past) -> None:
    past.trial(0, lr=0.1, kind="a", deep=True, metrics={contract.METRIC_CPU_SECONDS: 6.0})
    (trial,) = past.trials()
    assert trial == EarlierTrial(
        id=f"{past.sweep}.t000",
        parameters=(("deep", "true"), ("kind", "a"), ("lr", 0.1)),
        came_to=(0.4,),
        steps=3.0,
        cost=2.0,
        age_s=100.0,
    )
    (trial,) = past.trials(direction=Direction.MAXIMIZE)
    assert trial.came_to == (0.9,)


def test_what_a_controller_wrote_down_goes_before_what_a_script_calls_alike(past: Past) -> None:
    past.trial(0, lr="0.1", seed=3, tags={contract.TAG_PARAMS: json.dumps({"lr": 0.2})})
    past.trial(1, lr="0.1", tags={contract.TAG_PARAMS: "[" * 20_000})
    assert {trial.parameters for trial in past.trials()} == {(("lr", 0.2), ("seed", 3.0)), (("lr", 0.1),)}


def test_how_trials_ended_is_told_as_a_search_is_told_of_its_own(past: Past) -> None:
    past.trial(0, status="FAILED", metrics={contract.METRIC_CPU_SECONDS: 6.0})
    past.trial(1, (0.9, 0.7), status="KILLED", tags={contract.TAG_OUTCOME: "stopped"})
    past.trial(2, (0.9, math.nan))
    past.trial(3, (math.nan,))
    past.trial(4, ())
    past.trial(5, (0.8,), metrics={contract.METRIC_STEPS_TOTAL: 40.0})
    told = {trial.id[-1]: (trial.came_to, trial.steps) for trial in past.trials()}
    assert told == {
        "0": ((), None),
        "1": ((0.7,), None),
        "2": ((0.9,), 2.0),
        "3": ((), 1.0),
        "4": (None, None),
        "5": ((0.8,), 1.0),
    }


def test_only_what_had_ended_when_the_sweep_began_counts(past: Past) -> None:
    past.trial(0, ended=BEGAN - 1)
    past.trial(1, ended=BEGAN + 1)
    past.trial(2, status="RUNNING")
    assert [trial.id[-1] for trial in past.trials()] == ["0"]
    assert past.read().unknown == ()


def test_the_same_experiment_is_all_that_it_has_but_the_sweep_itself(past: Past) -> None:
    first = past.sweep
    past.trial(0, ended=BEGAN - 300)
    past.sweep = "other.gan"
    past.trial(1, ended=BEGAN - 200)
    past.sweep = "new.vae"
    past.trial(2)
    past.sweep = "new-1a2b3c4d-01.vae"
    past.trial(3)
    ids = [trial.id for trial in past.trials(SAME_EXPERIMENT, uid="new")]
    assert ids == ["other.gan.t001", f"{first}.t000"]
    assert [trial.age_s for trial in past.trials(SAME_EXPERIMENT, uid="new")] == [200.0, 300.0]


def test_a_sweep_is_named_by_its_id_its_workflow_or_its_run_on_this_machine(past: Past) -> None:
    past.sweep = f"{past.name}-2-0a1b2c3d-00.vae"
    past.trial(0)
    for name in (past.sweep, past.sweep.removesuffix(".vae"), f"{past.name}-2"):
        assert len(past.trials(name)) == 1
    found = past.read(f"{past.name}-", "nobody", f"{past.name}_2")
    assert (found.trials, found.unknown) == ((), (f"{past.name}-", "nobody", f"{past.name}_2"))


def test_several_objectives_and_constraints_count_by_their_newest_values(past: Past) -> None:
    past.trial(0, metrics={"latency": 3.0, "memory": 600.0})
    past.trial(1)
    aims = Aims((FurtherObjective("latency", Direction.MINIMIZE),), (Constraint("memory", "<=", 512),))
    told = {trial.id[-1]: (trial.came_to, trial.violations) for trial in past.trials(aims=aims)}
    assert told == {"0": ((0.5, 3.0), (88.0,)), "1": (None, ())}


def test_a_namespace_reads_its_own_sweeps_and_those_of_none(past: Past) -> None:
    past.trial(0)
    assert len(past.trials(namespace="lab")) == 1
    past.client.create_run(past.where, tags={contract.TAG_SWEEP_ID: past.sweep, NAMESPACE_TAG: "secret"})
    found = past.read(namespace="lab")
    assert (found.trials, found.unknown) == ((), (past.sweep,))
    assert past.trials(SAME_EXPERIMENT, namespace="lab") == ()
    assert len(past.trials(namespace="secret")) == len(past.trials()) == 1


def test_the_newest_trials_count_where_there_are_too_many(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.tracking.earlier_sweeps.MOST_TRIALS", 3)
    for number in range(5):
        past.trial(number, ended=BEGAN - 10 * number - 1)
    assert [trial.id[-1] for trial in past.trials()] == ["0", "1", "2"]


def test_once_their_time_is_up_newest_values_stand_for_the_best(past: Past) -> None:
    past.trial(0)
    seconds = itertools.chain([0.0, 0.0, 0.0], itertools.repeat(60.0))
    after = AfterSweeps((past.sweep,), "loss")
    found = read_earlier(past.client, Wanted(after, past.name, "new", BEGAN), lambda: next(seconds))
    assert [trial.came_to for trial in found.trials] == [(0.5,)]


@contextmanager
def odd_server(history: bytes) -> Iterator[MlflowClient]:
    """A server with one trial, whose histories are whatever is given."""
    tags = [{"key": contract.TAG_TRIAL_ID, "value": "old.s.t0"}, {"key": contract.TAG_SWEEP_ID, "value": "old.s"}]
    points = [{"key": "loss", "value": 0.5, "timestamp": 5000, "step": 3}]
    info = {"run_id": "r", "status": "FINISHED", "start_time": "1000", "end_time": 6000}
    params = [{"key": "lr", "value": "0.1"}, {"key": "long", "value": "x" * 5000}]
    runs = {"runs": [{"info": info, "data": {"tags": tags, "metrics": points, "params": params}}]}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._send(json.dumps({"experiments": [{"experiment_id": "1"}]} if "experiments" in self.path else runs))

        def do_GET(self) -> None:
            assert "get-history" not in self.path or "max_results=10000" in self.path
            experiments = {"experiments": [{"experiment_id": "1", "name": "e"}]}
            self._send(history.decode() if "get-history" in self.path else json.dumps(experiments))

        def _send(self, body: str) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield MlflowClient(f"http://127.0.0.1:{httpd.server_address[1]}")
        httpd.shutdown()


@pytest.mark.parametrize(
    ("history", "best"),
    [
        (b'{"metrics": [{"value": 0.25, "step": 1}, {"value": "NaN"}]}', 0.25),
        (b'{"metrics": [{"value": "low"}]}', 0.5),
        (b'{"metrics": 3}', 0.5),
        (b"{}", 0.5),
    ],
)
def test_over_http_the_same_is_read_and_odd_histories_count_for_nothing(history: bytes, best: float) -> None:
    with odd_server(history) as client:
        found = read_earlier(client, Wanted(AfterSweeps(("old.s",), "loss"), "e", "new", BEGAN))
    (trial,) = found.trials
    assert (trial.parameters, trial.came_to) == ((("lr", 0.1),), (best,))


def test_a_history_that_is_no_json_object_is_mlflows_fault() -> None:
    with odd_server(b"[]") as client, pytest.raises(MlflowException, match="JSON of another kind"):
        read_earlier(client, Wanted(AfterSweeps(("old.s",), "loss"), "e", "new", BEGAN))
