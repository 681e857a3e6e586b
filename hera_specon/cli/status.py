"""``specon status``: the state of a sweep, in a cluster or on this machine."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hera_specon.cli.options import cluster_options, state_dir_option
from hera_specon.cli.output import say_lines, write_out

if TYPE_CHECKING:
    from hera_specon.sweep_state import SweepState

_EVERY_S = 3.0
_WIDE = 200
"""Columns where the output is no terminal, so that nothing is cut off."""
_LINES_BESIDE_TRIALS = 8
Reader = Callable[[], "Sequence[SweepState]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRequest:
    """What was asked for on the command line."""

    sweep: str | None
    namespace: str | None
    kubeconfig: str | None
    context: str | None
    mlflow_tracking_uri: str | None
    watch: bool
    as_json: bool
    state_dir: Path


@click.command(short_help="Show the trials of a sweep: their progress, nodes and shares.")
@click.argument("sweep", required=False)
@cluster_options
@click.option(
    "--mlflow-tracking-uri",
    metavar="URL",
    help="Where MLflow answers from here.  [default: MLFLOW_TRACKING_URI, else the address that the pods use]",
)
@click.option("--watch", is_flag=True, help="Refresh every few seconds until the sweep is over.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts; with --watch one line per refresh.")
@state_dir_option("Folder that `specon run` keeps its runs in.")
def status(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Show the trials of SWEEP with their phase, node, CPU, moves, category and newest metric.

    SWEEP is the name or folder of a run on this machine, or the name of a workflow or of a sweep in a
    cluster. Without it, the run on this machine that began last is shown, under each of its policies;
    where there is none, or where -n, --context or --kubeconfig is given, the newest sweep in the cluster.

    The command reads the cluster with your kubeconfig, and the rest from MLflow. If MLflow does not
    answer from here, forward its port and name it with --mlflow-tracking-uri.

    \b
    Examples:
      specon status
      specon status -n lab
      specon status vae-sweep-x7k2p -n lab --watch
      specon status demo-3
      specon status --json | jq '.trials[] | select(.category == "converged")'
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = StatusRequest(**options)
    read = _reader(request)
    if request.as_json:
        from hera_specon.sweep_state import to_json  # noqa: PLC0415 - `specon --help` must not wait for it

        for states in _until_over(read) if request.watch else [read()]:
            told = [to_json(state) for state in states]
            write_out(json.dumps(told[0] if len(told) == 1 else told, indent=None if request.watch else 2))
    else:
        _show(read, watch=request.watch)


def _reader(request: StatusRequest) -> Reader:
    """Return the function that reads the states: of a run on this machine if there is one, else of the cluster."""
    from hera_specon.records.run_folder import RunNotFoundError, find_run, run_states  # noqa: PLC0415 - `specon --help` must not wait for these

    if request.sweep is not None or not (request.namespace or request.kubeconfig or request.context):
        try:
            folder = find_run(request.sweep, request.state_dir)
        except RunNotFoundError:
            pass
        else:
            return lambda: run_states(folder)
    from controllers.tracking.access import be_impatient  # noqa: PLC0415 - a run on this machine needs no cluster
    from hera_specon.cluster.access import open_cluster  # noqa: PLC0415
    from hera_specon.cluster.sweep_state import read_state  # noqa: PLC0415

    be_impatient()
    access = open_cluster(request.kubeconfig, request.context, request.namespace)
    uri = request.mlflow_tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
    return lambda: [read_state(access, request.sweep, uri)]


def _show(read: Reader, *, watch: bool) -> None:
    from rich.console import Group  # noqa: PLC0415 - `specon --help` must not wait for these
    from rich.live import Live  # noqa: PLC0415

    from hera_specon.display.boards import status_table  # noqa: PLC0415
    from hera_specon.display.console import SafeConsole  # noqa: PLC0415
    from hera_specon.display.screens import PlainScreen  # noqa: PLC0415

    console = SafeConsole() if sys.stdout.isatty() else SafeConsole(width=_WIDE)
    if not watch:
        console.print(Group(*map(status_table, read())), highlight=False)
    elif console.is_terminal:
        most = max(3, console.height - _LINES_BESIDE_TRIALS)
        with Live(console=console, auto_refresh=False) as live:
            for states in _until_over(read):
                live.update(Group(*(status_table(state, most) for state in states)), refresh=True)
    else:
        screens: list[PlainScreen] = []
        for states in _until_over(read):
            for number, state in enumerate(states):
                if number == len(screens):
                    screens.append(PlainScreen(say_lines))
                    screens[number].begin(state.policy, state.total, number + 1, len(states))
                if state.forecast is not None:
                    screens[number].foresee(state.forecast)
                screens[number].observe(state.snapshot, state.assessments, state.reasons)
                for warning in state.warnings if state.over else ():
                    screens[number].say(f"Warning: {warning}")


def _until_over(read: Reader) -> "Iterator[Sequence[SweepState]]":
    """Yield the states every few seconds until the sweep is over; if the API server is away, the last ones again."""
    from controllers.worlds.argo.calls.errors import UnavailableError  # noqa: PLC0415 - `specon --help` must not wait for it

    states = read()
    while True:
        yield states
        if all(state.over for state in states):
            return
        time.sleep(_EVERY_S)
        try:
            states = read()
        except UnavailableError as error:
            states = [replace(state, missing=(f"Not up to date: {error}",)) for state in states]
