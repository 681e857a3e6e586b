"""Is it told why a trial failed, and where to read on?"""

from pathlib import Path

from controllers.core.results import RunResult, TrialResult
from hera_specon.records.failures import failures, last_line


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


def test_what_a_trial_printed_cannot_steer_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"\x1b[2J" + b"x" * 5000)
    assert "\x1b" not in last_line(log)
    assert len(last_line(log)) == 300
    log.write_text("")
    assert last_line(log) == "it printed nothing"
