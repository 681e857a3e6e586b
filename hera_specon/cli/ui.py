"""``specon ui``: a page on this machine about sweeps, past ones and those that run."""

import os
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hera_specon.cli.options import cluster_options, state_dir_option
from hera_specon.cli.output import say

if TYPE_CHECKING:
    from hera_specon.live.sweeps import Shelf


@dataclass(frozen=True, slots=True, kw_only=True)
class UiRequest:
    """What was asked for on the command line."""

    sweep: str | None
    namespace: str | None
    kubeconfig: str | None
    context: str | None
    mlflow_tracking_uri: str | None
    port: int
    opens: bool
    state_dir: Path


@click.command(short_help="Show sweeps on a page: those that run, and past ones.")
@click.argument("sweep", required=False)
@cluster_options
@click.option(
    "--mlflow-tracking-uri",
    metavar="URL",
    help="Where MLflow answers from here; it has the charts of sweeps in a cluster.  [default: MLFLOW_TRACKING_URI]",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to serve on.  [default: any free one]")
@click.option("--open/--no-open", "opens", default=True, help="Open it in a browser, where there is a desktop.")
@state_dir_option("Folder that `specon run` keeps its runs in.")
def ui(**options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Serve a page with all sweeps, or with SWEEP first, on this machine only, until Ctrl-C.

    SWEEP is the name of a run on this machine, or of a workflow in a cluster. Without it, the page
    lists the runs on this machine; with -n, --context or --kubeconfig, the sweeps in that namespace. The
    page changes while a sweep runs. Runs on this machine can be paused, stopped and given another
    policy there. Sweeps in a cluster are read with your kubeconfig and from MLflow, and only shown.

    The address holds a token. Who has it can do what the page can.

    \b
    Examples:
      specon ui
      specon ui demo-3
      specon ui -n lab --mlflow-tracking-uri http://127.0.0.1:5000
    """  # noqa: D301 - \b keeps click from filling the lines after it
    request = UiRequest(**options)
    from hera_specon.live.address import address, listen, new_token  # noqa: PLC0415 - `specon --help` must not wait
    from hera_specon.live.serving import PageServer  # noqa: PLC0415
    from hera_specon.report.opening import opened_unseen  # noqa: PLC0415

    shelf, where = _shelf(request)
    if request.sweep is not None:
        shelf.sweep(request.sweep)  # refuses one that is not there
    try:
        listening = listen(request.port)
    except OSError as error:
        message = (
            f"--port {request.port} cannot be served on ({error.strerror or error}): give another, or leave it out."
        )
        raise click.UsageError(message) from error
    token = new_token()
    with listening:
        there = address(listening, token, request.sweep)
        say(f"{where}: {there} (Ctrl-C ends it)")
        opened = opened_unseen(there, request.state_dir) if request.opens else nullcontext()
        with opened, suppress(KeyboardInterrupt):
            PageServer(shelf, where, token).serve(listening)


def _shelf(request: UiRequest) -> "tuple[Shelf, str]":
    """Return the sweeps to show, and what to call them: as ``specon status`` chooses."""
    from hera_specon.live.local import LocalShelf  # noqa: PLC0415 - as above
    from hera_specon.records.run_folder import RunNotFoundError, find_run  # noqa: PLC0415

    here = LocalShelf(request.state_dir), f"Runs in {request.state_dir}"
    if not (request.namespace or request.kubeconfig or request.context):
        try:
            find_run(request.sweep, request.state_dir)
        except RunNotFoundError:
            if request.sweep is None:
                return here
        else:
            return here
    from hera_specon.cluster.access import open_cluster  # noqa: PLC0415 - a run on this machine needs no cluster
    from hera_specon.live.cluster import ClusterShelf  # noqa: PLC0415

    access = open_cluster(request.kubeconfig, request.context, request.namespace)
    uri = request.mlflow_tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or None
    return ClusterShelf(access, uri), f"Sweeps in namespace {access.namespace}"
