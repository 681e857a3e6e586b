"""``specon run``: a sweep on this machine, under one policy or several."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from controllers.core.results import RunResult
from hera_specon.cli.backend import Backend, check_parameters, chosen_policies, chosen_workflow, real_backend
from hera_specon.cli.group import Failure
from hera_specon.cli.options import STDOUT, CoresOfNodes, NewFile, NodeCount, assignments
from hera_specon.display.screens import LiveScreen, PlainScreen
from hera_specon.display.tables import comparison_table
from hera_specon.records.comparison import labelled, to_json
from hera_specon.report.page import REPORT_FILE, write_report

if TYPE_CHECKING:
    from controllers.local_run.run import LocalRun

_NODES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    file: Path
    policies: tuple[str, ...]
    nodes: int | None
    cpus_per_node: float | tuple[float, ...] | None
    seed: int
    parameters: Mapping[str, str]
    state_dir: Path
    fresh: bool
    json_out: Path | None
    report_out: Path | None
    plain: bool


@click.command(short_help="Run a sweep on this machine, under one policy or several.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME[:PARAM=VALUE,...][+...]",
    help="Policy to run under; `specon policies` lists them. Given several times, the sweep runs once under each, "
    "and the later ones are compared with the first. Default: the policy that the workflow names, "
    "else specon+flowcon.",
)
@click.option(
    "--nodes",
    type=NodeCount(),
    help="Nodes to divide this machine into.  [default: 4, or as many as --cpus-per-node gives sizes]",
)
@click.option(
    "--cpus-per-node",
    type=CoresOfNodes(),
    help="Cores of each node; for nodes of different size one number for each, such as 0.8,0.4,0.4.  [default: 80 % of "
    "the machine's cores, divided evenly]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of whatever is drawn by chance.")
@click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    callback=assignments,
    metavar="NAME=VALUE",
    help="Value for a parameter of the workflow. Can be given several times.",
)
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".specon"),
    show_default=True,
    help="Folder for runs, checkpoints and the MLflow data.",
)
@click.option("--fresh", is_flag=True, help="Start over, even where an interrupted run could go on.")
@click.option(
    "--json", "json_out", type=NewFile(stdout=True), help="Write the figures as JSON to this file; - for stdout."
)
@click.option("--report", "report_out", type=NewFile(), help="Write the report here too, beside the run's own.")
@click.option("--plain", "--no-live", is_flag=True, help="Plain lines instead of the live view; so too in a pipe.")
@click.pass_obj
def run(backend: Backend | None, /, **options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Run the sweep in FILE on this machine, divided into nodes.

    FILE is Python that defines a workflow with Hera as `w`, or a workflow as YAML. Its trials are
    real processes that really train. Stop with Ctrl-C; the same command goes on where it stopped.

    \b
    Examples:
      specon run sweep.py
      specon run sweep.py --policy specon:interval=10,alpha=0.05
      specon run sweep.py -p epochs=5 --nodes 2 --cpus-per-node 0.5

    Which policy suits a sweep is best found by trying: this runs it twice and compares.

    \b
      specon run sweep.py --policy default --policy specon+flowcon --json figures.json

    Exit codes: 0 all trials succeeded, 1 some failed, 2 something in the command or FILE is wrong
    (nothing was started), 130 interrupted.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = Request(**options)
    done = _carried_out(backend or real_backend(), request)
    results = labelled(done.results, request.policies)
    _tell(request, done, results)
    _complain_about_failures(results)


def _carried_out(backend: Backend, request: Request) -> "LocalRun":
    from controllers.local_run.run import LocalSettings  # noqa: PLC0415 - `specon --help` must not wait for MLflow
    from hera_specon.goals import run_warnings  # noqa: PLC0415

    workflow = chosen_workflow(backend, request.file)
    policies = chosen_policies(backend, request.policies, workflow, request.file)
    check_parameters(request.parameters, workflow, request.file)
    for warning in run_warnings(workflow, policies):
        click.echo(f"Warning: {warning}", err=True)
    settings = LocalSettings(
        nodes=_number_of_nodes(request),
        cpus_per_node=request.cpus_per_node,
        seed=request.seed,
        state_dir=request.state_dir,
        fresh=request.fresh,
        parameters=request.parameters,
    )
    with _screen(request) as screen:
        return backend.run_locally(workflow, request.file, policies, settings, screen)


def _number_of_nodes(request: Request) -> int:
    if request.nodes is None:
        return len(request.cpus_per_node) if isinstance(request.cpus_per_node, tuple) else _NODES
    return request.nodes


def _console(request: Request) -> Console:
    """Return where words go: not to stdout where that is kept for JSON."""
    return Console(stderr=str(request.json_out) == STDOUT)


def _screen(request: Request) -> LiveScreen | PlainScreen:
    console = _console(request)
    if console.is_terminal and not request.plain:
        return LiveScreen(console)
    return PlainScreen(lambda line: click.echo(line, file=console.file))


def _tell(request: Request, done: "LocalRun", results: Sequence[RunResult]) -> None:
    console = _console(request)
    console.print(comparison_table(results))
    report = done.folder / REPORT_FILE
    write_report(done.folder, [report] + ([request.report_out] if request.report_out else []))
    console.print(f"Report: {report}\nMLflow: {done.tracking_uri}", highlight=False, markup=False, soft_wrap=True)
    if request.json_out is not None:
        _write_json(request.json_out, results)


def _write_json(out: Path, results: Sequence[RunResult]) -> None:
    text = json.dumps(to_json(results), indent=2) + "\n"
    if str(out) == STDOUT:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")


def _complain_about_failures(results: Sequence[RunResult]) -> None:
    failed = [f"{trial.id} (under {run.policy})" for run in results for trial in run.trials if not trial.succeeded]
    if failed:
        message = f"Not all trials succeeded: {', '.join(failed)}. Their logs are in the run's folder."
        raise Failure(message)
