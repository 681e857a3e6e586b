"""Search for faults under which a sweep breaks its rules: ``python -m tests.fault_search --help``."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from controllers.core.errors import SpeconError
from controllers.policies.registry import parse_policy
from hera_specon.cli.group import failure
from hera_specon.cli.options import json_file_option, policies_option
from hera_specon.cli.output import open_console, progress_bar, write_json
from tests.fault_search.case import dump_case, load_case
from tests.fault_search.faulty_run import Violation, run_case
from tests.fault_search.random_cases import every_policy
from tests.fault_search.search import Batch, Counterexample, search

_FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
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
class SearchTally:
    """What all runs came to so far."""

    runs: int = 0
    events: int = 0
    ticks: int = 0
    moves: int = 0
    crashes: int = 0
    counterexamples: list[Counterexample] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Count ``batch`` in."""
        self.runs += batch.runs
        self.events += batch.events
        self.ticks += batch.ticks
        self.moves += batch.moves
        self.crashes += batch.crashes
        self.counterexamples += batch.counterexamples


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--runs", type=click.IntRange(min=1), default=1000, show_default=True, help="How many sweeps to run.")
@policies_option("Policy to run under; several take turns.  [default: all policies, and some together]")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the first sweep.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Start no sweep after this many minutes.")
@click.option("--processes", type=click.IntRange(min=1), help="Processes to use.  [default: one per core]")
@click.option(
    "--again",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run only the sweep in this file, which an earlier search wrote.",
)
@click.option(
    "--keep",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Folder for the files of sweeps that went wrong.  [default: the current one]",
)
@json_file_option
def main(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Run small random sweeps in which nodes are lost, controllers die, metrics fail, clocks jump and more.

    The policies, guards and engine are those that run in a cluster; the cluster is simulated. The search
    checks after every instant that no trial is lost or in two places, requests fit their nodes, no trial gets
    more retries than it may, histories are whole, every action was saved first, and the sweep ends.

    A seed always gives the same sweep. A sweep that goes wrong is made as small as possible and written to a
    file. Put that file into tests/fault_search/found: a test runs it from then on.

    \b
    Examples:
      python -m tests.fault_search --runs 10000
      python -m tests.fault_search --policy specon --policy specon+flowcon --minutes 10 --seed 5000
      python -m tests.fault_search --again fuzz-4711.json

    Exit codes: 0 nothing went wrong, 1 a sweep went wrong, 2 the command or a file is wrong, 130 interrupted.
    """
    request = SearchRequest(**options)
    console = open_console(request.json_out)
    try:
        tally = _search(request, console) if request.again is None else _run_again(request, request.again, console)
    except (SpeconError, OSError, KeyboardInterrupt) as error:
        raise failure(error) from error
    if request.json_out is not None:
        counts = {name: getattr(tally, name) for name in ("runs", "events", "ticks", "moves", "crashes")}
        counterexamples = [
            {
                "seed": counterexample.seed,
                "policy": counterexample.case.policy,
                "invariant": counterexample.violation.invariant,
                "detail": counterexample.violation.detail,
                "at_s": counterexample.violation.at,
                "file": f"fuzz-{counterexample.seed}.json",
            }
            for counterexample in tally.counterexamples
        ]
        write_json(request.json_out, {**counts, "found": counterexamples})
    if tally.counterexamples:
        raise click.exceptions.Exit(_FAILED)


def _search(request: SearchRequest, console: Console) -> SearchTally:
    for spec in request.policies:
        parse_policy(spec)
    policies = request.policies or every_policy()
    seeds, tally, began = range(request.seed, request.seed + request.runs), SearchTally(), time.monotonic()
    with progress_bar(console, "searching", "sweeps", request.runs) as advance:
        for batch in search(seeds, policies, request.minutes, request.processes):
            tally.add(batch)
            advance(batch.runs)
            for counterexample in batch.counterexamples:
                file = request.keep / f"fuzz-{counterexample.seed}.json"
                file.write_text(dump_case(counterexample.case), encoding="utf-8")
                told = (
                    f"seed {counterexample.seed}, {counterexample.case.policy}: {_in_words(counterexample.violation)}"
                )
                _print(console, f"{told}\n  {counterexample.case.size}: {file}")
    seconds = time.monotonic() - began
    _print(
        console,
        f"seeds {request.seed} to {seeds[-1]} under {len(policies)} policies: {tally.runs} sweeps in {seconds:.0f} s, "
        f"{tally.events} events, {tally.ticks} ticks, {tally.moves} moves, {tally.crashes} crashes of the controller; "
        f"{len(tally.counterexamples) or 'none'} went wrong",
    )
    return tally


def _run_again(request: SearchRequest, file: Path, console: Console) -> SearchTally:
    if request.policies:
        message = f"--again {file} has its policy in the file; leave out --policy {request.policies[0]}."
        raise click.UsageError(message)
    case = load_case(file)
    ordeal = run_case(case)
    tally = SearchTally(1, ordeal.events, ordeal.ticks, ordeal.moves, ordeal.crashes)
    if ordeal.violation is not None:
        tally.counterexamples.append(Counterexample(case.scenario.seed, case, ordeal.violation))
    _print(console, f"{file}: {'nothing went wrong' if ordeal.violation is None else _in_words(ordeal.violation)}")
    return tally


def _in_words(finding: Violation) -> str:
    return f"at {finding.at:g} s this does not hold: {finding.invariant}: {finding.detail}"


def _print(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
