"""``specon export``: the trials of a run as CSV."""

import csv
import io
from pathlib import Path

from click.testing import CliRunner

from hera_specon.cli.main import main
from tests.hera_specon.report.example_run import write_example_run


def test_every_trial_under_every_policy_is_a_line_with_its_hyperparameters(tmp_path: Path) -> None:
    write_example_run(tmp_path)
    result = CliRunner().invoke(main, ["export", "--state-dir", str(tmp_path)])
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {row["policy"] for row in rows} == {"default", "specon+flowcon"}
    assert len(rows) == 24
    first = rows[0]
    assert any(name.startswith("parameter.") for name in first)
    assert float(first["completion_s"]) == float(first["completed_s"]) - float(first["submitted_s"])


def test_a_file_is_written_where_one_is_named(tmp_path: Path) -> None:
    folder = write_example_run(tmp_path)
    out = tmp_path / "trials.csv"
    result = CliRunner().invoke(main, ["export", str(folder), "--csv", str(out)])
    assert result.exit_code == 0, result.stderr
    assert out.read_text().startswith("policy,trial,")
    assert result.stdout == ""


def test_a_run_that_is_nowhere_is_told(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, ["export", "nothing", "--state-dir", str(tmp_path)], env={"MLFLOW_TRACKING_URI": ""}
    )
    assert result.exit_code != 0
    assert "No run 'nothing'" in result.stderr
