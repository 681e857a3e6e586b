"""The command group and what holds for every command."""

import click

from hera_specon.cli.group import OnDemandGroup


@click.group(
    name="specon",
    cls=OnDemandGroup,
    names=(
        *(
            "run",
            "init",
            "simulate",
            "doctor",
            "submit",
            "status",
            "queue",
            "report",
            "ui",
            "export",
            "clean",
            "replay",
            "pause",
            "resume",
            "stop",
        ),
        *("set-policy", "trust", "release", "policies", "controller"),
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="hera-specon", prog_name="specon")
@click.option("--debug", is_flag=True, help="Show the traceback of an error. Goes before the command.")
def main(*, debug: bool) -> None:
    """Hyperparameter sweeps that finish sooner.

    A sweep is a workflow of training jobs, called trials. Most trials learn most of what they learn
    early. specon watches how fast each trial still learns and gives CPU to those that gain from it: it
    resizes a trial's share in place, and moves trials between nodes through checkpoints.

    \b
    Try it on the sweep in this repository:
      specon run workflows/demo.py --nodes 4 --policy default --policy ahead

    \b
    Sweep your own training script:
      specon run train.py lr=log:1e-4:1e-1 hidden=32,64,128 --trials 20 --minimize loss

    \b
    Then:
      specon report                write the page about the newest run
      specon policies              list the values of --policy
    """  # noqa: D301 - \b keeps click from filling the lines after it
    del debug  # read from the context by PoliteGroup
