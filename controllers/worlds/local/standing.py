"""Where the next attempt of a trial goes on, and how that is said: after a checkpoint, or from nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controllers.worlds.local.endings import is_hooked, saved_steps, steps_gained
from mlflow_hooks.printed.attempt import is_read

_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Standing:
    """What a trial has to go on from.

    ``hooked`` tells that its program has our hooks, ``saved`` the step of its newest checkpoint, 0 for none, ``gained``
    how many steps its hooks know of. ``left`` tells that its last attempt left with exit code 75: a program without
    our hooks says by it that it has saved itself.
    """

    hooked: bool
    saved: int
    gained: int
    left: bool

    @property
    def begins_again(self) -> bool:
        """Whether the next attempt begins from nothing, though one before has trained, or may have."""
        return not self.saved and (self.gained > 0 if self.hooked else not self.left)

    def __str__(self) -> str:
        """Say it."""
        if self.saved:
            return f"goes on at step {self.saved}"
        if self.begins_again:
            return "keeps no checkpoint and begins again"
        return "goes on from what it saved itself" if self.left and not self.hooked else "begins"


def standing_of(folder: Path, *, left: bool) -> Standing:
    """Return where the trial whose state is in ``folder`` goes on; ``left`` is how its last attempt ended."""
    # A program whose printed metrics are read has a journal, but no hooks that save.
    hooked = is_hooked(folder) and not is_read(folder)
    return Standing(hooked, max([0, *saved_steps(folder)]), steps_gained(folder), left)


def said(standings: Mapping[str, Standing]) -> str:
    """Return in words where trials, by their names, go on; those that begin again come first."""
    order = sorted(standings, key=lambda name: not standings[name].begins_again)
    told = [f"{name} {standings[name]}" for name in order[:_MOST_NAMED]]
    more = len(order) - len(told)
    if not more:
        return ", ".join(told)
    again = sum(standings[name].begins_again for name in order[_MOST_NAMED:])
    rest = f"and {more} more" + (f", {again} of them from nothing" if again else "")
    return ", ".join([*told, rest])
