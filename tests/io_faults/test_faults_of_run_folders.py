"""What a run on this machine keeps is whole, or as it was, wherever its disk fails; the same command goes on."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from controllers.core.actions import Resize
from controllers.core.forecast import EndRange
from controllers.core.model import Ask, TrialId
from controllers.core.ports import refused
from controllers.core.results import RunResult, TrialResult
from controllers.local_run.run_folder import find_or_make_run, read_result
from controllers.record.actions import ActionFile
from controllers.record.forecasts import ForecastFile, ToldForecast, read_forecasts
from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile, read_timeline
from controllers.worlds.local.engine_files import AskedFile, StateFile, elapsed_before
from controllers.worlds.local.jobs import JobLedger, load_ledger, save_ledger, write_whole
from tests.io_faults.faulty_disk import Fault, FaultyDisk, Spot, every_spot

TICKS = 4
IDENTITY: dict[str, Any] = {"workflow": {"spec": {}}, "policies": ["default"]}
RESULT = RunResult("default", (TrialResult("vae.t0", 1.0, 4.0, "node-1", 1, 2, 0.25),))


def drive(state_dir: Path) -> Path:
    """Keep what a run keeps, in its order, going on where the folder says; return the folder under the policy."""
    folder = find_or_make_run(state_dir, "vae", IDENTITY, fresh=False)
    with folder.lock():
        folder.describe({"nodes": 4})
        folder.keep_order(IDENTITY)
        kept = folder.of_policy(0, "default")
        ledger = kept / "ledger.json"
        load_ledger(ledger)
        timeline, forecasts = TimelineFile(kept / "timeline.jsonl"), ForecastFile(kept / "forecasts.jsonl")
        actions, asked = ActionFile(kept), AskedFile(kept)
        now = elapsed_before(kept)
        store = StateFile(kept, lambda: now)
        done = int(store.load() or 0)
        asked.ask({"t0": Ask.PAUSE})
        for tick in range(done + 1, TICKS + 1):
            now = float(tick)
            assert asked.asked() == {"t0": Ask.PAUSE}
            store.save(lambda tick=tick: str(tick), urgent=False)  # type: ignore[misc]  # it is called at once
            actions.acted(now, Resize(TrialId("a"), 0.2), "because", refused("no room"))
            timeline.append([TimelineEvent(now, EventKind.REPORT, "t0", value=1.0, step=tick)])
            forecasts.append([ToldForecast(now, EndRange(now, now, now))])
            save_ledger(ledger, JobLedger(delays={"a": now}))
        write_whole(kept / "result.json", json.dumps(RESULT.to_dict()).encode())
        folder.describe({"finished": True})
    return kept


def whole(state_dir: Path) -> None:
    """See that every file parses, and that nothing is doubled."""
    for path in state_dir.rglob("*.json"):
        assert isinstance(json.loads(path.read_text()), dict), path
    for part in state_dir.glob("runs/*/00-default"):
        if (part / "timeline.jsonl").exists():
            steps = [event.step for event in read_timeline(part / "timeline.jsonl")]
            assert steps == sorted(set(steps), key=lambda step: step or 0)
            assert set(steps) <= set(range(1, TICKS + 1))


def tried(spot: Spot, state_dir: Path, disk: FaultyDisk) -> None:
    named: str | None = ""
    try:
        with disk.mounted():
            drive(state_dir)
    except OSError as error:
        named = error.filename
    whole(state_dir)
    if named == "":
        assert disk.asked, "nothing was tried"
        return
    assert named, "a person cannot tell which file it was"
    assert Path(named) == state_dir or state_dir in Path(named).parents
    kept = drive(state_dir)
    whole(state_dir)
    assert read_result(kept) == RESULT
    assert len(list(state_dir.glob("runs/*/00-default"))) == 1, "not gone on with"
    if not spot.onwards:
        # Of a tick that was cut off between its state and its records, the records are missing.
        assert len(list(read_timeline(kept / "timeline.jsonl"))) >= TICKS - 1
        assert len(list(read_forecasts(kept / "forecasts.jsonl"))) >= TICKS - 1


def test_what_a_run_keeps_is_never_torn_and_is_gone_on_with_wherever_the_disk_fails(tmp_path: Path) -> None:
    clean = FaultyDisk(tmp_path / "clean")
    with clean.mounted():
        drive(tmp_path / "clean")
    failed: list[str] = []
    spots = every_spot(len(clean.asked))
    for number, spot in enumerate(spots):
        state_dir = tmp_path / str(number)
        disk = FaultyDisk(state_dir, spot)
        try:
            tried(spot, state_dir, disk)
        except Exception as error:  # noqa: BLE001 - each failure is told with its point
            at = disk.asked[spot.number] if spot.number < len(disk.asked) else "never reached"
            failed.append(f"{spot} at {at}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
        shutil.rmtree(state_dir, ignore_errors=True)
    assert not failed, f"{len(failed)} of {len(spots)}:\n" + "\n".join(failed[:40])


def test_a_record_that_could_not_be_written_is_written_once_there_is_room(tmp_path: Path) -> None:
    timeline = TimelineFile(tmp_path / "timeline.jsonl")
    timeline.append([TimelineEvent(0.0, EventKind.REPORT, "a", step=0)])
    with FaultyDisk(tmp_path, Spot(Fault.SHORT, 1, onwards=True)).mounted():
        for step in (1, 2):
            timeline.append([TimelineEvent(1.0, EventKind.REPORT, "a", step=step)])
    timeline.append([TimelineEvent(2.0, EventKind.REPORT, "a", step=3)])
    assert [event.step for event in read_timeline(tmp_path / "timeline.jsonl")] == [0, 1, 2, 3]


def test_a_run_that_cannot_be_read_is_not_taken_for_another(tmp_path: Path) -> None:
    path = find_or_make_run(tmp_path, "vae", IDENTITY, fresh=False).path
    disk = FaultyDisk(path, Spot(Fault.UNREADABLE, 0, onwards=True), reads=True)
    with disk.mounted(), pytest.raises(OSError, match=r"run\.json"):
        find_or_make_run(tmp_path, "vae", IDENTITY, fresh=False)
