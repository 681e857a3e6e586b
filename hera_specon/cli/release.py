"""``specon release``: open gates by hand if no controller is left to do it."""

import click

from hera_specon.cli.options import cluster_options
from hera_specon.cli.output import say


@click.command(short_help="Start trials that wait for a controller that was removed.")
@click.argument("workflow", required=False)
@cluster_options
@click.option("--all", "everything", is_flag=True, help="Release the pods of every workflow in the namespace.")
@click.option("--dry-run", is_flag=True, help="Only list the pods that wait.")
@click.option("--yes", is_flag=True, help="Do not ask.")
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

    A trial that moves, or that the controller places first, waits behind the scheduling gate
    hera-specon.io/placement. If the controller was removed, nobody opens that gate. This command
    removes only that gate, and the mark that would make later moves wait again. A trial whose search was
    still to give it its hyperparameters gets some by chance. A running controller takes the workflow
    over again.

    \b
    Examples:
      specon release --all --dry-run
      specon release vae-sweep-x7k2p -n lab
    """  # noqa: D301 - \b keeps click from filling the lines after it
    from hera_specon.cluster.access import open_cluster  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.cluster.gates import find_held, let_go  # noqa: PLC0415

    if (workflow is None) != everything:
        message = "Name either a workflow or --all."
        raise click.UsageError(message)
    access = open_cluster(kubeconfig, context, namespace)
    waiting = find_held(access, workflow)
    if waiting.nothing:
        say(f"Nothing waits for a controller in namespace {access.namespace}.")
    for record in waiting.adopted:
        say(f"workflow {record.name} is marked as steered by a controller")
    for pod in waiting.pods:
        trial = pod.definition.name if pod.definition is not None else "not known"
        say(f"pod {pod.name} waits (trial {trial}, attempt {pod.attempt})")
    if waiting.nothing or dry_run:
        return
    if not yes:
        click.confirm("Let them go?", abort=True)
    for done in let_go(access, waiting):
        say(done)
