"""A training loop that ends before its last step: by ``break``, ``return`` or a condition of its own."""

import os
import signal
from pathlib import Path

import pytest

from mlflow_hooks import MigrationExit, trial
from mlflow_hooks.checkpoints import Checkpoints

pytestmark = pytest.mark.usefixtures("in_this_process")


class Counter:
    """A state with one number."""

    value = 0

    def save(self, folder: Path) -> None:
        (folder / "value").write_text(str(self.value))

    def load(self, folder: Path) -> None:
        self.value = int((folder / "value").read_text())


def kept(folder: Path) -> tuple[int, str] | None:
    """Return the step and the value of the newest checkpoint."""
    newest = Checkpoints(folder / "s.a" / "checkpoints").newest()
    return (newest.step, (newest.folder / "state-0" / "value").read_text()) if newest else None


def test_a_loop_left_by_break_keeps_what_came_out(tmp_path: Path) -> None:
    with trial() as t:
        counter = Counter()
        t.track(counter)
        for step in t.steps(100):
            counter.value += 1
            if step == 6:
                break
    assert kept(tmp_path) == (7, "7")


def test_a_loop_left_in_its_last_step_keeps_that_step(tmp_path: Path) -> None:
    with trial() as t:
        counter = Counter()
        t.track(counter)
        for step in t.steps(5):
            counter.value += 1
            if step == 4:
                break
    assert kept(tmp_path) == (5, "5")


def test_a_function_that_returns_out_of_its_loop_keeps_what_came_out(tmp_path: Path) -> None:
    counter = Counter()

    def train() -> None:
        with trial() as t:
            t.track(counter)
            for step in t.steps(100):
                counter.value += 1
                if step == 2:
                    return

    train()
    assert kept(tmp_path) == (3, "3")


def test_a_loop_without_steps_that_does_not_say_that_it_is_through_keeps_what_came_out(tmp_path: Path) -> None:
    with trial() as t:
        counter = Counter()
        t.track(counter)
        t.begin()
        step = t.next_step
        while counter.value < 4:
            counter.value += 1
            t.finish_step(step)
            step += 1
    assert kept(tmp_path) == (4, "4")


def test_a_loop_that_an_error_ends_keeps_no_half_done_step(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a mistake"), trial() as t:  # noqa: PT012 - leaving is the point
        counter = Counter()
        t.track(counter)
        for step in t.steps(100):
            counter.value += 1
            if step == 6:
                message = "a mistake"
                raise ValueError(message)
    assert kept(tmp_path) is None


def test_a_loop_left_by_break_after_it_was_asked_to_leave_goes_on_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(MigrationExit), trial(checkpoint_every_s=0) as t:  # noqa: PT012 - leaving is the point
        counter = Counter()
        t.track(counter)
        for step in t.steps(100):
            counter.value += 1
            if step == 6:
                os.kill(os.getpid(), signal.SIGTERM)
                break
    found = kept(tmp_path)
    assert found is not None
    assert found[0] <= 6
    assert found[1] == str(found[0])
