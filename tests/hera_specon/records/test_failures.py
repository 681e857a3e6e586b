"""Is it told why a trial failed, and where to read on?"""

from pathlib import Path

from controllers.core.model import Phase
from controllers.core.results import RunResult, TrialResult
from controllers.worlds.local.jobs import JobLedger, LocalJob, save_ledger
from controllers.worlds.local.workflow import PodStep
from hera_specon.records.failures import failed_steps, failures


def failed(name: str, **changes: int) -> TrialResult:
    return TrialResult(name, 0.0, 1.0, "n1", 0, 1, None, succeeded=False, **changes)  # type: ignore[arg-type] # a code


def test_the_exception_the_exit_code_and_the_log_of_a_failed_trial_are_told(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "run-00.s.t001.log"
    log.parent.mkdir()
    log.write_text("Traceback (most recent call last):\n  ...\nValueError: lr must be positive\n\n")
    trials = (TrialResult("s.t000", 0.0, 1.0, "n1", 0, 1, 0.1), failed("s.t001", exit_code=1))

    told = failures([tmp_path], [RunResult("ahead", trials)])

    assert told.splitlines() == [
        "Some trials failed:",
        "  s.t001 failed under ahead with exit code 1: ValueError: lr must be positive",
        f"    its log: {log}",
    ]


def test_nothing_is_told_where_none_failed_and_ten_at_most() -> None:
    assert failures([], [RunResult("ahead", (TrialResult("a", 0.0, 1.0, "n1", 0, 1, 0.1),))]) == ""
    many = failures([], [RunResult("ahead", tuple(failed(f"t{n}") for n in range(14)))])
    assert many.splitlines()[-1] == "  and 4 more"
    assert len(many.splitlines()) == 12


def told_of(folder: Path, log: bytes, **changes: int) -> str:
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / "run-00.a.log").write_bytes(log)
    return failures([folder], [RunResult("ahead", (failed("a", **changes),))])


def test_what_a_trial_printed_cannot_steer_the_terminal(tmp_path: Path) -> None:
    assert "\x1b" not in told_of(tmp_path, b"\x1b[2J" + b"x" * 5000)
    assert "x" * 300 in told_of(tmp_path, b"x" * 5000)
    assert "x" * 301 not in told_of(tmp_path, b"x" * 5000)
    assert "it printed nothing" in told_of(tmp_path, b"")


def test_it_is_told_that_a_trial_was_given_up_before_its_retries_were_used_up(tmp_path: Path) -> None:
    assert "not tried again" in told_of(tmp_path, b"ValueError: x", given_up=True)


def test_of_a_trial_that_left_for_nothing_one_reason_is_told(tmp_path: Path) -> None:
    told = told_of(tmp_path, b"saved", exit_code=75, given_up=True)
    assert "came no further" in told
    assert "not tried again" not in told
    assert "not tried again" not in told_of(tmp_path, b"ValueError: x")


def test_it_is_told_why_a_trial_failed_that_only_ever_left(tmp_path: Path) -> None:
    assert "nobody had asked them to leave" in told_of(tmp_path, b"no licence left", exit_code=75)
    assert "nobody had asked them to leave" not in told_of(tmp_path, b"no licence left", exit_code=1)


def test_a_step_that_is_no_trial_is_told_of_with_its_last_words(tmp_path: Path) -> None:
    steps = {
        name: LocalJob(PodStep(name, "t", ("run",)), 0.0, 1.0, phase, exit_code=code)
        for name, phase, code in (("w[1].best", Phase.FAILED, 1), ("w[0].prepare", Phase.SUCCEEDED, 0))
    }
    save_ledger(tmp_path / "ledger.json", JobLedger(steps))
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "w-1-.best.log"
    log.write_text("no trial has a value\n")

    assert failed_steps([tmp_path]).splitlines() == [
        "Some steps of the workflow failed:",
        "  w[1].best failed with exit code 1: no trial has a value",
        f"    its log: {log}",
    ]
    assert failed_steps([tmp_path / "nothing"]) == ""
