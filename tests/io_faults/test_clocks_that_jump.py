"""A node's clock that is wrong, or jumps while a trial trains, changes stamps and nothing else."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

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
