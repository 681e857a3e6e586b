"""The option that names earlier sweeps to learn from."""

from collections.abc import Callable
from typing import Any

import click

from controllers.core.after_sweeps import SAME_EXPERIMENT, AfterError, after_names


def _named(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return after_names(given)
    except AfterError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def after_option() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds ``--after`` to a command, as ``after``."""
    return click.option(
        "--after",
        "after",
        multiple=True,
        callback=_named,
        metavar="SWEEP",
        help=f"Learn from the trials of this earlier sweep, named by its id in MLflow (specon.sweep_id), or '"
        f"{SAME_EXPERIMENT}' for all that its experiment has. Can be given several times.  [default: those that the "
        "sweep names]",
    )
