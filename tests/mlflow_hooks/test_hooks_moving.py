"""When an attempt leaves, what it leaves behind, and what the next one makes of it."""

import json
import signal
from pathlib import Path

import pytest

from tests.mlflow_hooks.hook_jobs import ROOT, RunJob, StartJob, wait_for

EXPECTED = {"total": str(sum(range(30)))}


def points(folder: Path, key: str) -> list[tuple[int, float]]:
    lines = map(json.loads, (folder / "points.jsonl").read_text().splitlines())
    return [(line["step"], line["value"]) for line in lines if line["key"] == key]


def test_an_undisturbed_trial_logs_each_step_once_and_keeps_its_result(run_job: RunJob, state_root: Path) -> None:
    ended = run_job("plain", "s.a")
    assert (ended.code, ended.out) == (0, {"start": "0", **EXPECTED})
    assert points(state_root / "s.a", "total") == [(n, sum(range(n + 1))) for n in range(30)]
    assert json.loads((state_root / "s.a/ended.json").read_text())["status"] == "FINISHED"
    assert [path.name for path in (state_root / "s.a/checkpoints").iterdir()] == ["step-00000030"]


@pytest.mark.parametrize("signals", ["SIGTERM", "SIGTERM,SIGTERM"])
def test_sigterm_saves_and_exits_75_at_the_next_step_boundary(run_job: RunJob, state_root: Path, signals: str) -> None:
    assert run_job("plain", "s.a", JOB_SIGNAL=f"11:{signals}").code == 75
    assert not (state_root / "s.a/ended.json").exists()
    ended = run_job("plain", "s.a")
    assert (ended.code, ended.out) == (0, {"start": "12", **EXPECTED})
    assert points(state_root / "s.a", "total") == [(n, sum(range(n + 1))) for n in range(30)]


def test_a_hard_kill_trains_again_from_the_last_checkpoint_but_logs_no_step_twice(
    run_job: RunJob, state_root: Path
) -> None:
    assert run_job("plain", "s.a", JOB_SIGNAL="5:SIGTERM").code == 75
    assert run_job("plain", "s.a", JOB_SIGNAL="17:SIGKILL").code == -9
    ended = run_job("plain", "s.a")
    assert (ended.code, ended.out) == (0, {"start": "6", **EXPECTED})
    assert points(state_root / "s.a", "total") == [(n, sum(range(n + 1))) for n in range(30)]


def test_an_attempt_leaves_as_it_should_while_mlflow_is_still_being_imported(
    start_job: StartJob, state_root: Path, tmp_path: Path
) -> None:
    slow = tmp_path / "mlflow.py"
    # Native libraries abort where the interpreter ends in the middle of their start.
    slow.write_text(
        "import os, pathlib, time\n"
        "class Native:\n"
        "    def __del__(self, abort=os.abort): abort()\n"
        "native = Native()\n"
        'pathlib.Path(os.environ["SPECON_STATE_ROOT"], "importing").touch()\n'
        "time.sleep(300)\n"
    )
    more = {"JOB_STEPS": "5000", "JOB_SLEEP_S": "0.02", "MLFLOW_TRACKING_URI": "sqlite:///none.db"}
    job = start_job("plain", "s.a", PYTHONPATH=f"{tmp_path}:{ROOT}", **more)
    wait_for((state_root / "importing").exists)
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=60) == 75


def test_sigterm_before_training_leaves_without_training(run_job: RunJob, state_root: Path) -> None:
    assert run_job("plain", "s.a", JOB_SIGNAL="build:SIGTERM").code == 75
    assert points(state_root / "s.a", "total") == []


@pytest.mark.parametrize("place", ["29", "after"])
def test_sigterm_in_or_after_the_last_step_lets_the_trial_finish(run_job: RunJob, place: str) -> None:
    ended = run_job("plain", "s.a", JOB_SIGNAL=f"{place}:SIGTERM")
    assert (ended.code, ended.out["total"]) == (0, EXPECTED["total"])


def test_an_exception_marks_the_trial_failed_and_a_retry_goes_on(run_job: RunJob, state_root: Path) -> None:
    ended = run_job("plain", "s.a", JOB_ERROR="9", JOB_EVERY_S="0")
    assert ended.code == 1
    assert "the training diverged" in ended.err
    assert json.loads((state_root / "s.a/ended.json").read_text())["status"] == "FAILED"
    retried = run_job("plain", "s.a")
    assert 1 <= int(retried.out["start"]) <= 9
    assert retried.out["total"] == EXPECTED["total"]
    assert json.loads((state_root / "s.a/ended.json").read_text())["status"] == "FINISHED"


def test_a_corrupt_newest_checkpoint_is_skipped_for_the_one_before(run_job: RunJob, state_root: Path) -> None:
    run_job("plain", "s.a", JOB_SIGNAL="7:SIGTERM")
    run_job("plain", "s.a", JOB_SIGNAL="19:SIGTERM")
    (state_root / "s.a/checkpoints/step-00000020/state-0/total.json").write_text("4")
    ended = run_job("plain", "s.a")
    assert ended.out == {"start": "8", **EXPECTED}
    assert "step-00000020 is broken" in ended.err
    assert points(state_root / "s.a", "total") == [(n, sum(range(n + 1))) for n in range(30)]


def test_cpu_seconds_never_fall_over_attempts_and_constants_are_logged_once(run_job: RunJob, state_root: Path) -> None:
    run_job("plain", "s.a", JOB_SIGNAL="7:SIGTERM", JOB_SLEEP_S="0.3")
    first = points(state_root / "s.a", "specon.cpu_seconds")
    assert [step for step, _ in first] == list(range(8))
    run_job("plain", "s.a", JOB_SLEEP_S="0.01")
    cpu = points(state_root / "s.a", "specon.cpu_seconds")
    assert cpu[:8] == first
    assert cpu[-1][0] == 29
    assert [value for _, value in cpu] == sorted(value for _, value in cpu)
    assert cpu[8][1] > first[-1][1]
    assert points(state_root / "s.a", "specon.steps_total") == [(0, 30.0)]
    assert points(state_root / "s.a", "specon.objective_first") == [(0, 1.0)]
