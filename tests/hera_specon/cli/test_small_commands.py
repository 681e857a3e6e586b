import json
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from click.testing import CliRunner

from hera_specon.cli import main
from tests.hera_specon.report.example_run import write_example_run


def test_help_shows_an_example_to_begin_with() -> None:
    result = CliRunner().invoke(main, ["--help"])

    assert result.exit_code == 0
    assert "specon run workflows/" in result.stdout


@pytest.mark.parametrize(
    "command", ["run", "simulate", "doctor", "submit", "status", "report", "release", "policies", "controller"]
)
def test_every_command_helps_with_an_example(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--help"])

    assert result.exit_code == 0
    assert re.search(r"\n +specon", result.stdout)


def test_an_unknown_command_is_named() -> None:
    result = CliRunner().invoke(main, ["rum"])

    assert result.exit_code == 2
    assert "'rum'" in result.stderr


def test_policies_are_listed_with_parameters_and_defaults() -> None:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(main, ["policies"])

    assert result.exit_code == 0
    for words in ("default", "flowcon", "specon", "alpha", "0.01", "thesis ch. 4.2"):
        assert words in result.stdout


def test_policies_as_json_are_for_scripts() -> None:
    known = {policy["name"]: policy for policy in json.loads(CliRunner().invoke(main, ["policies", "--json"]).stdout)}

    alpha = next(parameter for parameter in known["specon"]["parameters"] if parameter["name"] == "alpha")
    assert (alpha["default"], alpha["constraint"]) == (0.01, "a number in (0, 1)")


def test_the_report_of_the_latest_run_is_written_beside_it(tmp_path: Path) -> None:
    folder = write_example_run(tmp_path)

    result = CliRunner().invoke(main, ["report", "--state-dir", str(tmp_path)])

    assert result.exit_code == 0
    assert result.stdout.strip() == str(folder / "report.html")
    assert 100_000 < (folder / "report.html").stat().st_size < 1_000_000


def test_a_report_goes_where_it_was_asked_for(tmp_path: Path) -> None:
    folder = write_example_run(tmp_path)
    out = tmp_path / "page.html"

    assert CliRunner().invoke(main, ["report", str(folder), "--out", str(out)]).exit_code == 0
    assert out.exists()
    assert not (folder / "report.html").exists()


def test_several_runs_make_one_page_and_a_table_of_how_they_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    names = [write_example_run(tmp_path, name).name for name in ("demo-1", "demo-2")]
    out = tmp_path / "page.html"

    result = CliRunner().invoke(main, ["report", *names, "--state-dir", str(tmp_path), "--out", str(out)])

    assert result.exit_code == 0, result.stderr
    assert result.stdout.strip() == str(out)
    assert "How the policies compare" in result.stderr
    html = out.read_text()
    assert all(policy in html for policy in ("default · demo-1", "specon+flowcon · demo-2"))
    assert not list(here.iterdir()), "nothing else is left behind, such as a database of MLflow's"


def test_a_report_of_no_run_says_which_there_are(tmp_path: Path) -> None:
    write_example_run(tmp_path)

    result = CliRunner().invoke(main, ["report", "other", "--state-dir", str(tmp_path)])

    assert result.exit_code == 2
    assert "'other'" in result.stderr
    assert "demo-1" in result.stderr


def test_the_version_is_that_of_the_package() -> None:
    try:
        installed = version("hera-specon")
    except PackageNotFoundError:
        pytest.skip("hera-specon is not installed, only on the path")

    assert CliRunner().invoke(main, ["--version"]).stdout == f"specon, version {installed}\n"
