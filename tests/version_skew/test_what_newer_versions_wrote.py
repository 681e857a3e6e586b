"""What a newer version kept is read as far as it is known, or refused in words: no crash, again and again."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from controllers.core.engine import Memory
from controllers.core.errors import SpeconError
from controllers.core.results import RunResult, TrialResult
from controllers.record.timeline import read_timeline
from controllers.worlds.local.engine_files import StateFile
from controllers.worlds.local.jobs import load_ledger
from mlflow_hooks.points import Point
from mlflow_hooks.state_folder import read_ending, read_identity, read_run
from tests.version_skew.half_done import HalfDone, Kept

NEWER: dict[str, Any] = {"format": 99, "unheard_of": {"a": [1]}}


def test_the_hooks_read_what_they_know_of_a_newer_state_folder(tmp_path: Path) -> None:
    identity: dict[str, Any] = {
        "trial_id": "s.a", "run_name": "a", "experiment": "e", "sweep_id": None, "parent_run_id": None, "params": {},
    }  # fmt: skip
    (tmp_path / "trial.json").write_text(json.dumps({**identity, **NEWER}))
    (tmp_path / "ended.json").write_text(json.dumps({"status": "FINISHED", "timestamp": 1, **NEWER}))
    (tmp_path / "run.json").write_text(json.dumps({"run_id": "r", **NEWER}))
    found, ending, run = read_identity(tmp_path), read_ending(tmp_path), read_run(tmp_path)
    assert found is not None
    assert ending is not None
    assert run is not None
    assert (found.trial_id, ending.status, run.run_id) == ("s.a", "FINISHED", "r")
    point = Point.decode(json.dumps({"key": "loss", "value": 1.0, "step": 2, "timestamp": 3, **NEWER}).encode())
    assert point == Point("loss", 1.0, 2, 3)


@pytest.mark.parametrize("name", ["trial.json", "ended.json", "run.json"])
def test_a_file_of_another_shape_counts_as_none(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps(NEWER))
    assert (read_identity(tmp_path), read_ending(tmp_path), read_run(tmp_path)) == (None, None, None)


def test_an_engine_takes_what_it_knows_of_a_newer_state_and_starts_over_with_one_of_another_shape() -> None:
    sweep = HalfDone("specon:interval=5+flowcon:interval=5")
    while sweep.world.now < 30:
        sweep.step()
    assert sweep.store.text is not None
    kept = json.loads(sweep.store.text)
    decisions = json.loads(kept["decisions"])
    newer = {**kept, **NEWER, "decisions": json.dumps({**decisions, **NEWER})}
    known = TypeAdapter(Memory).validate_json(json.dumps(newer))
    assert known.progress
    for text in (json.dumps(newer), json.dumps(NEWER), json.dumps({**kept, "decisions": json.dumps(NEWER)}), "[]"):
        sweep.restart(Kept(text))
        for _ in range(20):
            sweep.step()


def test_events_of_kinds_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    lines = [
        {"at": 1.0, "kind": "report", "trial": "a", "value": 0.5, "step": 1, **NEWER},
        {"at": 2.0, "kind": "teleport", "trial": "a", "where": "moon"},
        {"at": 3.0, "kind": "report", "trial": "a", "value": 0.4, "step": 2},
    ]
    (tmp_path / "timeline.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [event.step for event in read_timeline(tmp_path / "timeline.jsonl")] == [1, 2]


def test_a_result_is_read_without_what_is_not_known() -> None:
    result = RunResult("specon", (TrialResult("t", 1.0, 4.0, "node-1", 1, 2, 0.25),))
    told = result.to_dict()
    told["trials"] = [{**one, **NEWER} for one in told["trials"]]
    assert RunResult.from_dict({**told, **NEWER}) == result


def test_a_ledger_or_a_state_that_makes_no_sense_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "ledger.json").write_text(json.dumps({"jobs": {"a": {"phase": "teleporting"}}, **NEWER}))
    with pytest.raises(SpeconError, match=r"ledger\.json is not a ledger of this version"):
        load_ledger(tmp_path / "ledger.json")
    (tmp_path / "engine.json").write_text("{torn")
    with pytest.raises(SpeconError, match=r"engine\.json is no JSON"):
        StateFile(tmp_path, lambda: 0.0)
