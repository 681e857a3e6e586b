"""What goes wrong in one namespace, sweep or run delays no other."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal

import pytest
from mlflow.entities import RunTag
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

from controllers.core.model import Direction, Phase, Sample, Snapshot, Trial, TrialId
from controllers.tracking import background, tags
from controllers.tracking.background import BackgroundReader
from controllers.tracking.tag_boards import trial_tags
from controllers.tracking.tags import TagWriter
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.calls.write_queue import WriteQueue
from controllers.worlds.argo.meaning.view import ClusterView
from tests.controllers.worlds.argo.conftest import TIMING, eventually, fake  # noqa: F401 - a fixture
from tests.controllers.worlds.argo.fake_api import Call, FakeApi
from tests.controllers.worlds.argo.objects import node, workflow

VICTIM, GREEDY = "victim", "greedy"


def of_namespace(namespace: str) -> Callable[[Call], tuple[int, str] | None]:
    return lambda call: (403, "forbidden") if f"/namespaces/{namespace}/" in call.path else None


def sweep_in(fake_api: FakeApi, namespace: str) -> None:
    made = workflow()
    made["metadata"] |= {"namespace": namespace, "uid": f"uid-{namespace}", "annotations": {}}
    fake_api.store.put("workflows", made)


@pytest.fixture
def view(fake: FakeApi) -> Iterator[ClusterView]:  # noqa: F811
    fake.store.put("nodes", node("n1"))
    for namespace in (VICTIM, GREEDY):
        sweep_in(fake, namespace)
    api = fake.client()
    with ClusterView(api, [VICTIM, GREEDY], TIMING) as made:
        yield made
    api.close()


def steered(view: ClusterView) -> set[str]:
    return {campaign.namespace for campaign in view.campaigns("default")}


def test_a_namespace_that_may_not_be_looked_at_keeps_no_other_from_being_steered_after_a_restart(
    fake: FakeApi,  # noqa: F811
) -> None:
    fake.fault = of_namespace(GREEDY)
    fake.store.put("nodes", node("n1"))
    sweep_in(fake, VICTIM)
    api = fake.client()
    with ClusterView(api, [VICTIM, GREEDY], TIMING) as view:
        assert view.wait_synced(10)
        assert steered(view) == {VICTIM}
        assert any("forbidden" in refusal for refusal in view.refusals())
    api.close()


def test_a_namespace_whose_binding_is_taken_away_goes_stale_alone_and_its_sweeps_are_not_gone(
    fake: FakeApi,  # noqa: F811
    view: ClusterView,
) -> None:
    assert view.wait_synced(10)
    fake.fault = of_namespace(GREEDY)
    fake.cut_watches.set()
    eventually(view.refusals)
    fake.cut_watches.clear()
    eventually(lambda: view.age_s(GREEDY) > 3.5)
    assert view.age_s(VICTIM) < 3.0
    assert view.age_s() < 3.0
    assert view.synced()
    assert steered(view) == {VICTIM, GREEDY}
    fake.fault = lambda _: None
    eventually(lambda: not view.refusals() and view.age_s(GREEDY) < 3.0)


def ignore(_: ApiError | None) -> None:
    """Nobody minds."""


def test_signals_that_hang_in_one_namespace_hold_up_neither_its_other_changes_nor_another_namespace() -> None:
    writes, gate = WriteQueue(), threading.Event()
    made: list[str] = []
    others: list[tuple[str, Literal["signals", "writes"]]] = [
        (VICTIM, "signals"),
        (VICTIM, "writes"),
        (GREEDY, "writes"),
    ]
    for number in range(50):
        writes.submit(f"hung-{number}", partial(_wait, gate), ignore, namespace=GREEDY, kind="signals")
    for namespace, kind in others:
        key = f"{namespace}-{kind}"
        writes.submit(key, partial(made.append, key), ignore, namespace=namespace, kind=kind)
    eventually(lambda: len(made) == 3)
    gate.set()
    writes.close()


def _wait(gate: threading.Event) -> None:
    gate.wait(20)


class Source:
    """Takes its time to be read."""

    def __init__(self, takes_s: float) -> None:
        self.takes_s, self.polls = takes_s, 0

    def poll(self) -> Mapping[TrialId, Sample]:
        time.sleep(self.takes_s)
        self.polls += 1
        return {}


def test_sweeps_whose_metrics_take_long_to_read_leave_the_others_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_OWNER_S", 0.1)
    slow, quick = [Source(0.2) for _ in range(10)], Source(0.0)
    with BackgroundReader(0.02) as reader:
        follows = [reader.follow(one, GREEDY) for one in slow] + [reader.follow(quick, VICTIM)]
        for one in follows:
            one.__enter__()
        eventually(lambda: all(one.polls for one in slow), 60.0)
        assert quick.polls >= 8
        for one in follows:
            one.__exit__(None, None, None)


class Tagged:
    """An MLflow that refuses some runs, breaks over others, and takes its time."""

    def __init__(self, *, takes_s: float = 0.0) -> None:
        self.takes_s = takes_s
        self.asked: list[str] = []
        self.written: list[str] = []

    def log_batch(self, run_id: str, tags: list[RunTag]) -> None:
        del tags
        self.asked.append(run_id)
        time.sleep(self.takes_s)
        if run_id.startswith("deleted"):
            message = "the run is deleted"
            raise MlflowException(message, error_code=INVALID_PARAMETER_VALUE)
        if run_id.startswith("breaks"):
            message = "internal error"
            raise MlflowException(message)
        self.written.append(run_id)


def trials(*names: str) -> Snapshot:
    made = [Trial(TrialId(name), Phase.RUNNING, 0.1, 0.1, 0.0, Direction.MINIMIZE, 0.0, (), 1) for name in names]
    return Snapshot(0.0, tuple(made), ())


@pytest.mark.parametrize("bad", ["deleted", "breaks"])
def test_a_run_that_takes_no_tags_keeps_no_other_from_its_own_and_is_asked_less_and_less(bad: str) -> None:
    mlflow = Tagged()
    ids = {TrialId(name): name for name in (bad, "good", "other")}
    with (
        TagWriter(mlflow, round_s=0.01, again_s=0.1) as writer,  # type: ignore[arg-type] # only log_batch is used
        writer.board(lambda: ids, trial_tags, GREEDY) as greedy,
        writer.board(lambda: ids, trial_tags, VICTIM) as victim,
    ):
        greedy.observe(trials(bad, "good"), {}, {})
        victim.observe(trials("other"), {}, {})
        eventually(lambda: sorted(mlflow.written) == ["good", "other"])
        time.sleep(2.0)
        asked = mlflow.asked.count(bad)
    assert asked < (8 if bad == "deleted" else 16)


def test_the_many_tags_of_one_namespace_leave_the_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tags, "_OWNER_S", 0.1)
    mlflow = Tagged(takes_s=0.01)
    crowd = [f"crowd-{number}" for number in range(500)]
    ids = {TrialId(name): name for name in (*crowd, "other")}
    with (
        TagWriter(mlflow, round_s=0.01, again_s=0.1) as writer,  # type: ignore[arg-type] # only log_batch is used
        writer.board(lambda: ids, trial_tags, GREEDY) as greedy,
        writer.board(lambda: ids, trial_tags, VICTIM) as victim,
    ):
        greedy.observe(trials(*crowd), {}, {})
        eventually(lambda: mlflow.written)
        victim.observe(trials("other"), {}, {})
        eventually(lambda: "other" in mlflow.written)
        assert len(mlflow.written) < 50


def test_each_of_the_many_sweeps_of_a_namespace_gets_its_tags_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tags, "_OWNER_S", 0.05)
    mlflow = Tagged(takes_s=0.01)
    crowd = [f"crowd-{number}" for number in range(200)]
    ids = {TrialId(name): name for name in (*crowd, "other")}
    with (
        TagWriter(mlflow, round_s=0.01, again_s=0.1) as writer,  # type: ignore[arg-type] # only log_batch is used
        writer.board(lambda: ids, trial_tags, GREEDY) as first,
        writer.board(lambda: ids, trial_tags, GREEDY) as second,
    ):
        first.observe(trials(*crowd), {}, {})
        second.observe(trials("other"), {}, {})
        eventually(lambda: "other" in mlflow.written)
        assert len(mlflow.written) < 50
