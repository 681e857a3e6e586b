"""Each long test is in exactly one slice, slices take about as long, and what a landing runs is said."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rotation.choice import MOST_TOUCHED_S, choose
from tests.rotation.landing import ROOT, landings_until, slice_of
from tests.rotation.plugin import LONG_TESTS
from tests.rotation.slices import EVERY, SLICES, Row, balanced, minutes_of_slices, read_table, write_table
from tests.rotation.touched import NEAR, OWN

_NUMBERS = [str(number) for number in range(1, SLICES + 1)]
_NAMES = st.sets(st.sampled_from([f"tests/test_{letter}.py::test_it" for letter in "abcdefghijklmnopqrstuvwxyz"]))
_SECONDS = st.floats(0, 900)


def rows_of(*slices: str, seconds: float = 60) -> list[Row]:
    return [Row(f"tests/test_{number}.py::test_it", slice_, seconds) for number, slice_ in enumerate(slices)]


def test_each_long_test_is_in_exactly_one_slice(request: pytest.FixtureRequest) -> None:
    if [Path(one).resolve() for one in request.config.args] != [ROOT / "tests"]:
        pytest.skip("it knows all tests only where all are collected: make test")
    long_tests = request.config.stash[LONG_TESTS]
    counts = Counter(row.test for row in read_table())
    assert counts.keys() ^ long_tests == set(), "python -m tests.rotation balance"
    assert set(counts.values()) == {1}


def test_each_row_of_the_table_names_a_slice() -> None:
    assert {row.slice for row in read_table()} == {*_NUMBERS, EVERY}


def test_slices_take_about_as_long() -> None:
    minutes = minutes_of_slices(read_table())
    minutes.pop(EVERY)
    assert max(minutes.values()) < 1.15 * min(minutes.values())


def test_every_slice_is_due_once_in_six_landings() -> None:
    assert [slice_of(number) for number in range(1, 8)] == [*_NUMBERS, "1"]
    for number in range(1, 20):
        assert sorted(landings_until(one, number) for one in _NUMBERS) == list(range(SLICES))
        assert landings_until(slice_of(number), number) == 0
        assert landings_until(slice_of(number + 2), number) == 2


@given(_NAMES, _NAMES, st.lists(_SECONDS, min_size=26, max_size=26))
def test_a_known_test_stays_in_its_slice_and_a_new_one_gets_one(
    before: set[str], after: set[str], seconds: list[float]
) -> None:
    measured = dict(zip(sorted(before | after), seconds, strict=False))
    known = balanced([], before, measured)
    rows = balanced(known, after, measured)
    assert [row.test for row in rows] == sorted(after)
    kept = {row.test: row.slice for row in rows if row.test in before}
    assert kept == {row.test: row.slice for row in known if row.test in after}
    assert {row.slice for row in rows} <= set(_NUMBERS)


@given(_NAMES, st.lists(_SECONDS, min_size=26, max_size=26))
def test_new_tests_are_spread_so_that_no_slice_is_longer_than_another_by_more_than_a_test(
    tests: set[str], seconds: list[float]
) -> None:
    rows = balanced([], tests, dict(zip(sorted(tests), seconds, strict=False)))
    minutes = minutes_of_slices(rows)
    longest = max((row.seconds for row in rows), default=0)
    assert max(minutes.values()) - min(minutes.values()) <= longest / 60 + 1e-9


def test_the_table_reads_back_as_written(tmp_path: Path) -> None:
    rows = tuple(rows_of("1", EVERY, "6", seconds=1.5))
    write_table(reversed(rows), tmp_path / "table.tsv")
    assert read_table(tmp_path / "table.tsv") == rows


def test_a_landing_runs_its_slice_what_always_runs_and_what_the_change_touches_the_nearest_first() -> None:
    rows = rows_of("1", "2", EVERY, "3", "4")
    choice = choose(rows, 2, "2", {rows[0].file: NEAR, rows[3].file: OWN})
    assert [row.slice for row in choice.due] == ["2", EVERY]
    assert [row.slice for row in choice.touched] == ["3", "1"]
    assert choice.waiting == (rows[4],)


def test_touched_tests_that_there_is_no_time_for_are_named_with_when_they_are_due() -> None:
    rows = [replace(row, seconds=MOST_TOUCHED_S * 0.6) for row in rows_of("1", "2", "3")]
    choice = choose(rows, 1, "1", {row.file: OWN for row in rows})
    assert choice.touched == (rows[1],)
    assert choice.crowded_out == (rows[2],)
    told = "\n".join(choice.lines())
    assert f"!!   {rows[2].test}" in told
    assert "!! not run: slice 3, 1 test function (3 min): due in 2 landings (make test-slice SLICE=3)" in told


def test_only_chosen_tests_run_and_a_slice_without_any_of_a_suite_is_no_failure(tmp_path: Path) -> None:
    names = tmp_path / "names"

    def run(*tests: str) -> tuple[int, str]:
        names.write_text("".join(f"tests/rotation/test_slices.py::{test}\n" for test in tests), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--only",
            str(names),
            "tests/rotation",
            "-q",
        ]
        alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
        done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    code, told = run("test_each_row_of_the_table_names_a_slice")
    assert (code, "1 passed" in told) == (0, True)
    assert run("test_of_another_suite")[0] == 0
