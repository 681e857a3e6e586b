"""``specon simulate``: published experiments, or a workload of one's own, in virtual time."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from controllers.errors import SpeconError
from hera_specon.cli.choices import parsed
from hera_specon.cli.options import STDOUT, NewFile

if TYPE_CHECKING:
    from controllers.simulation.campaign import Order, Summary
    from controllers.simulation.experiment import Setup

_WIDE = 240
"""Columns where the output is no terminal, so that nothing is cut off."""


class ExperimentError(SpeconError):
    """What should be simulated is not there, or is no workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    experiments: tuple[str, ...]
    every: bool
    policies: tuple[str, ...]
    seeds: int
    processes: int | None
    json_out: Path | None


@click.command(short_help="Compare policies in virtual time: published experiments, or a workload of your own.")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--all", "every", is_flag=True, help="Every published experiment.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME[:PARAM=VALUE,...][+...]",
    help="Policy to simulate; `specon policies` lists them. The first is the baseline of those after it. Parameters "
    "that are left out are the experiment's published ones.  [default: what was published of the experiment]",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=30, show_default=True, help="How often to draw what is random."
)
@click.option("--processes", type=click.IntRange(min=1), help="Processes to use.  [default: one for each core]")
@click.option(
    "--json", "json_out", type=NewFile(stdout=True), help="Write the figures as JSON to this file; - for stdout."
)
def simulate(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Simulate EXPERIMENT under several policies, over many seeds, and compare.

    EXPERIMENT is one of the published ones, F1 to F5 (FlowCon) and S1 to S6 (SpeCon), or a folder with the tables of
    a workload (docs/reference/workload-files.md), whose starts and moves then cost what Argo was measured to. The
    policies are those that run on this machine and in a cluster, under the same controller; only time is
    simulated. Each seed draws jobs, arrivals and noise anew; all policies start from the same placement.
    What was published stands beneath, and docs/experiments says what to make of it.

    \b
    Examples:
      specon simulate S4 --policy default --policy specon --seeds 30
      specon simulate F1 F2
      specon simulate S6 --policy default --policy specon+flowcon --policy shortest-remaining
      specon simulate --all --json figures.json
      specon simulate my-trials --policy default --policy specon:interval=10

    Times are seconds, with the reach of a 95 % confidence interval; "x bound" is the makespan as a multiple of a
    time that no policy can get below.

    Exit codes: 0 done, 2 something in the command or a file is wrong, 130 interrupted.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = Request(**options)
    orders = _orders(request)
    console = _console(request)
    with _progress(console, sum(len(order.policies) for order in orders) * request.seeds) as progress:
        summaries = _run(request, orders, progress)
    _tell(request, console, orders, summaries)


def _orders(request: Request) -> "list[Order]":
    from controllers.policies.registry import parse_policy  # noqa: PLC0415 - `specon --help` must not wait for it
    from controllers.simulation.campaign import Order  # noqa: PLC0415
    from controllers.simulation.every_experiment import EVERY_EXPERIMENT  # noqa: PLC0415

    for spec in request.policies:
        parsed(parse_policy, spec, "--policy")
    setups = [_setup(name) for name in request.experiments]
    names = [setup.id for setup in setups]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        message = f"{twice[0]!r} is named twice."
        raise ExperimentError(message)
    if request.every:
        setups += [setup for name, setup in EVERY_EXPERIMENT.items() if name not in names]
    if not setups:
        message = f"Name an experiment ({', '.join(EVERY_EXPERIMENT)}), the folder of a workload, or --all."
        raise ExperimentError(message)
    return [Order(setup, request.policies or setup.policies) for setup in setups]


def _setup(name: str) -> "Setup":
    from controllers.policies.settings import suggestion  # noqa: PLC0415 - see above
    from controllers.simulation.every_experiment import EVERY_EXPERIMENT, experiment_named  # noqa: PLC0415
    from controllers.simulation.experiment import given_workload  # noqa: PLC0415
    from controllers.simulation.workload_file import read_workload  # noqa: PLC0415

    if known := experiment_named(name):
        return known
    path = Path(name)
    if not path.exists():
        message = (
            f"No experiment and no file {name!r}{suggestion(name[:1].upper() + name[1:], EVERY_EXPERIMENT)}, "
            "or the folder of a workload"
        )
        raise ExperimentError(message)
    return given_workload(name, read_workload(path))


def _run(request: Request, orders: "Sequence[Order]", progress: Progress) -> "tuple[Summary, ...]":
    from controllers.simulation.campaign import run_orders  # noqa: PLC0415 - see above

    task = progress.task_ids[0]
    return run_orders(
        orders, range(request.seeds), lambda runs: progress.advance(task, runs), processes=request.processes
    )


def _console(request: Request) -> Console:
    """Return where words go: not to stdout where that is kept for JSON."""
    console = Console(stderr=str(request.json_out) == STDOUT)
    return console if console.is_terminal else Console(file=console.file, width=_WIDE)


@contextmanager
def _progress(console: Console, runs: int) -> Iterator[Progress]:
    columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task("simulating", total=runs)
        yield progress


def _tell(request: Request, console: Console, orders: "Sequence[Order]", summaries: "Sequence[Summary]") -> None:
    from controllers.simulation.campaign import to_json  # noqa: PLC0415 - see above
    from hera_specon.display.experiments import experiment_table  # noqa: PLC0415

    for order in orders:
        own = [summary for summary in summaries if summary.experiment == order.experiment.id]
        console.print(experiment_table(order.experiment, own), highlight=False)
    if request.json_out is not None:
        text = json.dumps(to_json(summaries), indent=2) + "\n"
        if str(request.json_out) == STDOUT:
            sys.stdout.write(text)
        else:
            request.json_out.write_text(text, encoding="utf-8")
