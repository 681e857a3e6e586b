"""What trials on this machine journal comes to MLflow while they train, and no trial waits for it."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from controllers.core import labels
from controllers.core.model import Phase
from controllers.local_run import postman
from controllers.local_run.postman import Postman
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract
from mlflow_hooks.journal import Journal
from mlflow_hooks.points import Point
from mlflow_hooks.state_folder import Ending, Identity, read_ending, write_ending, write_identity
from mlflow_hooks.tracking_server import REFUSED, TrackingError


class Server:
    """A tracking server that counts what it is asked; it takes nothing for trials in ``away``."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away: set[str] = set()
        self.taken: dict[str, int] = {}
        self.ended: dict[str, str] = {}
        self.parents: dict[str, str] = {}

    def experiment(self, name: str) -> str:
        self.asked.append("experiment")
        return name

    def create_run(self, experiment: str, name: str, tags: Mapping[str, str]) -> str:
        self.asked.append("create")
        assert experiment == "e"
        self.parents[name] = tags["mlflow.parentRunId"]
        return name

    def log_params(self, run: str, params: Mapping[str, str]) -> None:
        self.asked.append("params")
        assert (run, params) == (run, {"k": "1"})

    def log_metrics(self, run: str, points: Sequence[Point]) -> None:
        self.asked.append("metrics")
        if run in self.away:
            message = "takes nothing of this one"
            raise TrackingError(message)
        self.taken[run] = self.taken.get(run, 0) + len(points)

    def is_active(self, run: str) -> bool:
        return run not in self.away

    def set_status(self, run: str, status: str, ended_at: int | None = None) -> None:
        self.asked.append("status")
        if ended_at is not None:
            self.ended[run] = status


def job(name: str, phase: Phase = Phase.RUNNING, code: int = 0) -> LocalJob:
    env = {contract.ENV_TRIAL_ID: name, contract.ENV_SWEEP_ID: "uid.s"}
    step = PodStep(name, "t", ("python",), env=env, labels={labels.LABEL_SWEEP: "s"})
    return replace(LocalJob(step, 0.0, 1.0), phase=phase, attempt=1, exit_code=code)


def train(root: Path, name: str, steps: int = 3) -> None:
    """Journal as a trial does that has begun."""
    (root / name).mkdir(exist_ok=True)
    write_identity(root / name, Identity(name, name, "e", "uid.s", None, {"k": 1}))
    journal = Journal(root / name)
    begun = journal.high_water.get("loss", -1) + 1
    journal.append([Point("loss", 0.5, step, 1) for step in range(begun, begun + steps)])
    journal.close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(postman, "EVERY_S", 0.02)
    monkeypatch.setattr(postman, "LONGEST_PAUSE_S", 0.05)
    return Server()


@contextmanager
def rounds(root: Path, server: Server) -> Iterator[Postman]:
    made = Postman(root, {"uid.s": "sweep"}, cast("Any", server))
    made.start()
    try:
        yield made
    finally:
        made.close(5.0)
        assert not [one for one in threading.enumerate() if one.name == "postman"]


def wait_for(what: Callable[[], bool], within_s: float = 10.0) -> None:
    give_up = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_points_arrive_while_the_trial_trains_and_its_end_once_it_is_over(tmp_path: Path, server: Server) -> None:
    train(tmp_path, "a")
    with rounds(tmp_path, server) as made:
        made.note([job("a")])
        wait_for(lambda: server.taken == {"a": 3})
        train(tmp_path, "a", 2)
        wait_for(lambda: server.taken == {"a": 5})
        write_ending(tmp_path / "a", Ending.now("FAILED"))
        made.note([job("a")])
        time.sleep(0.2)
        assert server.ended == {}, "another attempt may come"
        made.note([job("a", Phase.FAILED, 1)])
        wait_for(lambda: server.ended == {"a": "FAILED"})
    assert server.parents == {"a": "sweep"}


def test_a_short_trial_costs_mlflow_four_requests_and_the_experiment_is_asked_for_once(
    tmp_path: Path, server: Server
) -> None:
    with rounds(tmp_path, server) as made:
        for name in ("a", "b"):
            train(tmp_path, name)
            made.note([job(name, Phase.SUCCEEDED, 0)])
            wait_for(lambda name=name: name in server.ended)  # type: ignore[misc]
        asked = list(server.asked)
        time.sleep(0.2)
    assert asked == ["experiment", "create", "params", "metrics", "status", "create", "params", "metrics", "status"]
    assert server.asked == asked


def test_a_trial_that_was_killed_is_ended_in_mlflow(tmp_path: Path, server: Server) -> None:
    train(tmp_path, "a")
    with rounds(tmp_path, server) as made:
        made.note([job("a", Phase.FAILED, 137)])
        wait_for(lambda: server.ended == {"a": "FAILED"})
    ending = read_ending(tmp_path / "a")
    assert ending is not None
    assert ending.told


def test_a_trial_that_mlflow_takes_nothing_of_keeps_no_other_waiting(tmp_path: Path, server: Server) -> None:
    server.away = {"a", "b"}
    for name in ("a", "b", "c"):
        train(tmp_path, name)
    with rounds(tmp_path, server) as made:
        made.note([job("a"), job("b"), job("c")])
        wait_for(lambda: server.taken == {"c": 3})
        server.away = set()
        wait_for(lambda: server.taken == {"a": 3, "b": 3, "c": 3})


@pytest.mark.usefixtures("server")
def test_a_script_without_hooks_and_a_run_that_somebody_deleted_are_left_alone(tmp_path: Path) -> None:
    class Deleted(Server):
        def log_metrics(self, run: str, points: Sequence[Point]) -> None:
            super().log_metrics("", [])
            message = f"{run} of {len(points)} points is deleted"
            raise TrackingError(message, REFUSED)

    deleted = Deleted()
    deleted.away = {"a"}
    train(tmp_path, "a")
    (tmp_path / "plain").mkdir()
    with rounds(tmp_path, deleted) as made:
        made.note([job("plain"), job("a")])
        wait_for(lambda: deleted.asked.count("metrics") > 0)
        time.sleep(0.2)
    assert deleted.asked.count("metrics") == 1
    assert list((tmp_path / "plain").iterdir()) == []
