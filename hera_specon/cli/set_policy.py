"""``specon set-policy``: another policy for a sweep that runs."""

from pathlib import Path

import click

from hera_specon.cli.options import POLICY_SPEC, cluster_options, state_dir_option
from hera_specon.cli.output import say


@click.command("set-policy", short_help="Give a sweep that runs another policy.")
@click.argument("sweep")
@click.argument("policy", metavar=POLICY_SPEC)
@cluster_options
@state_dir_option("Folder that `specon run` keeps its runs in.")
def set_policy(
    sweep: str,
    policy: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    state_dir: Path,
) -> None:
    """Have the rest of SWEEP steered by another policy, from the next look on.

    SWEEP is the name or folder of a run on this machine, or the name of a workflow in a cluster. There,
    the controller does what is asked, for all sweeps of the workflow; you need permission to change the
    workflow, nothing else. Trials go on as they are. The new policy starts without what the old one
    remembered. The sweep keeps its name in MLflow, which tells the policy that it began under.

    \b
    Examples:
      specon set-policy demo-3 specon:interval=10
      specon set-policy vae-sweep-x7k2p ahead -n lab
    """  # noqa: D301 - \b keeps click from filling the lines after it
    from controllers.policies.registry import parse_policy  # noqa: PLC0415 - `specon --help` must not wait for these
    from hera_specon.asking import ask_for_policy, desk_of  # noqa: PLC0415
    from hera_specon.cli.backend import parse_spec  # noqa: PLC0415

    wanted = parse_spec(parse_policy, policy, "POLICY")
    desk = desk_of(sweep, state_dir, kubeconfig, context, namespace)
    say(f"{desk.name}: asked for {ask_for_policy(desk, wanted)} from now on")
