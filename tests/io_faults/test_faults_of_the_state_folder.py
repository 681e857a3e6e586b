"""Whatever the disk does, at any point: the training trains on, and the next attempt goes on from what was kept."""

import math
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlflow_hooks import checkpoints, contract, saving
from mlflow_hooks.checkpoints import Checkpoints
from tests.io_faults.faulty_disk import Fault, FaultyDisk, Spot, every_spot
from tests.io_faults.training import STEPS, TRIAL, Attempt, expected, history, logged_once, train

FIRST_STOP, SECOND_STOP = 2, 5
MIGRATE = contract.EXIT_MIGRATE


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("SPECON_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SPECON_STATE_ROOT", str(tmp_path / "state"))
    monkeypatch.setenv("SPECON_TRIAL_ID", TRIAL)
    monkeypatch.setenv("SPECON_OBJECTIVE", "loss")
    monkeypatch.setenv("SPECON_ATTEMPT", "")
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def under(spot: Spot | None, state: Path, stop_at: int | None, *, reads: bool = False) -> tuple[Attempt, FaultyDisk]:
    disk = FaultyDisk(state, spot, reads)
    with disk.mounted():
        return train("faulty", stop_at=stop_at), disk


def begun(state: Path, before: Path) -> None:
    """Put back the state folder as the attempt before left it."""
    shutil.rmtree(state, ignore_errors=True)
    if before.exists():
        shutil.copytree(before, state)


def checked(spot: Spot, state: Path, stop_at: int | None, told: str, went: Attempt) -> None:
    # A checkpoint that can be read no more after it was found to be whole is left to another attempt.
    unread = spot.fault is Fault.UNREADABLE and spot.onwards and "leaving it to the next attempt" in told
    assert went.code == (0 if stop_at is None and not unread else MIGRATE), "harmed by its own bookkeeping"
    last = STEPS - 1 if stop_at is None else stop_at
    assert unread or went.made == list(range(went.began, last + 1))
    lines = Counter(line for line in told.splitlines() if line.startswith("mlflow_hooks:"))
    assert all(times == 1 for times in lines.values()), "said more than once"
    if stop_at is None and not unread:
        found = history(state / TRIAL)
        assert found == expected(len(found)), "a gap or a double"
        if not spot.onwards:
            assert len(found) == STEPS, "lost"
        return
    after = train("after")
    assert after.began >= went.saved, "lost a checkpoint that was acknowledged"
    assert after.total == sum(range(STEPS)), "went on from a torn or wrong checkpoint"
    assert after.code == 0
    assert history(state / TRIAL) == expected(STEPS)
    for once in (contract.METRIC_OBJECTIVE_FIRST, contract.METRIC_STEPS_TOTAL):
        assert logged_once(state / TRIAL, once) == 1


@pytest.mark.parametrize(
    "stop_at", [SECOND_STOP, pytest.param(None, marks=pytest.mark.slow)], ids=["asked to leave", "to the end"]
)
@pytest.mark.parametrize(
    "resumed", [pytest.param(False, marks=pytest.mark.slow), True], ids=["first attempt", "later attempt"]
)
@pytest.mark.parametrize("reads", [False, True], ids=["writing", "reading"])
def test_a_disk_that_fails_at_any_point_harms_no_training_and_loses_nothing_that_was_kept(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    stop_at: int | None,
    resumed: bool,  # noqa: FBT001 - a parameter
    reads: bool,  # noqa: FBT001 - a parameter
) -> None:
    try_every_spot(tmp_path, capsys, stop_at, resumed=resumed, reads=reads)


@pytest.mark.slow
@pytest.mark.parametrize("stop_at", [SECOND_STOP, None], ids=["asked to leave", "to the end"])
def test_a_disk_that_fails_while_a_thread_writes_harms_no_training_and_loses_nothing_that_was_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stop_at: int | None
) -> None:
    monkeypatch.setattr(saving, "BESIDE_BYTES", 0)
    monkeypatch.setattr(checkpoints, "SAVING_SHARE", math.inf)
    try_every_spot(tmp_path, capsys, stop_at, resumed=True, reads=False)


def try_every_spot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stop_at: int | None, *, resumed: bool, reads: bool
) -> None:
    state, before = tmp_path / "state", tmp_path / "before"
    if resumed:
        train("before", stop_at=FIRST_STOP)
        shutil.copytree(state, before)
    points = len(under(None, state, stop_at, reads=reads)[1].asked)
    assert points > 30
    spots = every_spot(points, (Fault.UNREADABLE,)) if reads else every_spot(points)
    failed: list[str] = []
    for spot in spots:
        begun(state, before)
        capsys.readouterr()
        disk = FaultyDisk(state, spot, reads)
        try:
            with disk.mounted():
                went = train("faulty", stop_at=stop_at)
            checked(spot, state, stop_at, capsys.readouterr().err, went)
        except (Exception, AssertionError) as error:  # noqa: BLE001 - each failure is told with its point
            at = disk.asked[spot.number] if spot.number < len(disk.asked) else "never reached"
            failed.append(f"{spot} at {at}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
    assert not failed, f"{len(failed)} of {len(spots)}:\n" + "\n".join(failed[:40])


def test_a_checkpoint_that_cannot_be_read_now_is_kept_for_the_next_attempt(tmp_path: Path) -> None:
    state = tmp_path / "state"
    train("before", stop_at=FIRST_STOP)
    folder = state / TRIAL / "checkpoints"
    kept = {path.name for path in folder.iterdir()}
    assert len(kept) > 1

    def begin(spot: Spot | None) -> FaultyDisk:
        disk = FaultyDisk(state, spot, reads=True)
        with disk.mounted():
            found = Checkpoints(folder)
            found.newest()
            found.clean()
        return disk

    for spot in every_spot(len(begin(None).asked), (Fault.UNREADABLE,)):
        begin(spot)
        assert {path.name for path in folder.iterdir()} == kept, str(spot)
