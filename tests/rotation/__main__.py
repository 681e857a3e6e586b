"""The command line: ``python -m tests.rotation --help``."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import click

from tests.rotation.choice import Choice, choose
from tests.rotation.landing import ROOT, LandingError, changed_files, landing, raise_it, slice_of, why_not_raised
from tests.rotation.plugin import LONG_MARKS, function_of
from tests.rotation.slices import SLICES, balanced, minutes_of_slices, read_table, write_table
from tests.rotation.touched import touched

NOW: Final = "now"
FAULTY_SWEEPS: Final = 25
"""How many sweeps a landing breaks; ``make test-faults-local`` breaks 300."""
_SLICE: Final = click.Choice([*map(str, range(1, SLICES + 1)), NOW])
_LONG: Final = " or ".join(sorted(LONG_MARKS))
_PROPERTY: Final = re.compile(r"@given|RuleBasedStateMachine")


@click.group()
def main() -> None:
    """Run every long test within six landings: which slice is due, which tests are in it, how long they take."""


@main.command("check")
def check() -> None:
    """Exit with 1 where the change did not raise the number of the landing."""
    problem = why_not_raised()
    if problem:
        raise click.ClickException(problem)
    if changed_files() is None:
        click.echo("!! the history here does not reach back to the change's base: its landing is not checked")


@main.command("raise")
def raise_command() -> None:
    """Raise the number of the landing, as the first commit of a change does."""
    click.echo(f"landing {(number := raise_it())}, slice {slice_of(number)}")


@main.command("slice")
def slice_command() -> None:
    """Print the slice of this landing."""
    click.echo(slice_of(landing()))


@main.command("choose")
@click.argument("slice_", metavar="SLICE", type=_SLICE)
@click.option("--into", type=click.Path(path_type=Path), required=True, help="Takes the names of the tests.")
def choose_command(slice_: str, into: Path) -> None:
    """Write the tests of SLICE into a file, and say what is left out; ``now`` adds what the change touches."""
    choice = _choice(slice_)
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_text("".join(f"{row.test}\n" for row in choice.chosen), encoding="utf-8")
    click.echo("\n".join(choice.lines()))


@main.command("properties")
@click.argument("slice_", metavar="[SLICE]", type=_SLICE, required=False)
def properties(slice_: str | None) -> None:
    """Print the files of properties on a line, or those whose examples a SLICE tries to the last."""
    files = sorted(file for file in (ROOT / "tests").rglob("test_*.py") if _PROPERTY.search(file.read_text("utf-8")))
    named = slice_of(landing()) if slice_ == NOW else slice_
    chosen = files[int(named) - 1 :: SLICES] if named else files
    click.echo(" ".join(file.relative_to(ROOT).as_posix() for file in chosen))


@main.command("seeds")
def seeds() -> None:
    """Print which sweeps the search for local faults tries at this landing: others each time."""
    first = (landing() - 1) * FAULTY_SWEEPS
    click.echo(f"{first}-{first + FAULTY_SWEEPS - 1}")


@main.command("balance")
@click.argument("seconds", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def balance(seconds: tuple[Path, ...]) -> None:
    """Put new tests into the emptiest slices, drop those that are gone, take over SECONDS that runs measured."""
    measured = {test: took for file in seconds for test, took in json.loads(file.read_text("utf-8")).items()}
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-m", _LONG]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tests = {function_of(line) for line in listed.splitlines() if "::" in line}
    rows = balanced(read_table(), tests, measured)
    write_table(rows)
    for name, minutes in minutes_of_slices(rows).items():
        click.echo(f"{name:6} {minutes:5.1f} min  {sum(row.slice == name for row in rows)} test functions")


def _choice(slice_: str) -> Choice:
    rows, number = read_table(), landing()
    if slice_ != NOW:
        return choose(rows, number, slice_, {})
    changed = changed_files()
    if changed is None:
        click.echo("!! the history here does not reach back to the change's base: what it touches is not known")
    return choose(rows, number, slice_of(number), touched(ROOT, changed or (), {row.file for row in rows}))


if __name__ == "__main__":
    try:
        main()
    except LandingError as error:
        raise SystemExit(str(error)) from None
