"""A training loop that ends before its last step: by ``break``, ``return`` or a condition of its own."""

import os
import signal
from pathlib import Path

import pytest

from mlflow_hooks import MigrationExit, trial
from mlflow_hooks.checkpoints import Checkpoints
from mlflow_hooks.journal import points_of

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


def train_in_phases(*, leave_before: int | None = None, fail_in: int | None = None) -> None:
    """Train two phases of five epochs, each counted from 0, with three reports in an epoch."""
    with trial() as t:
        counter = Counter()
        t.track(counter)
        for epoch in t.steps(10):
            if epoch == leave_before:
                t.leave()
            for part in range(3):
                counter.value += 1
                t.log(loss=counter.value, step=epoch % 5)
                if (epoch, part) == (fail_in, 1):
                    raise RuntimeError


@pytest.mark.parametrize("leave_before", [3, 5, 6])
@pytest.mark.parametrize("fail_in", [6, 9])
@pytest.mark.parametrize("repeats_up_to", [None, 4, 5, 7])
def test_a_trial_of_two_phases_logs_what_an_undisturbed_one_logs(
    tmp_path: Path, leave_before: int, fail_in: int, repeats_up_to: int | None
) -> None:
    """An attempt may also save and leave while it still repeats what one before it logged."""
    with pytest.raises(MigrationExit):
        train_in_phases(leave_before=leave_before)
    with pytest.raises(RuntimeError):
        train_in_phases(fail_in=fail_in)
    if repeats_up_to is not None and repeats_up_to > leave_before:
        with pytest.raises(MigrationExit):
            train_in_phases(leave_before=repeats_up_to)
    train_in_phases()
    logged = [(point.step, point.value) for point in points_of(tmp_path / "s.a") if point.key == "loss"]
    assert logged == [(epoch % 5, 3 * epoch + part + 1) for epoch in range(10) for part in range(3)]
