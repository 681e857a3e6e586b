"""``specon status``: how a sweep stands, in a cluster or on this machine."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hera_specon.cli.options import cluster_options

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from hera_specon.sweep_state import SweepState

_EVERY_S = 3.0
_WIDE = 200
"""Columns where the output is no terminal, so that nothing is cut off."""
_LINES_BESIDE_TRIALS = 8
Look = Callable[[], "Sequence[SweepState]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    sweep: str | None
    namespace: str | None
    kubeconfig: str | None
    context: str | None
    mlflow_tracking_uri: str | None
    watch: bool
    as_json: bool
    state_dir: Path


@click.command(short_help="Show how a sweep stands: its trials, their shares, nodes and progress.")
@click.argument("sweep", required=False)
@cluster_options
@click.option(
    "--mlflow-tracking-uri",
    metavar="URL",
    help="Where MLflow answers from here.  [default: MLFLOW_TRACKING_URI, else the address that the pods use]",
)
@click.option("--watch", is_flag=True, help="Look again every few seconds until the sweep is over.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts; with --watch a line for each look.")
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".specon"),
    show_default=True,
    help="Folder that `specon run` keeps its runs in.",
)
def status(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Show the trials of SWEEP with their phase, node, CPU, moves, category and newest metric.

    SWEEP is a workflow in a cluster, or a sweep in one; without it, the newest in the namespace.
    The name or folder of a run on this machine shows that run instead.

    What Kubernetes knows is read by your kubeconfig, the rest from MLflow. Where MLflow does not
    answer from here, forward its port and name it with --mlflow-tracking-uri.

    \b
    Examples:
      specon status
      specon status vae-sweep-x7k2p -n lab --watch
      specon status demo-3
      specon status --json | jq '.trials[] | select(.category == "converged")'
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = Request(**options)
    look = _look(request)
    if request.as_json:
        _tell_json(request, look)
    else:
        _tell(request, look)


def _look(request: Request) -> Look:
    from hera_specon.records.run_folder import RunNotFoundError, find_run  # noqa: PLC0415 - `specon --help` must not wait

    if request.sweep is not None:
        try:
            folder = find_run(request.sweep, request.state_dir)
        except RunNotFoundError:
            pass
        else:
            from hera_specon.records.run_folder import run_states  # noqa: PLC0415 - as above

            return lambda: run_states(folder)
    return _look_at_cluster(request)


def _look_at_cluster(request: Request) -> Look:
    from controllers.tracking.access import be_impatient  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.cluster.access import open_cluster  # noqa: PLC0415
    from hera_specon.cluster.sweep_state import read_state  # noqa: PLC0415

    be_impatient()
    access = open_cluster(request.kubeconfig, request.context, request.namespace)
    uri = request.mlflow_tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
    return lambda: [read_state(access, request.sweep, uri)]


def _tell_json(request: Request, look: Look) -> None:
    from hera_specon.sweep_state import to_json  # noqa: PLC0415 - as above

    for states in _looks(look) if request.watch else [look()]:
        told = [to_json(state) for state in states]
        click.echo(json.dumps(told[0] if len(told) == 1 else told, indent=None if request.watch else 2))


def _tell(request: Request, look: Look) -> None:
    from rich.console import Console  # noqa: PLC0415 - as above

    console = Console() if sys.stdout.isatty() else Console(width=_WIDE)
    if not request.watch:
        console.print(_view(look(), None), highlight=False)
    elif console.is_terminal:
        _watch_live(console, look)
    else:
        _watch_plainly(look)


def _watch_live(console: "Console", look: Look) -> None:
    from rich.live import Live  # noqa: PLC0415 - as above

    with Live(console=console, auto_refresh=False) as live:
        for states in _looks(look):
            live.update(_view(states, _room(console)), refresh=True)


def _watch_plainly(look: Look) -> None:
    from hera_specon.display.screens import PlainScreen  # noqa: PLC0415 - as above

    screens: list[PlainScreen] = []
    for states in _looks(look):
        for number, state in enumerate(states):
            if number == len(screens):
                screens.append(PlainScreen(click.echo))
                screens[number].begin(state.policy, state.total, number + 1, len(states))
            screens[number].observe(state.snapshot, state.assessments, state.reasons)


def _looks(look: Look) -> "Iterator[Sequence[SweepState]]":
    """Yield one look after the other until the sweep is over; an API server that is away leaves the look before."""
    from controllers.worlds.argo.api import UnavailableError  # noqa: PLC0415 - as above

    states = look()
    while True:
        yield states
        if all(state.over for state in states):
            return
        time.sleep(_EVERY_S)
        try:
            states = look()
        except UnavailableError as error:
            states = [replace(state, missing=(f"This is how it was: {error}",)) for state in states]


def _room(console: "Console") -> int | None:
    return max(3, console.height - _LINES_BESIDE_TRIALS) if console.is_terminal else None


def _view(states: "Sequence[SweepState]", room: int | None) -> "RenderableType":
    from rich.console import Group  # noqa: PLC0415 - as above

    from hera_specon.display.boards import status_view  # noqa: PLC0415

    return Group(*(status_view(state, room) for state in states))
