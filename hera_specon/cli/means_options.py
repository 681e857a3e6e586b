"""The options that say until when a sweep shall end, and what it may cost."""

import datetime as dt
import math
from collections.abc import Callable
from typing import Any, Final

import click

from controllers.core.means import MOST_MONEY, MOST_S
from controllers.worlds.local.workflow.values import ManifestValueError, parse_duration

_DAY: Final = dt.timedelta(days=1)


class Moment(click.ParamType[float]):
    """A time of day, a date and time, or a span of time from now on: as seconds from now."""

    name = "when"

    def __init__(self, now: Callable[[], dt.datetime]) -> None:
        self._now = now

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return ``value`` in seconds from now."""
        if isinstance(value, float):  # click converts what it has converted once more
            return value
        seconds = self._seconds(str(value).strip())
        if seconds is None:
            self.fail(f"{str(value)!r} is no time; write it like 18:00, 2026-12-24T18:00 or 3h.", param, ctx)
        if not 0 < seconds <= MOST_S:
            self.fail(f"{str(value)!r} is not within the next year.", param, ctx)
        return seconds

    def _seconds(self, text: str) -> float | None:
        now = self._now()
        try:
            clock = dt.time.fromisoformat(text)
        except ValueError:
            pass
        else:
            if ":" in text and clock.tzinfo is None:
                then = dt.datetime.combine(now.date(), clock, now.tzinfo)
                return ((then if then > now else then + _DAY) - now).total_seconds()
        try:
            day = dt.datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            # A time without a zone is that of this machine.
            return ((day if day.tzinfo else day.replace(tzinfo=now.tzinfo)) - now).total_seconds()
        try:
            return float(parse_duration(text)) if text[-1:].isalpha() else None
        except ManifestValueError:
            return None


class Money(click.ParamType[float]):
    """An amount of money above nothing."""

    name = "amount"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return ``value`` as a number."""
        try:
            amount = float(str(value))
        except ValueError:
            amount = math.nan
        if not 0 < amount <= MOST_MONEY:
            self.fail(f"{str(value)!r} is no budget; give a number above 0, such as 40.", param, ctx)
        return amount


def _here() -> dt.datetime:
    return dt.datetime.now().astimezone()


def means_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--by`` and ``--budget`` to a command."""
    by = click.option(
        "--by",
        "by_s",
        type=Moment(_here),
        metavar="WHEN",
        help="End by then on as few nodes as do: 18:00, 2026-12-24T18:00 or 3h.  [default: what the sweep names]",
    )
    budget = click.option(
        "--budget",
        type=Money(),
        metavar="AMOUNT",
        help="Take as many nodes as this pays, at the prices that the controller knows.  [default: as above]",
    )
    return by(budget(command))
