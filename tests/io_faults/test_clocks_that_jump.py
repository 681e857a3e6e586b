"""A clock that is wrong, or is set while a trial trains or a sweep is driven, changes stamps and nothing else."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from controllers.core.model import Direction, Sample, TrialId
from controllers.core.progress import merge
from controllers.driving.clock import SweepClock
from controllers.local_run.journals import OverJournals
from controllers.worlds.local.engine_files import StateFile, elapsed_before
from mlflow_hooks.journal import read_unsent
from mlflow_hooks.state_folder import read_ending
from tests.io_faults.training import STEPS, TRIAL, expected, history, train


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("SPECON_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SPECON_STATE_ROOT", str(tmp_path))
    monkeypatch.setenv("SPECON_TRIAL_ID", TRIAL)
    monkeypatch.setenv("SPECON_OBJECTIVE", "loss")
    monkeypatch.setenv("SPECON_ATTEMPT", "")
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("off_s", [600.0, -600.0])
def test_an_attempt_on_a_node_whose_clock_is_off_goes_on_without_a_gap_or_a_double(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off_s: float
) -> None:
    real = time.time
    train("here", stop_at=2)
    monkeypatch.setattr(time, "time", lambda: real() + off_s)
    assert train("elsewhere", stop_at=5).made == [3, 4, 5]
    monkeypatch.setattr(time, "time", real)
    assert train("back").total == sum(range(STEPS))
    assert history(tmp_path / TRIAL) == expected(STEPS)
    ending, now = read_ending(tmp_path / TRIAL), real() * 1000
    assert ending is not None
    assert abs(ending.timestamp - now) < 60_000
    stamps = [point.timestamp for point in read_unsent(tmp_path / TRIAL, 1000)[0]]
    assert all(abs(stamp - now) < 700_000 for stamp in stamps), "of another unit"


def test_a_clock_that_jumps_back_while_nobody_drives_a_run_costs_it_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 600)
    StateFile(tmp_path, lambda: 30.0).save(lambda: "state", urgent=True)
    monkeypatch.setattr(time, "time", real)
    again = StateFile(tmp_path, lambda: 30.0)
    assert (again.load(), again.interrupted_s, elapsed_before(tmp_path)) == ("state", 0.0, 30.0)


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the machine's clock: by so many seconds off what is true."""
    real = time.time
    return lambda seconds: monkeypatch.setattr(time, "time", lambda: real() + seconds)


@pytest.mark.parametrize("off_s", [3600.0, -3600.0, 86_400.0])
def test_a_clock_that_is_set_while_a_run_is_driven_makes_no_interruption(
    tmp_path: Path, turn: Callable[[float], None], off_s: float
) -> None:
    now = 30.0
    store = StateFile(tmp_path, lambda: now)
    store.save(lambda: "state", urgent=True)
    turn(off_s)
    now = 31.0
    store.save(lambda: "state", urgent=False)
    assert store.interrupted_s == 0.0
    assert StateFile(tmp_path, lambda: now).interrupted_s == pytest.approx(0.0, abs=5)
    turn(off_s + 100)
    assert StateFile(tmp_path, lambda: now).interrupted_s == pytest.approx(100.0, abs=5)


@pytest.mark.parametrize("off_s", [3600.0, -3600.0])
def test_a_clock_that_is_set_moves_no_time_of_a_sweep(turn: Callable[[float], None], off_s: float) -> None:
    clock = SweepClock(elapsed=50.0)
    began = clock.epoch()
    turn(off_s)
    assert clock.now() == pytest.approx(50.0, abs=5)
    assert clock.from_epoch(clock.epoch()) == pytest.approx(50.0, abs=5)
    assert clock.epoch() == pytest.approx(began, abs=5)
    # People compare it with their own clock, which was set right.
    assert clock.to_epoch(60.0) == pytest.approx(time.time() + 10, abs=5)


def test_no_time_is_before_its_sweep() -> None:
    assert SweepClock(elapsed=-3000.0).now() >= 0
    assert SweepClock(elapsed=50.0).from_epoch(time.time() - 7200) == 0


def test_a_sweep_goes_on_from_the_newest_that_is_known_of_it_within_a_bound() -> None:
    clock = SweepClock(elapsed=50.0)
    clock.not_before(20.0)
    assert clock.now() == pytest.approx(50.0, abs=5)
    clock.not_before(3700.0)
    assert clock.now() == pytest.approx(3700.0, abs=5)
    clock.not_before(1e300)
    assert clock.now() < 10 * 86_400


@pytest.mark.parametrize("off_s", [3600.0, -3600.0, -86_400.0])
def test_the_last_word_of_a_trial_is_dated_after_what_it_said_before_and_not_in_the_future(off_s: float) -> None:
    name = TrialId("t")
    before, last = Sample(0.5, 3, 40.0), Sample(0.25, 4, 45.0 + off_s)
    source = OverJournals(Scripted({name: before}), lambda: {name: last}, lambda: 50.0)
    (told,) = source.poll().values()
    assert (told.value, told.step) == (0.25, 4)
    assert 40.0 <= told.at <= 50.0
    known = merge(merge(None, before, Direction.MINIMIZE), told, Direction.MINIMIZE)
    assert known is not None
    assert known.latest == 0.25


class Scripted:
    """A source with the same samples at each poll."""

    def __init__(self, samples: Mapping[TrialId, Sample]) -> None:
        self._samples = samples

    def poll(self) -> Mapping[TrialId, Sample]:
        return self._samples
