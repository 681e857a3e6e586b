"""``specon run``: a sweep on this machine, under one policy or several."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from controllers.core.errors import MissingObjectiveError, SweepInterrupted
from controllers.core.stop_rules import StopRules
from controllers.driving.stop_signals import STILL_ENDING, heard_while
from hera_specon.cli.after_option import after_option
from hera_specon.cli.backend import Backend, check_parameters, chosen_policies, real_backend
from hera_specon.cli.group import CommandFailure
from hera_specon.cli.one_line import AskedSweep, OneLine, OneLineCommand, one_line_options, read_sweep
from hera_specon.cli.options import (
    POLICY_SPEC,
    CoresOfNodes,
    NewFile,
    NodeCount,
    json_file_option,
    parameters_option,
    policies_option,
    state_dir_option,
)
from hera_specon.cli.output import (
    open_console,
    print_how_it_went,
    problems,
    say,
    say_lines,
    this_command,
    write_json,
)
from hera_specon.cli.stop_option import stop_option
from hera_specon.display.screens import LiveScreen, PlainScreen
from hera_specon.formatting import printable_lines
from hera_specon.live.beside import PageBeside
from hera_specon.records.comparison import label_results, to_json
from hera_specon.report.ahead_of_time import PageImports

if TYPE_CHECKING:
    from controllers.local_run.order import LocalSettings
    from controllers.local_run.run import LocalRun

_MOST_RUNS: Final = 99


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What was asked for on the command line."""

    sweep: AskedSweep
    policies: tuple[str, ...]
    nodes: int | None
    cpus_per_node: float | tuple[float, ...] | None
    jobs: int | None
    inherit: tuple[str, ...]
    stop: StopRules
    after: tuple[str, ...]
    seed: int
    parameters: Mapping[str, str]
    state_dir: Path
    fresh: bool
    as_begun: bool
    repeats: int
    added: tuple[str, ...]
    extend: bool
    yes: bool
    json_out: Path | None
    report_out: Path | None
    opens: bool
    plain: bool
    page: bool | None

    def wants_page(self, console: Console) -> bool:
        """Whether a page is served: where a person reads along, unless asked otherwise."""
        return console.is_terminal if self.page is None else self.page


@click.command(cls=OneLineCommand, short_help="Run a sweep on this machine, under one policy or several.")
@click.argument("words", nargs=-1, type=click.Path(), metavar="[FILE] [NAME=VALUES]... [-- COMMAND...]")
@one_line_options
@click.option(
    "--save", "saved", type=NewFile(), metavar="FILE", help="Also write a sweep in one line to this Python file."
)
@policies_option(
    "Policy to run under; `specon policies` lists them. Given several times, the sweep runs once under each, and the "
    "later runs are compared with the first.  [default: the policy that the workflow names, else ahead]"
)
@click.option(
    "--nodes",
    type=NodeCount(),
    help="Nodes to divide this machine into.  [default: 1, or as many as --cpus-per-node gives sizes]",
)
@click.option(
    "--cpus-per-node",
    type=CoresOfNodes(),
    help="Cores of each node; give one number for each to make them differ, as in 0.8,0.4,0.4.  [default: all "
    "cores of the machine, divided evenly]",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    help="Trials that run at a time.  [default: as many as keep the cores busy and the memory holds]",
)
@click.option(
    "--inherit",
    multiple=True,
    metavar="NAME",
    help="Let trials have this variable of a launcher around the sweep, such as SLURM_JOB_ID or 'SLURM_*'. Can be "
    "given several times.",
)
@stop_option("what the sweep names")
@after_option()
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all random choices.")
@parameters_option
@state_dir_option("Folder for runs, checkpoints and the MLflow data.")
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Run the sweep that many times under each policy, in turns: then the comparison tells differences from noise.",
)
@click.option(
    "--add-policy",
    "added",
    multiple=True,
    metavar=POLICY_SPEC,
    help="Run the newest run of this sweep under this policy too, and compare. Can be given several times.",
)
@click.option(
    "--extend",
    is_flag=True,
    help="Train the trials that FILE has by now and the newest run of this sweep has not, as a part of that run. "
    "Whatever else was changed holds for what has not ended.",
)
@click.option(
    "--continue",
    "as_begun",
    is_flag=True,
    help="Go on with the newest run of this sweep, which was cut short, as it was when it began: whatever FILE and the "
    "other options say by now.",
)
@click.option("--fresh", is_flag=True, help="Start over, even if an interrupted run could continue.")
@click.option(
    "--yes",
    is_flag=True,
    help="Train all trials, even if the first that end do not log the objective. Without this, no other begins.",
)
@json_file_option
@click.option("--report", "report_out", type=NewFile(), help="Write the report to this file too.")
@click.option("--open", "opens", is_flag=True, help="Open the report in a browser at the end, where there is one.")
@click.option(
    "--page/--no-page",
    default=None,
    help="Serve the report while the sweep runs, on this machine only.  [default: where the output is a terminal]",
)
@click.option("--plain", "--no-live", is_flag=True, help="Print plain lines instead of live tables, as in a pipe.")
@click.pass_context
def run(ctx: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Run a sweep on this machine.

    FILE is Python that defines a workflow with Hera as `w`, or a workflow as YAML. Its trials are
    real processes that really train. Stop with Ctrl-C; run the same command again to continue. Where
    FILE was changed meanwhile, nothing begins until you say --continue, --extend or --fresh.

    Or FILE is a training script, and its hyperparameters follow, each as NAME=VALUES. The script gets
    them as --name=value; {name} in a COMMAND is replaced instead:

    \b
      specon run train.py lr=log:1e-4:1e-1 hidden=32,64,128 --trials 20 --minimize loss
      specon run lr=1e-3,1e-2 --maximize accuracy --save sweep.py -- python -m pkg.train {lr}

    \b
      a,b,c        one of these              log:LOW:HIGH   log-uniform
      LOW:HIGH     uniform                   LOW:HIGH:STEP  uniform, in steps
      a            the same in all trials    (ranges between whole numbers have whole numbers only)

    \b
    Examples:
      specon run sweep.py
      specon run sweep.py --policy specon:interval=10,alpha=0.05
      specon run sweep.py -p epochs=5 --nodes 2 --cpus-per-node 0.5

    To find out which policy suits a sweep, try it. This runs the sweep twice and compares:

    \b
      specon run sweep.py --policy default --policy ahead --repeats 5 --json figures.json
      specon run sweep.py --add-policy specon

    To add trials to a sweep that is over, raise trials= in FILE. Those that were trained are not
    trained again:

    \b
      specon run sweep.py --extend

    Exit codes: 0 all trials and steps succeeded, 1 some failed, none logged the objective, or MLflow does not
    have everything yet (the same command sends the rest), 2 the command or FILE is wrong (nothing was
    started), 130 interrupted.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = RunRequest(sweep=read_sweep(ctx, options), **options)
    console = open_console(request.json_out, outlives=True)
    with PageBeside(lambda line: say_lines(line, console)) as page:
        done = _run(ctx.obj or real_backend(), request, console, page if request.wants_page(console) else None)
        page.end_soon()
        message = _conclude(request, done, console)
    if message:
        raise CommandFailure(message)


def _conclude(request: RunRequest, done: "LocalRun", console: Console) -> str:
    """Tell how the run went, write its report, and return what went wrong, empty for nothing."""
    results = label_results(done.results, done.policies or request.policies)
    print_how_it_went(console, results, done.folder)
    from hera_specon.report.opening import open_page  # noqa: PLC0415 - nothing waits for these at the start
    from hera_specon.report.page import REPORT_FILE, write_report  # noqa: PLC0415

    report = done.folder / REPORT_FILE
    try:
        write_report(done.folder, [report] + ([request.report_out] if request.report_out else []))
    except OSError as error:
        # The results are kept; the run is not concluded, so that the same command writes all of it.
        return f"the report is not written: {error}. All trials have ended; to write it, run again: {this_command()}"
    mlflow = done.serve_mlflow or done.tracking_uri
    console.print(f"Report: {report}\nMLflow: {mlflow}", highlight=False, markup=False, soft_wrap=True)
    if request.json_out is not None:
        write_json(request.json_out, to_json(results))
    done.conclude()
    if request.opens:
        open_page(report)
    return problems(done, results)


def _run(backend: Backend, request: RunRequest, console: Console, page: PageBeside | None) -> "LocalRun":
    from controllers.local_run.order import LocalSettings  # noqa: PLC0415 - `specon --help` must not wait for MLflow
    from hera_specon.advice import advice  # noqa: PLC0415
    from hera_specon.earlier_sweeps import with_after  # noqa: PLC0415
    from hera_specon.goals import run_warnings  # noqa: PLC0415
    from hera_specon.risks import deaf_searches, risks  # noqa: PLC0415
    from hera_specon.stops import with_stops  # noqa: PLC0415

    if request.added and (request.policies or request.fresh):
        message = "--add-policy adds to a run that is there: leave --policy and --fresh out."
        raise click.UsageError(message)
    if request.extend and (request.policies or request.added or request.fresh or request.repeats > 1):
        message = (
            "--extend goes on with a run under its own policies: "
            "leave --policy, --add-policy, --repeats and --fresh out."
        )
        raise click.UsageError(message)
    others = request.policies or request.added or request.extend or request.fresh or request.repeats > 1
    if request.as_begun and others:
        message = (
            "--continue goes on with a run as it was when it began: "
            "leave --policy, --add-policy, --repeats, --extend and --fresh out."
        )
        raise click.UsageError(message)
    if isinstance(request.sweep, OneLine) and not request.sweep.told_objective:
        from hera_specon.cli.first_look import look_first  # noqa: PLC0415 - as above

        look_first(backend, request.sweep, request.state_dir, request.inherit)
    workflow, file = request.sweep.workflow(backend), request.sweep.file
    if request.stop:
        workflow = with_stops(workflow, request.stop)
    if request.after:
        workflow = with_after(workflow, request.after)
    policies = chosen_policies(backend, request.added or request.policies, workflow, file) * request.repeats
    if len(policies) > _MOST_RUNS:
        message = f"{len(policies)} runs are more than {_MOST_RUNS}: give fewer --policy or --repeats."
        raise click.UsageError(message)
    check_parameters(request.parameters, workflow, file)
    warnings = (*run_warnings(workflow, policies), *risks(policies), *deaf_searches(workflow, policies))
    for warning in (*warnings, *advice(workflow, Path.cwd())):
        say(f"Warning: {warning}", err=True)
    sizes = request.cpus_per_node
    settings = LocalSettings(
        nodes=request.nodes or (len(sizes) if isinstance(sizes, tuple) else LocalSettings.nodes),
        cpus_per_node=sizes,
        jobs=request.jobs,
        inherit=request.inherit,
        seed=request.seed,
        state_dir=request.state_dir,
        fresh=request.fresh,
        as_begun=request.as_begun,
        adds_policies=bool(request.added),
        extends=request.extend,
        parameters=request.parameters,
        trains_anyway=request.yes,
    )

    def train(settings: LocalSettings) -> "LocalRun":
        with _screen(request, console, page) as screen:
            run_it = partial(backend.run_locally, workflow, file, policies, settings, screen)
            return heard_while(run_it, lambda: screen.say(STILL_ENDING))

    return _trained(train, settings, asks=console.is_terminal and sys.stdin.isatty())


def _trained(train: "Callable[[LocalSettings], LocalRun]", settings: "LocalSettings", *, asks: bool) -> "LocalRun":
    """Return what ``train`` comes to; where the objective does not show, a person is asked whether to go on."""
    try:
        return train(settings)
    except MissingObjectiveError as error:
        if not asks or not click.confirm(f"{printable_lines(str(error))}\nTrain the others as it is?", err=True):
            raise CommandFailure(str(error)) from error
        return train(replace(settings, fresh=False, trains_anyway=True))
    except SweepInterrupted as error:
        if not settings.fresh:
            raise
        message = f"{error}, without --fresh"
        raise SweepInterrupted(message) from error


def _screen(request: RunRequest, console: Console, page: PageBeside | None) -> LiveScreen | PlainScreen:
    """Return what shows the sweep: tables on a terminal, else plain lines."""
    live = console.is_terminal and not request.plain
    also = PageImports()
    locate = page.locate if page is not None else None
    plain = PlainScreen(lambda line: say_lines(line, console), also, locate)
    return LiveScreen(console, also, locate) if live else plain
