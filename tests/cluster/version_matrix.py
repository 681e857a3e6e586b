"""Runs the tests that tell versions apart on named versions, and writes what came of it to docs/reference/versions.md.

``python -m tests.cluster.version_matrix 1.33.13+3.6.18 1.36.2+4.0.7`` builds each combination, brings it up, runs the
tests and takes it down. A row of the page stays until its combination is run again. Files of tests among the words are
run in place of all that tell versions apart, and the row says so.
"""

import datetime as dt
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

import click

from controllers.worlds.argo.meaning.abilities import Abilities
from controllers.worlds.argo.reading.versions import version_in
from tests.cluster.commands import ClusterError
from tests.cluster.layout import cache_folder
from tests.cluster.versions import CHOSEN_BY, Versions

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/reference/versions.md"
TESTS: Final = ("tests/contract", "tests/cluster/test_sweep_end_to_end.py", "tests/cluster/test_submit.py")
"""Resizes, moves, retries, gangs and searches in every form; whole sweeps; what ``specon submit`` sends to Argo."""
WANTED: Final = tuple(
    map(
        Versions.read,
        ("1.33.13+3.6.18", "1.33.13+3.7.18", "1.34.4+3.7.18", "1.35.4+4.0.7", "1.36.2+4.0.7", "1.37.2+4.0.7"),
    )
)
"""The rows that the page has in any case."""
NOT_RUN: Final = "not run yet"
_MARKED: Final = re.compile(r"<!-- table: matrix -->\n(?:\n|\|.*\n)*")
_ROW: Final = re.compile(r"\| (\d\S*) \| (\d\S*) \| ([^|\n]*) \| ([^|\n]*) \| [^|\n]* \|")
_SUMMARY: Final = re.compile(r"=+ ((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s")
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) \S*?::(\S+)", re.MULTILINE)
_ALL_WELL: Final = re.compile(r"\d+ passed(?:, \d+ (?:skipped|deselected|warnings?))*")
_PART: Final = ", of "
_MOST_NAMED: Final = 5


@dataclass(frozen=True)
class MatrixRow:
    """A combination and what came of it; ``on`` is the day."""

    versions: Versions
    result: str = NOT_RUN
    on: str = ""

    @classmethod
    def read(cls, cells: Sequence[str]) -> Self:
        """Read the first cells of a line of the page."""
        kubernetes, argo, result, on = cells
        return cls(Versions.read(f"{kubernetes}+{argo}"), result, on)

    @property
    def line(self) -> str:
        """The line of the page."""
        kubernetes, argo = str(self.versions).split("+")
        return f"| {kubernetes} | {argo} | {self.result} | {self.on} | {lacks(self.versions)} |"


def lacks(versions: Versions) -> str:
    """Return what a combination cannot do, in words."""
    found = Abilities(version_in(versions.kubernetes), version_in(versions.argo))
    return "; ".join(found.limits) or "nothing that we know of"


def with_rows(page: str, rows: Mapping[Versions, MatrixRow]) -> str:
    """Return ``page`` with these rows in place of its own of the same versions, and with all that are wanted."""
    found = _MARKED.search(page)
    if found is None:
        message = f"{PAGE} has no line <!-- table: matrix -->"
        raise ClusterError(message)
    known = {row.versions: row for row in map(MatrixRow.read, _ROW.findall(found[0]))}
    every = {**{versions: MatrixRow(versions) for versions in WANTED}, **known, **rows}
    ordered = sorted(every, key=lambda versions: (version_in(versions.kubernetes), version_in(versions.argo)))
    head = ["| Kubernetes | Argo Workflows | tests | on | what it cannot do |", "|---|---|---|---|---|"]
    table = "\n".join([*head, *(every[versions].line for versions in ordered)])
    return f"{page[: found.start()]}<!-- table: matrix -->\n\n{table}\n\n{page[found.end() :]}"


def result_of(output: str, exit_code: int) -> str:
    """Return in words what ``output`` of pytest says, as its exit code has it."""
    summaries = _SUMMARY.findall(output)
    counts = summaries[-1] if summaries else f"ended with {exit_code} before any test"
    failed = _FAILED.findall(output)
    named = [f"`{name}`" for name in failed[:_MOST_NAMED]] + (["..."] if len(failed) > _MOST_NAMED else [])
    return f"{counts}: {', '.join(named)}" if named else counts


def run_tests(versions: Versions, today: dt.date, only: Sequence[str] = ()) -> MatrixRow:
    """Build a combination and run the tests on it, or some files of them ``only``.

    All that they write goes to a file beside the builds.
    """
    environment = dict(os.environ) | {CHOSEN_BY: str(versions)}
    environment.pop("KUBECONFIG", None)
    log = cache_folder() / "matrix" / f"{versions}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    row = MatrixRow(versions, on=today.isoformat())
    click.echo(f"== {versions}: {log}")
    build = (sys.executable, "-m", "tests.cluster", "build")
    if subprocess.run(build, cwd=ROOT, env=environment, check=False).returncode:
        return replace(row, result="does not build")
    marks = "cluster and not faults and not scale"
    tests = (sys.executable, "-m", "pytest", "--color=no", "-m", marks, *(only or TESTS))
    with log.open("w") as file:
        done = subprocess.run(tests, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, check=False)
    part = f"{_PART}{', '.join(f'`{Path(file).stem}`' for file in only)} alone" if only else ""
    return replace(row, result=result_of(log.read_text(errors="replace"), done.returncode) + part)


def main(written: Iterable[str]) -> int:
    """Run each combination that is named and write its row; return 1 where anything failed, else 0."""
    words = [word for text in written for word in text.split()]
    only = [word for word in words if word.endswith(".py")]
    combinations = [Versions.read(word) for word in words if word not in only]
    rows: dict[Versions, MatrixRow] = {}
    for versions in combinations:
        rows[versions] = run_tests(versions, dt.datetime.now(dt.UTC).date(), only)
        click.echo(rows[versions].line)
        # After each: the next may take an hour.
        PAGE.write_text(with_rows(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    if not combinations:
        PAGE.write_text(with_rows(PAGE.read_text(encoding="utf-8"), {}), encoding="utf-8")
    return int(any(_ALL_WELL.fullmatch(row.result.partition(_PART)[0]) is None for row in rows.values()))


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except ClusterError as error:
        raise SystemExit(str(error)) from None
