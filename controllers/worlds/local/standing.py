"""Where the next attempt of a trial goes on, and how that is said: after a checkpoint, from nothing, or unknown."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controllers.worlds.local.endings import is_hooked, saved_steps, steps_gained
from mlflow_hooks.printed.attempt import is_read

_MOST_NAMED: Final = 5
_UNKNOWN: Final = "has saved no checkpoint that specon knows of"


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
        """Whether the next attempt is known to begin from nothing, though one before has trained."""
        return self.hooked and not self.saved and self.gained > 0

    @property
    def may_begin_again(self) -> bool:
        """Whether nobody knows where the next attempt begins: its program may keep checkpoints of its own."""
        return not (self.saved or self.hooked or self.left)

    @property
    def loses_nothing(self) -> bool:
        """Whether the next attempt is known to go on where the trial is, or the trial has trained nothing yet."""
        return not (self.begins_again or self.may_begin_again)

    def __str__(self) -> str:
        """Say it."""
        if self.saved:
            return f"goes on at step {self.saved}"
        if self.begins_again:
            return "has saved no checkpoint and begins again"
        if self.may_begin_again:
            return f"{_UNKNOWN}, and begins again unless it keeps its own"
        return "goes on from what it saved itself" if self.left and not self.hooked else "begins"

    def at_stake(self, step: int | None) -> str:
        """Return in words what is lost if the trial must leave now, empty where nothing is or it saves as it leaves.

        Args:
            step: the newest that it is known to have told; None for none.
        """
        if not self.may_begin_again:
            return ""
        lost = "what it has trained" if step is None else f"what it has trained, up to step {step},"
        return f"{_UNKNOWN}; unless it keeps its own, {lost} is lost"


def standing_of(folder: Path, *, left: bool) -> Standing:
    """Return where the trial whose state is in ``folder`` goes on; ``left`` is how its last attempt ended."""
    # A program whose printed metrics are read has a journal, but no hooks that save.
    hooked = is_hooked(folder) and not is_read(folder)
    return Standing(hooked, max([0, *saved_steps(folder)]), steps_gained(folder), left)


def said(standings: Mapping[str, Standing]) -> str:
    """Return in words where trials, by their names, go on; those that begin again come first."""
    order = sorted(standings, key=lambda name: (not standings[name].begins_again, not standings[name].may_begin_again))
    named = order[:_MOST_NAMED]
    unknown = [name for name in named if standings[name].may_begin_again]
    told = [f"{name} {standings[name]}" for name in named if len(unknown) == 1 or name not in unknown]
    if len(unknown) > 1:
        told.append(f"no checkpoint is known of {', '.join(unknown)}: each begins again unless it keeps its own")
    more = len(order) - len(named)
    if not more:
        return ", ".join(told)
    unnamed = [standings[name] for name in order[_MOST_NAMED:]]
    again, unsure = sum(one.begins_again for one in unnamed), sum(one.may_begin_again for one in unnamed)
    rest = f"and {more} more" + (f", {again} of them from nothing" if again else "")
    rest += f", {unsure} of them likewise" if unsure else ""
    return ", ".join([*told, rest])


def told_at_stake(stakes: Mapping[str, str]) -> list[str]:
    """Return a line for each trial that loses what ``stakes`` tells, by its name; the first few of many."""
    lines = [f"{trial} {words}" for trial, words in list(stakes.items())[:_MOST_NAMED]]
    more = len(stakes) - len(lines)
    return [*lines, f"and {more} more"] if more else lines
