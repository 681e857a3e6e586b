"""A sweep's end is named by a time of day, a date or a span of time; nonsense is refused with its value."""

import datetime as dt

import click
import pytest

from hera_specon.cli.means_options import Moment, Money

NOON = dt.datetime(2026, 11, 27, 12, 0, tzinfo=dt.UTC)
WHEN = Moment(lambda: NOON)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("18:00", 6 * 3600),
        ("11:00", 23 * 3600),
        ("3h", 3 * 3600),
        ("90m", 5400),
        ("2026-11-28T12:00", 24 * 3600),
        ("2026-11-27T14:00:00+01:00", 3600),
    ],
)
def test_a_moment_is_read(text: str, seconds: float) -> None:
    assert WHEN.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["soon", "18", "25:00", "-3h", "2026-11-27T11:00", "900000h", ""])
def test_what_is_no_moment_to_come_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=text or "''"):
        WHEN.convert(text, None, None)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "much"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=text):
        Money().convert(text, None, None)


def test_a_budget_is_read() -> None:
    assert Money().convert("12.5", None, None) == 12.5
