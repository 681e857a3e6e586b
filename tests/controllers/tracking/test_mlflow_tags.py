"""Live tags on the trials' runs: only changes, what was decided first, and at a pace that MLflow can bear."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from mlflow.entities import RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.actions import Assessment
from controllers.core.forecast import EndRange, Forecast
from controllers.core.model import Category, Direction, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.tracking.tag_boards import TagBoard, trial_tags
from controllers.tracking.tags import TagWriter
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


def test_a_trial_that_ended_before_mlflow_had_its_run_shows_its_last_node_and_category() -> None:
    written = Written()
    board = TagBoard(lambda: {A: "a"}, trial_tags)
    board.observe(look(RUNNING), {A: Assessment(Category.WATCHING)}, {A: "because"})
    board.observe(look(replace(RUNNING, phase=Phase.SUCCEEDED, nodes=())), {}, {})
    with writer(written) as tags, tags.showing(board):
        until(lambda: len(written.writes) == 1)
    shown = written.writes[0][1]
    assert (shown[contract.TAG_NODE], shown[contract.TAG_CATEGORY]) == ("node-1", "watching")
    assert shown[contract.TAG_REASON] == "because"


SOON, LATER = EndRange(50.0, 60.0, 80.0), EndRange(80.0, 95.0, 120.0)


def foreseen(end: EndRange) -> Forecast:
    return Forecast(10.0, end, {"uid.s": end}, {A: end})


def test_forecast_ends_stand_on_trials_and_sweep_as_instants_and_are_written_again_only_as_news() -> None:
    written = Written()
    runs, sweeps = {A: "a"}, {"uid.s": "s"}
    with writer(written) as tags, tags.forecasts(lambda: runs, lambda: sweeps, lambda at: 1_700_000_000 + at) as board:
        board.tell(foreseen(SOON))
        until(lambda: len(written.writes) == 2)
        board.tell(foreseen(EndRange(51.0, 61.0, 81.0)))
        board.tell(foreseen(EndRange(50.0, 63.0, 80.0)))
        board.tell(foreseen(LATER))
        until(lambda: len(written.writes) == 4)
    assert {run for run, _ in written.writes} == {"a", "s"}
    first, last = written.writes[0][1], written.writes[-1][1]
    assert first == {
        contract.TAG_END: "2023-11-14T22:14:20Z",
        contract.TAG_END_EARLIEST: "2023-11-14T22:14:10Z",
        contract.TAG_END_LATEST: "2023-11-14T22:14:40Z",
    }
    assert last[contract.TAG_END] == "2023-11-14T22:14:55Z"


def test_what_was_decided_goes_before_forecasts() -> None:
    written = Written()
    with (
        writer(written) as tags,
        tags.forecasts(lambda: {A: "a"}, dict, lambda at: at) as forecasts,
        tags.board(lambda: {B: "b"}, trial_tags) as board,
    ):
        forecasts.tell(foreseen(SOON))
        board.observe(look(replace(RUNNING, id=B)), {}, {})
        until(lambda: len(written.writes) == 2)
    assert [run for run, _ in written.writes] == ["b", "a"]


def test_a_forecast_of_a_trial_without_a_run_waits_for_it() -> None:
    written = Written()
    runs: dict[TrialId, str] = {}
    with writer(written) as tags, tags.forecasts(lambda: runs, dict, lambda at: at) as board:
        board.tell(foreseen(SOON))
        time.sleep(0.3)
        assert written.writes == []
        runs[A] = "a"
        until(lambda: len(written.writes) == 1)


@pytest.mark.parametrize(
    ("phase", "outcome"), [(Phase.SUCCEEDED, "diverged"), (Phase.RUNNING, None), (Phase.STOPPED, "stopped")]
)
def test_a_trial_that_ended_as_no_number_has_an_outcome_of_its_own(phase: Phase, outcome: str | None) -> None:
    ended = Trial(TrialId("a"), phase, 1.0, 1.0, 0.0, Direction.MINIMIZE, 0.0, diverged=True)
    assert trial_tags(ended, None, None).get(contract.TAG_OUTCOME) == outcome


def test_a_writer_in_a_hurry_rests_no_more() -> None:
    written = Written()
    others = [replace(RUNNING, id=TrialId(f"uid.s.{n}")) for n in range(20)]
    slow = TagWriter(written, round_s=600.0, rest=1e9)  # type: ignore[arg-type] # only log_batch is used
    with slow as tags, tags.board(lambda: {one.id: one.id for one in others}, trial_tags) as board:
        board.observe(look(*others), {}, {})
        until(lambda: len(written.writes) == 1)
        time.sleep(0.3)
        assert len(written.writes) == 1
        tags.hurry()
        assert board.settle(20.0)
        assert len(written.writes) == len(others)
