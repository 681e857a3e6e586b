"""What a sweep may take: until when, and for how much money. Pure."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controllers.core import labels

MOST_S = 366 * 24 * 3600.0
MOST_MONEY = 1e9


@dataclass(frozen=True, slots=True)
class Means:
    """A sweep shall end ``by_s`` seconds after its start, and cost at most ``budget``; None where nobody asked.

    The budget is in whatever currency the prices of nodes are.
    """

    by_s: float | None = None
    budget: float | None = None

    def __bool__(self) -> bool:
        return self.by_s is not None or self.budget is not None


NO_MEANS = Means()


def why_no_amount(name: str, amount: object, most: float) -> str | None:
    """Return why ``amount`` is nothing that ``name`` may be, None where it is."""
    number = isinstance(amount, int | float) and not isinstance(amount, bool)
    if number and math.isfinite(float(str(amount))) and 0 < float(str(amount)) <= most:
        return None
    return f"{name} is a number above 0 and at most {most:g}, not {amount!r}"


def means_in(notes: Mapping[str, str]) -> Means:
    """Return what the annotations of a trial's template say; what makes no sense counts as if it was not there."""
    return Means(
        _amount(notes.get(labels.ANNOTATION_END_BY, ""), MOST_S),
        _amount(notes.get(labels.ANNOTATION_BUDGET, ""), MOST_MONEY),
    )


def means_notes(means: Means) -> dict[str, str]:
    """Return the annotations that ``means_in`` reads."""
    amounts = {labels.ANNOTATION_END_BY: means.by_s, labels.ANNOTATION_BUDGET: means.budget}
    return {name: f"{amount:.12g}" for name, amount in amounts.items() if amount is not None}


def together(means: Iterable[Means]) -> Means:
    """Return what several sweeps of a workflow may take: all end by the earliest time, and spend what they have."""
    each = list(means)
    ends = [one.by_s for one in each if one.by_s is not None]
    budgets = [one.budget for one in each if one.budget is not None]
    # A sweep without a budget may spend anything, and so may all of them.
    return Means(min(ends, default=None), sum(budgets) if budgets and len(budgets) == len(each) else None)


def _amount(written: str, most: float) -> float | None:
    try:
        amount = float(written)
    except ValueError:
        return None
    return amount if why_no_amount("it", amount, most) is None else None
