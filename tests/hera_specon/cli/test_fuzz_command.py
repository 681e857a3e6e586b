"""``specon fuzz`` says what went wrong, keeps it, and runs it again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from controllers.driving import assembly
from controllers.lab.fault_search import search
from controllers.lab.fault_search.case import dump_case, load_case
from controllers.lab.fault_search.faulty_run import Violation
from controllers.lab.fault_search.random_cases import draw_case
from controllers.lab.fault_search.search import Batch, Counterexample
from hera_specon.cli import main
from tests.fault_search.mutants import ActsBeforeSaving


def _fuzz(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["fuzz", *map(str, arguments)])


def test_a_search_that_finds_nothing_counts_what_it_ran(tmp_path: Path) -> None:
    result = _fuzz("--runs", 4, "--policy", "specon", "--policy", "fifo", "--processes", 1, "--json", tmp_path / "out")

    assert result.exit_code == 0, result.output
    assert "seeds 0 to 3 under 2 policies: 4 sweeps" in result.stdout
    told = json.loads((tmp_path / "out").read_text())
    assert (told["runs"], told["found"]) == (4, [])
    assert told["events"] > 0


def test_what_goes_wrong_is_told_and_kept_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = draw_case(7, "specon")

    def finding_one(*_: Any) -> Iterator[Batch]:  # noqa: ANN401 - whatever a search takes
        yield Batch(1, 10, 5, 0, 0, (Counterexample(7, case, Violation("no trial is lost", "t01", 3.5)),))

    monkeypatch.setattr(search, "search", finding_one)
    result = _fuzz("--runs", 1, "--seed", 7, "--keep", tmp_path, "--json", "-")

    assert result.exit_code == 1
    assert "seed 7, specon:interval=" in result.stderr
    assert "at 3.5 s this does not hold: no trial is lost: t01" in result.stderr
    assert json.loads(result.stdout)["found"][0]["file"] == "fuzz-7.json"
    assert load_case(tmp_path / "fuzz-7.json").policy == case.policy


def test_a_kept_sweep_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept.json"
    file.write_text(dump_case(draw_case(1, "specon+flowcon")))
    mended = _fuzz("--again", file)
    monkeypatch.setattr(assembly, "Engine", ActsBeforeSaving)
    broken = _fuzz("--again", file)

    assert (mended.exit_code, broken.exit_code) == (0, 1)
    assert "nothing went wrong" in mended.stdout
    assert "this does not hold: nothing is done before it is saved" in broken.stdout


def test_bad_input_is_refused_with_its_value(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"policy": 3}')
    for arguments, words in (
        (("--policy", "specom"), "unknown policy 'specom'; did you mean 'specon'"),
        (("--runs", 0), "0 is not in the range"),
        (("--again", file), f"{file}: policy: "),
        (("--again", file, "--policy", "fifo"), "leave out --policy fifo"),
    ):
        result = _fuzz(*arguments)
        assert result.exit_code == 2, result.output
        assert words in result.stderr
