"""``specon trust``: use a folder with runs that others own or can write to."""

from pathlib import Path

import click

from hera_specon.cli.output import say


@click.command(short_help="Use a folder with runs that others own or can write to.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def trust(folder: Path) -> None:
    """Allow FOLDER, and all below it, for good: all who can write there can have you run programs.

    Commands refuse a folder with runs that belongs to another user, or that others can write to. One of
    root's is as good as your own; with sudo, so is that of the user who called it.

    \b
    Examples:
      specon trust .specon
      specon trust /srv/shared/sweeps
    """  # noqa: D301 - \b keeps click from filling the lines after it
    from controllers.worlds.local.trusted_folders import trust as allow  # noqa: PLC0415 - `specon --help` must not wait

    kept = allow(folder)
    say(f"{folder.resolve()} is trusted from now on; {kept} lists all such folders")
