"""``specon init``: write the file of a sweep, to be changed and run."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from hera_specon.cli.backend import real_backend
from hera_specon.cli.one_line import Given, OneLineCommand, built, one_line, one_line_options
from hera_specon.cli.options import NewFile
from hera_specon.cli.output import say
from hera_specon.cli.programs import save
from hera_specon.script_options import suggested_assignments

_SCRIPT: Final = Path("train.py")
_OBJECTIVE: Final = "loss"


@click.command(cls=OneLineCommand, short_help="Write the file of a sweep, to be changed and run.")
@click.argument("words", nargs=-1, type=click.Path(), metavar="[FILE] [NAME=VALUES]... [-- COMMAND...]")
@one_line_options
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random draw.")
@click.option(
    "--save",
    "saved",
    type=NewFile(),
    default=Path("sweep.py"),
    show_default=True,
    metavar="FILE",
    help="File to write.",
)
@click.option("--force", is_flag=True, help="Write it even if it is there already.")
@click.pass_context
def init(ctx: click.Context, /, *, saved: Path, force: bool, seed: int, **options: Any) -> None:  # noqa: ANN401 - options as click hands them over
    """Write a Python file that defines the sweep which `specon run` would run with the same words.

    Without NAME=VALUES, it has hyperparameters that the options of the script suggest, or an example. Nothing is run.

    \b
    Examples:
      specon init train.py lr=log:1e-4:1e-1 hidden=32,64,128 --trials 20 --minimize loss
      specon init train.py
      specon run sweep.py

    Exit codes: 0 written, 2 the command is wrong, or the file is there already.
    """  # noqa: D301 - \b keeps click from filling the lines after it
    given = _complete(Given.take(ctx, options))
    asked = one_line(given, seed, saved)
    built(real_backend(), asked.sweep)
    save(asked.source, saved, force=force)
    say(
        f"wrote {saved}; next: specon run {saved}, or specon submit {saved} once image= names an image with the program"
    )


def _complete(given: Given) -> Given:
    """Return what the command line says, and what it leaves out as an example."""
    options = dict(given.options)
    if options["minimized"] is None and options["maximized"] is None:
        options["minimized"] = _OBJECTIVE
    if given.assigned:
        return replace(given, options=options)
    file = given.file or (None if given.command else _SCRIPT)
    return replace(given, options=options, file=file, assigned=suggested_assignments(file or _SCRIPT))
