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

from controllers.core.errors import SpeconError
from hera_specon.cli.choices import parsed
from hera_specon.cli.options import STDOUT, NewFile, NodeCount

if TYPE_CHECKING:
    from controllers.lab.simulation.evaluation import ExperimentPlan, PolicySummary
    from controllers.lab.simulation.experiments.experiment import Setup

_WIDE = 240
"""Columns where the output is no terminal, so that nothing is cut off."""
_TRIALS = 20
_NODES = 4


class ExperimentError(SpeconError):
    """What should be simulated is not there, or is no workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    experiments: tuple[str, ...]
    every: bool
    policies: tuple[str, ...]
    objective: str | None
    direction: str | None
    trials: int | None
    nodes: int | None
    seeds: int
    processes: int | None
    json_out: Path | None

    @property
    def sweep_options(self) -> dict[str, str | int | None]:
        """What says how sweeps are drawn from a table of curves, by option."""
        return {
            "--objective": self.objective,
            "--direction": self.direction,
            "--trials": self.trials,
            "--nodes": self.nodes,
        }


@click.command(short_help="Compare policies in virtual time: published experiments, or a workload of your own.")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--all", "every", is_flag=True, help="Every experiment that has a name.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME[:PARAM=VALUE,...][+...]",
    help="Policy to simulate; `specon policies` lists them. The first is the baseline of those after it. Parameters "
    "that are left out are the experiment's published ones.  [default: what was published of the experiment]",
)
@click.option("--objective", metavar="METRIC", help="Column of a table of curves that says how good a model is.")
@click.option(
    "--direction",
    type=click.Choice(["minimize", "maximize"]),
    help="Which way the objective of a table of curves improves.  [default: minimize]",
)
@click.option(
    "--trials", type=click.IntRange(min=1), help=f"Trials to draw from a table of curves.  [default: {_TRIALS}]"
)
@click.option("--nodes", type=NodeCount(), help=f"Nodes of 16 cores to run these on.  [default: {_NODES}]")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=30, show_default=True, help="How often to draw what is random."
)
@click.option("--processes", type=click.IntRange(min=1), help="Processes to use.  [default: one for each core]")
@click.option(
    "--json", "json_out", type=NewFile(stdout=True), help="Write the figures as JSON to this file; - for stdout."
)
def simulate(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Simulate EXPERIMENT under several policies, over many seeds, and compare.

    EXPERIMENT is one of these, with each paper's own measures beside the times:

    \b
      F1 to F5  FlowCon            P1                   ProCon
      S1 to S6  SpeCon             B1                   C-Balancer
      G1 to G3  FlowCon 2.0        T1                   TRADL: targets
      D1, D2    deadlines          Q1                   DQoES: times per step
      D1-half, D1-most, D2-half, D2-most: the same jobs, but asking for half or all of the cores they can use;
      D1-crowded: where they slow each other down

    Or a folder with the tables of a workload, or a table of learning curves of which each seed draws a sweep
    (docs/reference/workload-files.md); their starts and moves cost what Argo was measured to.

    The policies are those that run on this machine and in a cluster, under the same controller; only time is
    simulated. Each seed draws jobs, arrivals and noise anew; all policies start from the same placement, but for
    those that place trials themselves. What was published stands beneath, and docs/experiments says what to make of it.

    \b
    Examples:
      specon simulate S4 --policy default --policy specon --seeds 30
      specon simulate F1 F2
      specon simulate S6 --policy default --policy specon+flowcon --policy shortest-remaining
      specon simulate D1 D1-half D1-most
      specon simulate --all --json figures.json
      specon simulate my-trials --policy default --policy specon:interval=10
      specon simulate curves.csv.gz --objective val_accuracy --direction maximize --trials 30

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


def _orders(request: Request) -> "list[ExperimentPlan]":
    from controllers.lab.simulation.evaluation import ExperimentPlan  # noqa: PLC0415
    from controllers.lab.simulation.experiments import EVERY_EXPERIMENT  # noqa: PLC0415
    from controllers.policies.registry import parse_policy  # noqa: PLC0415 - `specon --help` must not wait for it

    for spec in request.policies:
        parsed(parse_policy, spec, "--policy")
    setups = [_setup(name, request) for name in request.experiments]
    names = [setup.id for setup in setups]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        message = f"{twice[0]!r} is named twice."
        raise ExperimentError(message)
    if request.every:
        setups += [setup for name, setup in EVERY_EXPERIMENT.items() if name not in names]
    if not setups:
        message = f"Name an experiment ({', '.join(EVERY_EXPERIMENT)}), a workload, a table of curves, or --all."
        raise ExperimentError(message)
    given = [f"{option} {value}" for option, value in request.sweep_options.items() if value is not None]
    if given and not any(Path(name).is_file() for name in names):
        message = f"{given[0]} says how to draw a sweep from a table of learning curves, but none is named."
        raise ExperimentError(message)
    return [ExperimentPlan(setup, request.policies or setup.policies) for setup in setups]


def _setup(name: str, request: Request) -> "Setup":
    from controllers.lab.simulation.experiments import EVERY_EXPERIMENT, experiment_named  # noqa: PLC0415
    from controllers.lab.simulation.experiments.experiment import given_workload  # noqa: PLC0415
    from controllers.lab.simulation.workload_file import read_workload  # noqa: PLC0415
    from controllers.policies.kit.settings import suggestion  # noqa: PLC0415 - see above

    if known := experiment_named(name):
        return known
    path = Path(name)
    if not path.exists():
        message = (
            f"No experiment and no file {name!r}{suggestion(name[:1].upper() + name[1:], EVERY_EXPERIMENT)}, "
            "or a workload or a table of curves"
        )
        raise ExperimentError(message)
    return _curves(path, request) if path.is_file() else given_workload(name, read_workload(path))


def _curves(path: Path, request: Request) -> "Setup":
    from controllers.core.model import Direction  # noqa: PLC0415 - see above
    from controllers.lab.simulation.experiments.curve_sweep import curve_sweep, metrics_in  # noqa: PLC0415

    metrics = metrics_in(path)
    if request.objective not in metrics:
        asked = f" no metric {request.objective!r}, but" if request.objective else ""
        message = f"{path} has{asked} {', '.join(metrics) or 'no metrics'}: name the objective with --objective."
        raise ExperimentError(message)
    direction = Direction(request.direction or Direction.MINIMIZE)
    return curve_sweep(path, request.objective, direction, request.trials or _TRIALS, request.nodes or _NODES)


def _run(request: Request, orders: "Sequence[ExperimentPlan]", progress: Progress) -> "tuple[PolicySummary, ...]":
    from controllers.lab.simulation.evaluation import run_plans  # noqa: PLC0415 - see above

    task = progress.task_ids[0]
    return run_plans(
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


def _tell(
    request: Request, console: Console, orders: "Sequence[ExperimentPlan]", summaries: "Sequence[PolicySummary]"
) -> None:
    from controllers.lab.simulation.evaluation import to_json  # noqa: PLC0415 - see above
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
