"""``specon pause``: let trials of a sweep that runs wait."""

from pathlib import Path

import click

from controllers.core.model import Ask
from hera_specon.cli.options import cluster_options, state_dir_option
from hera_specon.cli.output import say


@click.command(short_help="Let trials of a sweep that runs wait.")
@click.argument("sweep")
@click.argument("trials", nargs=-1, metavar="[TRIAL]...")
@cluster_options
@click.option("--all", "everything", is_flag=True, help="All trials of the sweep that have not ended.")
@state_dir_option("Folder that `specon run` keeps its runs in.")
def pause(  # noqa: PLR0913 - one argument for each option
    sweep: str,
    trials: tuple[str, ...],
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    state_dir: Path,
    *,
    everything: bool,
) -> None:
    """Let TRIALs of SWEEP wait: each saves a checkpoint, leaves its node, and goes on when asked to.

    SWEEP is the name or folder of a run on this machine, or the name of a workflow in a cluster. There,
    the controller does what is asked; you need permission to change the workflow, nothing else. `specon
    resume` lets the trials go on. Until then the sweep does not end. A script without hooks begins again from nothing
    then, unless it keeps checkpoints of its own: which trials have saved none that is known is said first.

    \b
    Examples:
      specon pause demo-3 t004 t011
      specon pause vae-sweep-x7k2p --all -n lab
      specon resume demo-3 --trial t004
    """  # noqa: D301 - \b keeps click from filling the lines after it
    from hera_specon.asking import ask_for, desk_of  # noqa: PLC0415 - `specon --help` must not wait for these

    if everything == bool(trials):
        message = "Name either trials or --all."
        raise click.UsageError(message)
    desk = desk_of(sweep, state_dir, kubeconfig, context, namespace)
    ask_for(desk, Ask.PAUSE, trials, everything=everything, tell=say)
