"""Live tags on the trials' runs: only changes, what was decided first, and at a pace that MLflow can bear."""

import time
from collections.abc import Callable
from dataclasses import replace

from mlflow.entities import RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.model import Assessment, Category, Direction, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.tracking.tags import TagWriter, trial_tags
from mlflow_hooks import contract

A, B = TrialId("uid.s.a"), TrialId("uid.s.b")
RUNNING = Trial(A, Phase.RUNNING, 0.1, 0.1, 0.0, Direction.MINIMIZE, 0.0, (NodeName("node-1"),), 1)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Written:
    """Takes tags; refuses the first ``refusals`` times."""

    def __init__(self, client: MlflowClient | None = None, refusals: int = 0) -> None:
        self.client, self.refusals = client, refusals
        self.writes: list[tuple[str, dict[str, str]]] = []

    def log_batch(self, run_id: str, tags: list[RunTag]) -> None:
        if self.refusals:
            self.refusals -= 1
            message = "away"
            raise MlflowException(message)
        self.writes.append((run_id, {tag.key: tag.value for tag in tags}))
        if self.client is not None:
            self.client.log_batch(run_id, tags=tags)


def look(*trials: Trial) -> Snapshot:
    return Snapshot(0.0, trials, ())


def writer(written: Written) -> TagWriter:
    return TagWriter(written, again_s=0.1)  # type: ignore[arg-type] # only log_batch is used


def test_tags_follow_the_trial_and_only_changes_are_written(client: MlflowClient) -> None:
    run = client.create_run(client.create_experiment("tags")).info.run_id
    written = Written(client)
    assessed = {A: Assessment(Category.WATCHING, 0.0123)}
    moved = replace(RUNNING, nodes=(NodeName("node-2"),), attempt=2, moves=1)
    with writer(written) as tags, tags.board(lambda: {A: run}, trial_tags) as board:
        board.observe(look(RUNNING), assessed, {A: "because"})
        until(lambda: len(written.writes) == 1)
        board.observe(look(RUNNING), assessed, {A: "because"})
        board.observe(look(moved), assessed, {A: "because"})
        until(lambda: len(written.writes) == 2)
    shown = client.get_run(run).data.tags
    assert [len(tags) for _, tags in written.writes] == [6, 2]
    assert shown[contract.TAG_NODE] == "node-2"
    assert shown[contract.TAG_MOVES] == "1"
    assert (shown[contract.TAG_CATEGORY], shown[contract.TAG_GROWTH]) == ("watching", "0.0123")
    assert shown[contract.TAG_REASON] == "because"


def test_what_was_decided_goes_before_how_a_trial_grows() -> None:
    written = Written()
    growing = {A: Assessment(Category.WATCHING, 0.5)}
    other = replace(RUNNING, id=B)
    with writer(written) as tags, tags.board(lambda: {A: "a", B: "b"}, trial_tags) as board:
        board.observe(look(RUNNING), growing, {})
        until(lambda: len(written.writes) == 1)
        board.observe(look(RUNNING, other), {A: Assessment(Category.WATCHING, 0.4)}, {})
        until(lambda: len(written.writes) == 3)
    assert [run for run, _ in written.writes] == ["a", "b", "a"]
    assert written.writes[2][1] == {contract.TAG_GROWTH: "0.4"}


def test_boards_of_several_sweeps_share_a_writer() -> None:
    written = Written()
    other = replace(RUNNING, id=B)
    with (
        writer(written) as tags,
        tags.board(lambda: {A: "a"}, trial_tags) as one,
        tags.board(lambda: {B: "b"}, trial_tags) as two,
    ):
        one.observe(look(RUNNING), {}, {})
        two.observe(look(other), {}, {})
        until(lambda: len(written.writes) == 2)
    assert {run for run, _ in written.writes} == {"a", "b"}


def test_what_mlflow_refused_is_written_when_it_is_back() -> None:
    written = Written(refusals=1)
    with writer(written) as tags, tags.board(lambda: {A: "a"}, trial_tags) as board:
        board.observe(look(RUNNING), {}, {})
        until(lambda: len(written.writes) == 1)
    assert written.writes[0][1][contract.TAG_NODE] == "node-1"
