"""What a local run keeps over the death of its controller."""

import json
import time
from pathlib import Path

import pytest

from controllers.core.actions import Resize
from controllers.core.model import TrialId
from controllers.core.ports import refused
from controllers.driving.clock import SweepClock
from controllers.record.actions import ActionFile
from controllers.worlds.local.engine_files import StateFile, elapsed_before


def test_a_new_run_has_no_state_and_no_time_behind_it(tmp_path: Path) -> None:
    assert StateFile(tmp_path, SweepClock().now).load() is None
    assert elapsed_before(tmp_path) == 0


def test_the_next_controller_finds_the_newest_state_and_goes_on_at_its_time(tmp_path: Path) -> None:
    store = StateFile(tmp_path, SweepClock(elapsed=41.5).now)
    store.save(lambda: "one", urgent=True)
    store.save(lambda: "two", urgent=False)
    assert StateFile(tmp_path, SweepClock().now).load() == "two"
    assert elapsed_before(tmp_path) == pytest.approx(41.5, abs=1)


def test_the_time_in_which_nobody_drove_the_sweep_is_told_apart(tmp_path: Path) -> None:
    StateFile(tmp_path, SweepClock().now).save(lambda: "state", urgent=True)
    kept = json.loads((tmp_path / "engine.json").read_text())
    began = time.time() - 100
    (tmp_path / "engine.json").write_text(json.dumps({**kept, "began_epoch_s": began, "elapsed_s": 30.0}))
    again = StateFile(tmp_path, SweepClock(elapsed_before(tmp_path)).now)
    assert again.interrupted_s == pytest.approx(70, abs=2)


def test_each_action_is_recorded_with_its_reason_and_what_came_of_it(tmp_path: Path) -> None:
    ActionFile(tmp_path).acted(3.0, Resize(TrialId("a"), 0.2), "because", refused("no room"))
    (line,) = (tmp_path / "actions.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "at": 3.0,
        "kind": "Resize",
        "trial": "a",
        "cpu": 0.2,
        "reason": "because",
        "outcome": "refused",
        "detail": "no room",
    }
