"""``specon queue``: the sweeps that share a cluster, and why each has what it has."""

import json
import sys
import time

import click

from hera_specon.cli.options import cluster_options
from hera_specon.cli.output import write_out

_WIDE = 200
"""Columns where the output is no terminal, so that nothing is cut off."""


@click.command(short_help="List the sweeps that share a cluster: who waits for what, and why.")
@cluster_options
@click.option("--all-namespaces", "-A", is_flag=True, help="Those of every namespace that you may look at.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def queue(
    namespace: str | None, kubeconfig: str | None, context: str | None, *, all_namespaces: bool, as_json: bool
) -> None:
    """List the sweeps of a cluster that have not ended, with what each has and may have of it.

    The controller shares the cluster out among the sweeps that it steers: by the weights, priorities and
    quotas of their namespaces, which the platform sets, and by those of the sweeps within a namespace. It
    writes what came of it on each workflow; this command reads that with your kubeconfig. "nothing for"
    is how long a sweep has had nothing at all.

    \b
    Examples:
      specon queue -n lab
      specon queue --all-namespaces
      specon queue -A --json | jq '.[] | select(.waiting > 0) | .reason'
    """  # noqa: D301 - \b keeps click from filling the lines after it
    from hera_specon.cluster.access import open_cluster  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.cluster.sweep_queue import read_queue  # noqa: PLC0415
    from hera_specon.display.console import SafeConsole  # noqa: PLC0415
    from hera_specon.display.queue_table import queue_table  # noqa: PLC0415

    rows = read_queue(open_cluster(kubeconfig, context, namespace), everywhere=all_namespaces)
    if as_json:
        write_out(json.dumps([row.told() for row in rows], indent=2))
    else:
        console = SafeConsole() if sys.stdout.isatty() else SafeConsole(width=_WIDE)
        console.print(queue_table(rows, time.time()), highlight=False)
