"""``specon release``: open gates by hand where no controller is left to do it."""

from typing import TYPE_CHECKING

import click

from hera_specon.cli.options import cluster_options

if TYPE_CHECKING:
    from hera_specon.cluster.gates import Held


@click.command(short_help="Let trials go that wait for a controller which was removed.")
@click.argument("workflow", required=False)
@cluster_options
@click.option("--all", "everything", is_flag=True, help="Those of every workflow in the namespace.")
@click.option("--dry-run", is_flag=True, help="Only list what waits.")
@click.option("--yes", is_flag=True, help="Don't ask.")
def release(  # noqa: PLR0913 - one argument for each option
    workflow: str | None,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    *,
    everything: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Open the gates of the pods of WORKFLOW, so that the default scheduler places them.

    A trial that moves, and a first attempt that a controller is to place, waits behind the
    scheduling gate hera-specon.io/placement. Where the controller was removed, nobody opens it.
    Only that gate is taken away, and the mark by which later moves would wait again.
    A controller that runs takes the workflow up again.

    \b
    Examples:
      specon release --all --dry-run
      specon release vae-sweep-x7k2p -n lab
    """  # noqa: D301 - \b keeps click from filling the lines after it
    from hera_specon.cluster.access import open_cluster  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.cluster.gates import held, let_go  # noqa: PLC0415

    if (workflow is None) != everything:
        message = "Name either a workflow or --all."
        raise click.UsageError(message)
    access = open_cluster(kubeconfig, context, namespace)
    found = held(access, workflow)
    _list(found, access.namespace)
    if found.nothing or dry_run:
        return
    if not yes:
        click.confirm("Let them go?", abort=True)
    for done in let_go(access, found):
        click.echo(done)


def _list(found: "Held", namespace: str) -> None:
    if found.nothing:
        click.echo(f"Nothing waits for a controller in namespace {namespace}.")
    for record in found.adopted:
        click.echo(f"workflow {record.name} is marked as steered by a controller")
    for pod in found.pods:
        trial = pod.definition.name if pod.definition is not None else "not known"
        click.echo(f"pod {pod.name} waits (trial {trial}, attempt {pod.attempt})")
