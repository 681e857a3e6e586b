"""A trial's log is followed in looks that are bounded, whatever its script prints."""

import os
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from controllers.core import labels
from controllers.core.model import Phase, TrialId
from controllers.local_run import looks, printed_training
from controllers.local_run.printed_objectives import PrintedObjectives
from controllers.worlds.local.jobs import LocalJob, file_name
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract
from mlflow_hooks.bounds import LONGEST_LINE, MOST_POINTS, NEWEST, READ_S

TRIAL = "uid.s.a"


def job(phase: Phase = Phase.RUNNING, trial: str = TRIAL) -> LocalJob:
    notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_DIRECTION: "minimize"}
    step = PodStep(trial, "t", ("x",), env={contract.ENV_TRIAL_ID: trial}, labels={labels.LABEL_SWEEP: "s"})
    return replace(LocalJob(replace(step, annotations=notes), 0.0, 1.0), phase=phase, attempt=1)


class Following:
    """Follows logs of trials in a folder, by a clock that goes on with each question for it."""

    def __init__(self, folder: Path, tick_s: float = 0.0) -> None:
        self._folder = folder
        (folder / "logs").mkdir()
        self.said: list[str] = []
        self._ticks = (tick_s * number for number in count())
        self.waited_s = 0.0
        self.printed = PrintedObjectives(folder, self.said.append, lambda: 0.0, self.now)

    def now(self) -> float:
        return self.waited_s + next(self._ticks)

    def write(self, text: bytes, trial: str = TRIAL) -> None:
        with (self._folder / "logs" / f"{file_name(trial)}.log").open("ab") as log:
            log.write(text)

    def values(self, trial: str = TRIAL) -> list[float]:
        return [point.value for point in self.printed.points(job(trial=trial))]


def test_of_a_flood_a_look_reads_a_part_and_the_next_ones_go_on(tmp_path: Path) -> None:
    following = Following(tmp_path, tick_s=0.05)
    following.write(b"loss: 0.5\n" * 20_000 + b"loss: 0.25\n")
    assert not following.printed.look([job(Phase.SUCCEEDED)])
    read = len(following.values())
    assert 0 < read < 20_000
    assert not following.printed.look([job(Phase.SUCCEEDED)])
    assert len(following.values()) > read
    following.printed.read_all([job(Phase.SUCCEEDED)], lambda: False)
    assert following.values()[-1] == 0.25
    assert following.said == []


def test_a_log_that_grows_faster_than_it_can_be_read_is_read_at_its_beginning_and_its_end_and_that_is_said_once(
    tmp_path: Path,
) -> None:
    following = Following(tmp_path, tick_s=0.2)
    following.write(b"loss: 0.5\n" * 100_000 + b"loss: 0.125\n")
    following.printed.read_all([job(Phase.SUCCEEDED)], lambda: False)
    values = following.values()
    assert values[0] == 0.5
    assert values[-1] == 0.125
    assert len(values) * len(b"loss: 0.5\n") < READ_S / 0.2 * 2**16 + NEWEST
    (said,) = following.said
    assert said.startswith(f"{TRIAL} printed faster than it can be followed: ")
    passed = int(said.split()[8])
    assert len(b"loss: 0.5\n") * 100_000 * 0.2 < passed < len(b"loss: 0.5\n") * 100_000


def test_a_flood_uses_up_its_time_and_gets_some_back(tmp_path: Path) -> None:
    following = Following(tmp_path, tick_s=0.2)
    following.write(b"loss: 0.5\n" * 100_000)
    for _ in range(100):
        following.printed.look([job()])
    read = len(following.values())
    following.printed.look([job()])
    assert len(following.values()) == read
    following.write(b"loss: 0.0625\n")
    following.waited_s = 1000.0
    following.printed.read_all([job(Phase.SUCCEEDED)], lambda: False)
    assert following.values()[-1] == 0.0625


def test_a_flood_keeps_no_other_trial_from_being_read(tmp_path: Path) -> None:
    following = Following(tmp_path, tick_s=0.05)
    for number in range(8):
        following.write(b"loss: 0.5\n" * 50_000, f"uid.s.{number}")
    following.write(b"loss: 0.25\n", "uid.s.last")
    jobs = [*(job(trial=f"uid.s.{number}") for number in range(8)), job(trial="uid.s.last")]
    for _ in range(8):
        following.printed.look(jobs)
    assert following.values("uid.s.last") == [0.25]


def test_only_so_many_values_are_kept_and_the_curve_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed_training, "MOST_POINTS", 100)
    following = Following(tmp_path)
    following.write(b"".join(b"loss: %d\n" % number for number in range(1000)))
    following.printed.look([job()])
    values = following.values()
    assert MOST_POINTS > 100 >= len(values)
    assert (values[0], values[-1]) == (0, 999)
    assert values == sorted(values)
    (sample,) = following.printed.samples((), float).values()
    assert (sample.step, sample.first, sample.best) == (999, 0, 0)


@pytest.mark.parametrize("tick_s", [0.0, 0.2])
def test_of_a_line_that_never_ends_no_more_than_its_end_is_kept(tmp_path: Path, tick_s: float) -> None:
    following = Following(tmp_path, tick_s)
    for _ in range(40):
        following.write(b"x" * LONGEST_LINE)
        following.printed.look([job()])
    assert len(following.printed._followed[TRIAL].rest) <= LONGEST_LINE
    following.write(b"\nloss: 0.5\n")
    following.printed.read_all([job(Phase.SUCCEEDED)], lambda: False)
    assert following.values() == [0.5]


def test_more_than_can_wait_is_passed_over_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "MOST_BEHIND", 30)
    following = Following(tmp_path)
    following.write(b"loss: 1\n" * 100 + b"loss: 0.5\n" * 3)
    following.printed.look([job(Phase.SUCCEEDED)])
    assert following.values() == [0.5, 0.5]  # the first whole line after what was passed over
    assert "800 bytes" in following.said[0]


@pytest.mark.parametrize("made", ["a pipe", "a folder", "nothing"])
def test_what_is_no_log_holds_nothing_up(tmp_path: Path, made: str) -> None:
    following = Following(tmp_path)
    log = tmp_path / "logs" / f"{file_name(TRIAL)}.log"
    if made == "a pipe":
        os.mkfifo(log)
    elif made == "a folder":
        log.mkdir()
    following.printed.read_all([job(Phase.SUCCEEDED)], lambda: False)
    assert following.printed.samples((), float) == {}


def test_reading_ends_where_the_run_is_stopped(tmp_path: Path) -> None:
    following = Following(tmp_path, tick_s=0.05)
    following.write(b"loss: 0.5\n" * 100_000)
    following.printed.read_all([job(Phase.SUCCEEDED)], lambda: True)
    assert 0 < len(following.values()) < 100_000


def test_the_value_of_a_line_of_digits_is_told_in_short(tmp_path: Path) -> None:
    following = Following(tmp_path)
    following.write(b"loss: " + b"1" * 4000 + b"\n")
    following.printed.look([job()])
    assert following.values() == []
    assert len(following.said[0]) < 600
    assert TrialId(TRIAL) not in following.printed.samples((), float)
