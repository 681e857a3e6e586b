"""After a stop request, an attempt with steps left is never a success, whatever ended it."""

import json
from pathlib import Path

import pytest

from tests.mlflow_hooks.hook_jobs import RunJob

STEPS = 20
TOTAL = str(sum(range(STEPS)))


def steps_of_loss(folder: Path) -> list[int]:
    lines = map(json.loads, (folder / "points.jsonl").read_text().splitlines())
    return [line["step"] for line in lines if line["key"] == "loss"]


@pytest.mark.parametrize(
    "handler", ["raise-system-exit", "exit-0", "exit-1", "exit-75", "exit-143", "leave-the-loop", "fail"]
)
def test_a_script_that_ends_early_on_sigterm_exits_75_and_the_next_attempt_goes_on(
    run_job: RunJob, state_root: Path, handler: str
) -> None:
    stopped = run_job("own_handler", "s.a", JOB_HANDLER=handler, JOB_SIGNAL="11:SIGTERM")
    assert stopped.code == 75, stopped.err
    assert not (state_root / "s.a/ended.json").exists()
    ended = run_job("own_handler", "s.a", JOB_HANDLER=handler)
    assert (ended.code, ended.out["total"]) == (0, TOTAL)
    assert int(ended.out["start"]) > 0
    assert steps_of_loss(state_root / "s.a") == list(range(STEPS))
    assert json.loads((state_root / "s.a/ended.json").read_text())["status"] == "FINISHED"


@pytest.mark.parametrize("handler", ["go-on", "exit-0-at-the-end"])
def test_a_script_that_handles_sigterm_itself_and_ends_after_its_last_step_is_a_success(
    run_job: RunJob, state_root: Path, handler: str
) -> None:
    ended = run_job("own_handler", "s.a", JOB_HANDLER=handler, JOB_SIGNAL="11:SIGTERM")
    assert ended.code == 0, ended.err
    assert steps_of_loss(state_root / "s.a") == list(range(STEPS))
    assert json.loads((state_root / "s.a/ended.json").read_text())["status"] == "FINISHED"


def test_what_an_error_after_a_stop_request_said_is_told(run_job: RunJob) -> None:
    stopped = run_job("own_handler", "s.a", JOB_HANDLER="fail", JOB_SIGNAL="11:SIGTERM")
    assert "RuntimeError: a data loader is gone" in stopped.err
    assert "the next attempt goes on" in stopped.err


def test_without_known_steps_an_exit_is_an_interruption_but_the_end_of_the_script_is_a_success(
    run_job: RunJob, state_root: Path
) -> None:
    assert run_job("log_only", "s.a", JOB_HANDLER="exit-0", JOB_SIGNAL="4:SIGTERM").code == 75
    assert not (state_root / "s.a/ended.json").exists()
    assert run_job("log_only", "s.b", JOB_SIGNAL="4:SIGTERM").code == 0
    assert steps_of_loss(state_root / "s.b") == list(range(10))
