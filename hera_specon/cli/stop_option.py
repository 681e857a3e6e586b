"""The option that says when a sweep is to end before all of its trials have."""

from collections.abc import Callable
from typing import Any, Final

import click

from controllers.core.errors import SpeconError
from controllers.core.stop_rules import NO_RULES, StopRules

FORMS: Final = "value=0.01, plateau=20:0.001, terminator=30, after=3h or cpu-hours=40"


class StopRule(click.ParamType[StopRules]):
    """One rule, such as ``value=0.01``."""

    name = "rule"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> StopRules:
        """Return ``value`` as a rule."""
        if isinstance(value, StopRules):  # click converts what it has converted once more
            return value
        try:
            return _rule(str(value).strip())
        except (ValueError, SpeconError) as error:
            self.fail(f"{str(value)!r} is no rule ({error}); write it like {FORMS}.", param, ctx)


def _rule(text: str) -> StopRules:
    from hera_specon import stops  # noqa: PLC0415 - `specon --help` must not wait for what it imports

    name, _, given = text.partition("=")
    match name:
        case "value":
            return stops.value(float(given))
        case "plateau":
            trials, _, by = given.partition(":")
            return stops.plateau(trials=int(trials), by=float(by))
        case "terminator":
            trials, _, regret = given.partition(":")
            return stops.terminator(trials=int(trials), regret=float(regret) if regret else None)
        case "after":
            return stops.after(given)
        case "cpu-hours":
            return stops.budget(cpu_hours=float(given))
        case _:
            problem = f"there is none called {name!r}"
            raise ValueError(problem)


def _joined(ctx: click.Context, param: click.Parameter, given: tuple[StopRules, ...]) -> StopRules:
    joined = NO_RULES
    for rule in given:
        try:
            joined |= rule
        except SpeconError as error:
            raise click.BadParameter(str(error), ctx, param) from error
    return joined


def stop_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds ``--stop`` to a command, as ``stop``; ``default`` tells what holds without."""
    return click.option(
        "--stop",
        "stop",
        type=StopRule(),
        multiple=True,
        callback=_joined,
        metavar="RULE",
        help=f"End the sweep once this holds: {FORMS}. What runs then is stopped, and the rest never starts. Can be "
        f"given several times; any of them ends it.  [default: {default}]",
    )
