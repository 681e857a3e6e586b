"""What a promised risk came to: written into the reason of each stop, so short that a cluster keeps all of it. Pure."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

_WRITTEN: Final = re.compile(
    r"promise kept: (?P<promise>0\.\d{1,6}), (?P<left>[01]\.\d{3}) left, "
    r"(?P<trained>\d{1,6})/(?P<trials>\d{1,6})"
)


@dataclass(frozen=True, slots=True)
class PromiseKept:
    """How a sweep ended under a promise.

    ``promise`` is the part of sweeps that may miss a model more than 1 % better, ``left`` the probability, by the model
    of the policy, that one of the trials which were ended would have been better. ``trained`` of all ``trials`` had
    come to their end.
    """

    promise: float
    left: float
    trained: int
    trials: int

    def written(self) -> str:
        """Return it as the reason of a stop, from which ``kept_in`` reads it."""
        return f"promise kept: {self.promise:.3g}, {self.left:.3f} left, {self.trained}/{self.trials}"

    def words(self) -> str:
        """Return it in words for people."""
        return (
            f"the promised risk of {100 * self.promise:.3g} % is kept: about one in {round(1 / self.promise)} sweeps "
            f"misses a model more than 1 % better; {self.trained} of {self.trials} trials were trained to their end, "
            f"and by a model that errs on the safe side, one of the others would be better with a probability of "
            f"{self.left:.0%}"
        )


def kept_in(reason: str) -> PromiseKept | None:
    """Return what ``written`` wrote, None where a trial was stopped for another reason."""
    if (found := _WRITTEN.fullmatch(reason)) is None or not (promise := float(found["promise"])):
        return None
    return PromiseKept(promise, float(found["left"]), int(found["trained"]), int(found["trials"]))


def promises_told(stopped: Iterable[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """Return by sweep what its promise came to, for scripts; sweeps without one are left out.

    Where trials arrive one by one, they are stopped at several times: the last of them tells of all.

    Args:
        stopped: the sweep of each trial, and why that was stopped, empty where it was not.
    """
    last, stops = dict[str, PromiseKept](), Counter[str]()
    for sweep, why in stopped:
        if (kept := kept_in(why)) is not None:
            stops[sweep] += 1
            last[sweep] = max(last.get(sweep, kept), kept, key=lambda one: (one.trials, one.trained))
    return {
        sweep: {"promise": kept.promise, "left": kept.left, "trained": kept.trained, "stopped": stops[sweep]}
        for sweep, kept in last.items()
    }
