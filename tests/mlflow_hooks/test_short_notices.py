"""A node may go within seconds: checkpoints are fresh by then, and none is begun that cannot be whole."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlflow_hooks import MigrationExit, trial
from mlflow_hooks.checkpoints import pause_after


class Slow:
    """A state that takes ``SAVE_S`` to save, and may hear that it is to leave meanwhile."""

    SAVE_S = 0.2

    def __init__(self, *, asked_in_save: bool = False) -> None:
        self.saves, self.asked_in_save = 0, asked_in_save

    def save(self, folder: Path) -> None:
        self.saves += 1
        if self.asked_in_save:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(self.SAVE_S)
        (folder / "value").write_text("1")

    def load(self, folder: Path) -> None:
        assert (folder / "value").read_text() == "1"


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("SPECON_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SPECON_STATE_ROOT", str(tmp_path))
    monkeypatch.setenv("SPECON_TRIAL_ID", "s.a")
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("took_s", "grace_s", "pause_s"),
    [(0.1, 60.0, 10.0), (2.0, 60.0, 40.0), (15.0, 60.0, 300.0), (16.0, 60.0, 160.0), (6.0, 5.0, 60.0)],
)
def test_checkpoints_are_twice_as_fresh_where_one_takes_longer_than_a_node_may_give(
    took_s: float, grace_s: float, pause_s: float
) -> None:
    assert pause_after(took_s, 10.0, grace_s) == pytest.approx(pause_s)


def asked_after_one_checkpoint(state: Slow) -> None:
    """Save at the first step, and be asked to leave after the second."""
    with pytest.raises(MigrationExit), trial(checkpoint_every_s=0.001) as t:  # noqa: PT012 - leaving is the point
        t.track(state)
        t.begin(10)
        time.sleep(0.01)
        t.finish_step(0)
        t.note_step(1)
        os.kill(os.getpid(), signal.SIGTERM)
        t.save_or_leave()


def goes_on_at() -> int:
    again = trial()
    again.track(Slow())
    return again.next_step


def test_no_save_is_begun_for_which_the_grace_period_is_too_short(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPECON_GRACE_S", "0.1")
    state = Slow()
    asked_after_one_checkpoint(state)
    assert state.saves == 1
    assert "the next attempt goes on at step 1" in capsys.readouterr().err
    assert goes_on_at() == 1


def test_a_save_that_may_be_in_time_is_made() -> None:
    state = Slow()
    asked_after_one_checkpoint(state)
    assert state.saves == 2
    assert goes_on_at() == 2


def test_a_save_that_is_under_way_when_the_request_comes_is_not_made_twice() -> None:
    state = Slow(asked_in_save=True)
    with pytest.raises(MigrationExit), trial(checkpoint_every_s=0.001) as t:  # noqa: PT012 - leaving is the point
        t.track(state)
        t.begin(10)
        time.sleep(0.01)
        t.finish_step(0)
    assert state.saves == 1
    assert goes_on_at() == 1
