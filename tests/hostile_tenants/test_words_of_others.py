"""What a cluster or MLflow says steers no terminal, and no password is shown or kept."""

import logging
import stat
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from controllers.cluster.logs import TextLines
from controllers.core.model import Snapshot
from controllers.core.results import RunResult, TrialResult
from controllers.local_run.run_folder import find_or_make_run
from controllers.tracking.access import problem_with, shown
from hera_specon.cli.group import BadInput
from hera_specon.display.boards import status_table
from hera_specon.display.screens import PlainScreen
from hera_specon.display.tables import comparison_table
from hera_specon.report.page import facts
from hera_specon.sweep_state import SweepState
from mlflow_hooks.state_folder import report

CLEAR = "\x1b[2J\x1b]0;owned\x07\x9b31m"
URI = "http://ada:hunter2@mlflow:5000/x"


def printed(what: object) -> str:
    out = StringIO()
    Console(file=out, force_terminal=False, width=200).print(what)
    return out.getvalue()


def harmless(text: str) -> bool:
    return not set(text) & {"\x1b", "\x07", "\x9b", "\r"}


def test_the_status_of_a_sweep_holds_no_escape_sequence() -> None:
    state = SweepState(
        name=f"vae{CLEAR}",
        where=f"in namespace lab{CLEAR}",
        phase=f"Failed ({CLEAR})",
        policy=f"specon{CLEAR}",
        steered=CLEAR,
        total=1,
        snapshot=Snapshot(0.0, (), ()),
        assessments={},
        reasons={},
        missing=(CLEAR,),
        over=True,
    )
    assert harmless(printed(status_table(state)))
    assert "Failed" in printed(status_table(state))


def test_a_table_of_results_holds_no_escape_sequence() -> None:
    trial = TrialResult(f"a{CLEAR}", 0.0, 90.0, "node-1", 1, 2, 0.1, succeeded=False)
    slower = TrialResult(f"a{CLEAR}", 0.0, 99.0, "node-1", 1, 2, 0.1, succeeded=False)
    table = printed(comparison_table([RunResult(f"one{CLEAR}", (trial,)), RunResult(f"two{CLEAR}", (slower,))]))
    assert harmless(table)
    assert "one" in table


def test_lines_and_errors_hold_neither_escape_sequences_nor_passwords() -> None:
    lines: list[str] = []
    PlainScreen(lines.append).say(f"two{CLEAR}\nlines")
    assert harmless(lines[0])
    assert lines[0].count("\n") == 1
    told = BadInput(f"MLflow at {URI} says: {CLEAR}").format_message()
    assert harmless(told)
    assert "hunter2" not in told


def test_a_line_of_the_controllers_log_for_people_holds_no_escape_sequence() -> None:
    record = logging.LogRecord("x", logging.INFO, "x", 1, "pod %s", (CLEAR,), None)
    record.fields = {"workflow": CLEAR}
    assert harmless(TextLines().format(record))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (URI, "http://***@mlflow:5000/x"),
        ("postgresql://ada:p@ss@db/mlflow", "postgresql://***@db/mlflow"),
        (f"API request to {URI}?a=1 failed", "API request to http://***@mlflow:5000/x?a=1 failed"),
        ("https://mlflow/x?token=hunter2&b=1", "https://mlflow/x?token=***&b=1"),
        ("http://mlflow:5000", "http://mlflow:5000"),
        ("sqlite:////home/a@b/mlflow.db", "sqlite:////home/a@b/mlflow.db"),
        ("mailto ada@example.org", "mailto ada@example.org"),
    ],
)
def test_an_address_is_shown_without_its_login(text: str, expected: str) -> None:
    assert shown(text) == expected


class Away:
    """A client whose errors name the address that was asked."""

    def search_experiments(self, max_results: int) -> None:
        message = f"API request to {URI} failed after {max_results} tries"
        raise OSError(message)


def test_why_mlflow_does_not_answer_is_told_without_its_login() -> None:
    told = problem_with(Away())  # type: ignore[arg-type] # only search_experiments is used
    assert told is not None
    assert "hunter2" not in told


def test_the_report_of_an_older_run_shows_no_password() -> None:
    assert facts({"tracking_uri": URI, "nodes": 4}) == [("nodes", "4"), ("MLflow", "http://***@mlflow:5000/x")]


def test_the_log_of_a_trial_holds_no_password(capsys: pytest.CaptureFixture[str]) -> None:
    report(f"MLflow is away ({URI} refuses)")
    told = capsys.readouterr().err
    assert "hunter2" not in told
    assert "***@mlflow:5000" in told


def test_what_a_run_keeps_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = find_or_make_run(tmp_path, "vae", {}, fresh=True)
    assert stat.S_IMODE((folder.path / "run.json").stat().st_mode) == 0o600
