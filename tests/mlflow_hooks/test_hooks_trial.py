"""The trial object: fencing, tracking, and what it is told."""

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from mlflow_hooks import BadEnvironmentError, MigrationExit, StateMismatchError, trial
from mlflow_hooks.interruption import LATELY_S


class Counter:
    """A state with one number."""

    value = 0

    def save(self, folder: Path) -> None:
        (folder / "value").write_text(str(self.value))

    def load(self, folder: Path) -> None:
        self.value = int((folder / "value").read_text())


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("SPECON_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    for name in ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "1")
    monkeypatch.setenv("SPECON_STATE_ROOT", str(tmp_path))
    monkeypatch.setenv("SPECON_TRIAL_ID", "s.a")
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_attempt_that_was_replaced_writes_nothing_more_and_exits_75(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MigrationExit) as left, trial(checkpoint_every_s=0) as old:  # noqa: PT012 - leaving is the point
        old.track(Counter())
        steps = old.steps(10)
        next(steps)
        old.log(loss=1.0)
        next(steps)
        new = trial()
        before = everything(tmp_path)
        time.sleep(2 * LATELY_S)
        old.log(loss=0.5)
        next(steps)
    assert left.value.code == 75
    assert everything(tmp_path) == before
    assert "a newer attempt owns s.a" in capsys.readouterr().err
    assert new.next_step == 1


def test_a_replaced_attempt_that_fails_does_not_end_the_trial(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), trial() as old:  # noqa: PT012 - leaving the block is the point
        trial()
        old.log(loss=1)
        raise RuntimeError
    assert not (tmp_path / "s.a/ended.json").exists()


def test_several_states_come_back_by_name() -> None:
    first, second = Counter(), Counter()
    with trial() as t:
        t.track(first)
        t.track(second, "second")
        for step in t.steps(4):
            first.value, second.value = step, 10 * step
    again_first, again_second = Counter(), Counter()
    with trial() as t:
        t.track(again_first)
        t.track(again_second, "second")
        assert list(t.steps(4)) == []
    assert (again_first.value, again_second.value) == (3, 30)


def test_tracking_other_states_than_the_checkpoint_holds_is_an_error() -> None:
    with trial() as t:
        t.track(Counter(), "model")
        list(t.steps(2))
    t = trial()
    t.track(Counter(), "modle")
    with pytest.raises(StateMismatchError, match=r"\['model'\].*\['modle'\]"):
        list(t.steps(3))


def test_without_a_tracked_state_nothing_pretends_to_be_resumable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with trial() as t:
        list(t.steps(2))
    assert "nothing is tracked" in capsys.readouterr().err
    assert list((tmp_path / "s.a/checkpoints").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SPECON_TRIAL_ID", "../b"),
        ("SPECON_TRIAL_PARAMS", "lr=1"),
        ("SPECON_TRIAL_PARAMS", "[1]"),
        ("SPECON_DIRECTION", "up"),
        ("SPECON_CPUS", "two"),
        ("SPECON_CPUS", "0"),
        ("SPECON_FLUSH_S", "soon"),
        ("SPECON_FLUSH_S", "-1"),
        ("SPECON_FLUSH_S", "inf"),
    ],
)
def test_an_environment_that_makes_no_sense_is_refused_with_its_value(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadEnvironmentError) as refused:
        trial()
    assert value in str(refused.value)


def test_a_negative_interval_is_refused() -> None:
    with pytest.raises(BadEnvironmentError, match=r"checkpoint_every_s.*-1"):
        trial(checkpoint_every_s=-1)


def test_the_environment_wins_over_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECON_TRIAL_PARAMS", json.dumps({"lr": 0.5}))
    monkeypatch.setenv("SPECON_OBJECTIVE", "loss")
    with trial(params={"lr": 0.1, "units": 8}, objective="accuracy") as t:
        assert (t.params, t.objective) == ({"lr": 0.5, "units": 8}, "loss")


def test_the_environment_says_how_long_an_ended_trial_waits_for_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trial(flush_s=1).settings.flush_s == 1
    monkeypatch.setenv("SPECON_FLUSH_S", "300")
    assert trial(flush_s=1).settings.flush_s == 300


def test_a_script_run_by_hand_gets_a_folder_of_its_own_and_gives_sigterm_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPECON_TRIAL_ID")
    monkeypatch.delenv("SPECON_STATE_ROOT")
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    for _ in range(2):
        with trial(params={"lr": 0.1}) as t:
            t.log(loss=1.0, step=0)
            t.log({"val/loss": 2.0}, step=3)
    folders = list((tmp_path / ".specon/by-hand").iterdir())
    assert len(folders) == 2
    assert [len((folder / "points.jsonl").read_text().splitlines()) for folder in folders] == [2, 2]
    assert signal.getsignal(signal.SIGTERM) == before


def log_steps(steps: Iterable[int]) -> None:
    with trial() as t:
        for step in steps:
            t.log({"loss": 1.0}, step=step)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (range(7), [8, 9], "step 7 is missing in the history of loss"),
        (range(7), [10, 11], "steps 7 to 9 are missing"),
        (range(4, 30, 5), [39], "step 34 is missing"),
    ],
)
def test_a_gap_in_the_history_after_a_resume_is_told_with_its_steps(
    before: range, after: list[int], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log_steps(before)
    log_steps(after)
    assert capsys.readouterr().err.count(told) == 1


@pytest.mark.parametrize("after", [[7, 8], [3, 4, 5, 6, 7, 8]])
def test_a_history_that_goes_on_where_it_ended_gives_no_warning(
    after: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    log_steps(range(7))
    log_steps(after)
    assert "missing" not in capsys.readouterr().err


def test_metrics_that_come_every_few_steps_give_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    log_steps(range(4, 30, 5))
    log_steps([34, 39])
    assert "missing" not in capsys.readouterr().err


def test_a_loop_of_ones_own_that_finishes_early_after_a_stop_request_is_saved_and_goes_on(tmp_path: Path) -> None:
    with pytest.raises(MigrationExit), trial() as t:  # noqa: PT012 - leaving is the point
        t.track(Counter())
        signal.signal(signal.SIGTERM, lambda _number, _frame: None)
        t.begin(10)
        for step in range(4):
            t.finish_step(step)
        os.kill(os.getpid(), signal.SIGTERM)
        t.finish_training()
    assert not (tmp_path / "s.a/ended.json").exists()
    assert trial().next_step == 4


def test_early_stopping_without_a_stop_request_is_a_success(tmp_path: Path) -> None:
    with trial() as t:
        t.track(Counter())
        t.begin(10)
        t.finish_step(0)
        t.finish_training()
    assert json.loads((tmp_path / "s.a/ended.json").read_text())["status"] == "FINISHED"


def test_a_long_step_is_left_only_where_the_newest_checkpoint_holds_all_steps_before_it() -> None:
    with pytest.raises(MigrationExit), trial(checkpoint_every_s=3600) as t:  # noqa: PT012 - leaving is the point
        t.track(Counter())
        t.begin(10)
        t.note_step(0)
        os.kill(os.getpid(), signal.SIGTERM)
        t.leave_if_saved()
        assert t.saving_due
        t.save_or_leave()
    assert t.saved
    again = trial()
    again.track(Counter())
    again.begin(10)
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(MigrationExit):
        again.leave_if_saved()


def test_a_second_training_in_one_trial_can_be_left_too() -> None:
    with pytest.raises(MigrationExit), trial() as t:  # noqa: PT012 - leaving is the point
        t.track(Counter())
        for step in t.steps(2):
            t.log(loss=1.0, step=step)
        for step in t.steps(5):
            os.kill(os.getpid(), signal.SIGTERM)
            t.log(loss=1.0, step=step)
    assert trial().next_step == 3
