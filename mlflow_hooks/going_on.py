"""Whether a training that was started again goes on or begins again, by the steps that it tells. Pure."""

from collections.abc import Iterable, Sequence
from itertools import islice


def beginning_of(steps: Iterable[int]) -> tuple[int, ...]:
    """Return the first two different steps of a training, given its steps in the order of time; fewer if it has."""
    return tuple(islice(dict.fromkeys(steps), 2))


def goes_on(beginning: Sequence[int], first: int) -> bool:
    """Return whether a training that is started again goes on, and does not begin from nothing.

    One that begins again tells the step with which it began. Where steps come at odd times, as every ten seconds, that
    is another one near it: only from its second step on is a training taken to go on.

    Args:
        beginning: what ``beginning_of`` returns of the training before.
        first: the first step since.
    """
    return bool(beginning) and first > beginning[0] and first >= beginning[-1]
