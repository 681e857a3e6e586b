"""``specon fuzz``: sweeps in virtual time in which all sorts of things go wrong, until something impossible happens."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from controllers.core.errors import SpeconError
from hera_specon.cli.choices import parsed
from hera_specon.cli.options import STDOUT, NewFile

if TYPE_CHECKING:
    from controllers.lab.fault_search.faulty_run import CaseResult, Violation
    from controllers.lab.fault_search.search import Batch, Counterexample

_FAILED = 1


class NothingToSearchError(SpeconError):
    """What was asked for contradicts itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    runs: int
    policies: tuple[str, ...]
    seed: int
    minutes: float | None
    processes: int | None
    again: Path | None
    keep: Path
    json_out: Path | None


@dataclass
class Tally:
    """What all runs came to so far."""

    runs: int = 0
    events: int = 0
    ticks: int = 0
    moves: int = 0
    crashes: int = 0
    found: "list[Counterexample]" = field(default_factory=list)

    def add(self, batch: "Batch") -> None:
        """Count ``batch`` in."""
        self.runs += batch.runs
        self.events += batch.events
        self.ticks += batch.ticks
        self.moves += batch.moves
        self.crashes += batch.crashes
        self.found += batch.found


@click.command(short_help="Search for sweeps that go wrong: random faults in virtual time, checked at every instant.")
@click.option("--runs", type=click.IntRange(min=1), default=1000, show_default=True, help="How many sweeps to run.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME[:PARAM=VALUE,...][+...]",
    help="Policy to run under; several take turns.  [default: every one there is, and some together]",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the first sweep.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Begin no sweep after so many minutes.")
@click.option("--processes", type=click.IntRange(min=1), help="Processes to use.  [default: one for each core]")
@click.option(
    "--again",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run only the sweep in this file, which an earlier search has written.",
)
@click.option(
    "--keep",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Folder for the files of sweeps that went wrong.  [default: the present one]",
)
@click.option(
    "--json", "json_out", type=NewFile(stdout=True), help="Write what was found as JSON to this file; - for stdout."
)
def fuzz(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Run random small sweeps in which nodes are lost, controllers die, metrics fail, clocks jump and more.

    The policies, guards and engine are those that run in a cluster; the cluster is simulated. After every instant
    is checked what must hold whatever happens: no trial is lost or in two places, requests fit their
    nodes, retries are kept to, histories are whole, nothing is done before it is saved, the sweep ends.

    A seed gives one sweep, always the same. One that goes wrong is made as small as it gets and written to a
    file: put it into tests/lab/fault_search/found, where a test runs it from then on.

    \b
    Examples:
      specon fuzz --runs 10000
      specon fuzz --policy specon --policy specon+flowcon --minutes 10 --seed 5000
      specon fuzz --again fuzz-4711.json

    Exit codes: 0 nothing was found, 1 something was, 2 something in the command or a file is wrong, 130 interrupted.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = Request(**options)
    console = Console(stderr=str(request.json_out) == STDOUT, soft_wrap=True)
    tally = _searched(request, console) if request.again is None else _run_again(request, request.again, console)
    if request.json_out is not None:
        _write(request.json_out, tally)
    if tally.found:
        raise click.exceptions.Exit(_FAILED)


def _searched(request: Request, console: Console) -> Tally:
    from controllers.lab.fault_search.random_cases import every_policy  # noqa: PLC0415 - `specon --help` must not wait for it
    from controllers.lab.fault_search.search import search  # noqa: PLC0415
    from controllers.policies.registry import parse_policy  # noqa: PLC0415

    for spec in request.policies:
        parsed(parse_policy, spec, "--policy")
    policies = request.policies or every_policy()
    seeds, tally, began = range(request.seed, request.seed + request.runs), Tally(), time.monotonic()
    with _progress(console, request.runs) as progress:
        for batch in search(seeds, policies, request.minutes, request.processes):
            tally.add(batch)
            progress.advance(progress.task_ids[0], batch.runs)
            for found in batch.found:
                _tell(found, request.keep, progress.console)
    seconds = time.monotonic() - began
    console.print(
        f"seeds {request.seed} to {seeds[-1]} under {len(policies)} policies: {tally.runs} sweeps in {seconds:.0f} s, "
        f"{tally.events} events, {tally.ticks} ticks, {tally.moves} moves, {tally.crashes} crashes of the controller; "
        f"{len(tally.found) or 'none'} went wrong",
        highlight=False,
    )
    return tally


def _run_again(request: Request, file: Path, console: Console) -> Tally:
    from controllers.lab.fault_search.case import load_case  # noqa: PLC0415 - `specon --help` must not wait for it
    from controllers.lab.fault_search.faulty_run import run_case  # noqa: PLC0415
    from controllers.lab.fault_search.search import Counterexample  # noqa: PLC0415

    if request.policies:
        message = f"--again {file} has its policy in the file; leave out --policy {request.policies[0]}."
        raise NothingToSearchError(message)
    case = load_case(file)
    result = run_case(case)
    tally = Tally(1, result.events, result.ticks, result.moves, result.crashes)
    if result.violation is not None:
        tally.found.append(Counterexample(case.scenario.seed, case, result.violation))
    console.print(_outcome(file, result), highlight=False, markup=False)
    return tally


def _outcome(file: Path, result: "CaseResult") -> str:
    return f"{file}: " + ("nothing went wrong" if result.violation is None else _in_words(result.violation))


def _in_words(violation: "Violation") -> str:
    return f"at {violation.at:g} s it does not hold that {violation.invariant}: {violation.detail}"


def _tell(found: "Counterexample", folder: Path, console: Console) -> None:
    from controllers.lab.fault_search.case import dump_case  # noqa: PLC0415 - `specon --help` must not wait for it

    file = folder / f"fuzz-{found.seed}.json"
    file.write_text(dump_case(found.case), encoding="utf-8")
    words = f"seed {found.seed}, {found.case.policy}: {_in_words(found.violation)}\n  {found.case.size}: {file}"
    console.print(words, highlight=False, markup=False)


def _write(target: Path, tally: Tally) -> None:
    found = [
        {
            "seed": one.seed,
            "policy": one.case.policy,
            "invariant": one.violation.invariant,
            "detail": one.violation.detail,
            "at_s": one.violation.at,
            "file": f"fuzz-{one.seed}.json",
        }
        for one in tally.found
    ]
    counts = {name: getattr(tally, name) for name in ("runs", "events", "ticks", "moves", "crashes")}
    text = json.dumps({**counts, "found": found}, indent=2) + "\n"
    if str(target) == STDOUT:
        sys.stdout.write(text)
    else:
        target.write_text(text, encoding="utf-8")


@contextmanager
def _progress(console: Console, runs: int) -> Iterator[Progress]:
    columns = (TextColumn("searching"), BarColumn(), MofNCompleteColumn(), TextColumn("sweeps"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task("searching", total=runs)
        yield progress
