"""A node whose quota is kept by stopping and continuing its trials."""

from dataclasses import dataclass, field
from typing import Final

from controllers.worlds.local.shares.paced_tree import CONTINUE, PacedTree
from controllers.worlds.local.shares.pacing import PERIOD_S, Paced, open_period

_SOONEST_S, _LATEST_S = 0.004, 0.05
_LEAST_RATE: Final = 0.01


@dataclass(slots=True)
class PacedTrial:
    """A trial's process tree and its account."""

    tree: PacedTree
    paced: Paced
    seen_at: float
    seen_used: float = 0.0

    def measure(self, now: float) -> None:
        """Book what was used since the last look."""
        used = self.tree.cpu_seconds()
        self.paced.note(used - self.seen_used, 0.0 if self.tree.stopped else now - self.seen_at)
        self.seen_used, self.seen_at = used, now


@dataclass(slots=True)
class PacedNode:
    """A node of ``quota`` cores. All times are those of one monotonic clock."""

    quota: float
    ends_at: float
    trials: dict[str, PacedTrial] = field(default_factory=dict)
    removed_used: float = 0.0

    def adopt(self, key: str, pid: int, weight: float, now: float) -> None:
        """Take a process tree in; it waits for the next period to run."""
        self.trials[key] = PacedTrial(PacedTree(pid), Paced(weight), now)

    def remove(self, key: str) -> None:
        """Let a process tree go, running."""
        trial = self.trials.pop(key)
        trial.tree.signal(CONTINUE)
        self.removed_used += trial.tree.cpu_seconds()

    def used(self) -> float:
        """Return the CPU seconds of all trials that are or were here."""
        return self.removed_used + sum(trial.tree.cpu_seconds() for trial in self.trials.values())

    def tick(self, now: float) -> float:
        """Measure, stop and continue; return when to do so next."""
        for trial in self.trials.values():
            trial.measure(now)
        if now >= self.ends_at:
            self._turn_period(now)
        for trial in self.trials.values():
            trial.tree.stop(not trial.paced.may_run)
        return min([self.ends_at, *(now + _exhausts_in(trial) for trial in self.trials.values())])

    def release(self) -> None:
        """Let every process go on."""
        for trial in self.trials.values():
            trial.tree.look()
            trial.tree.signal(CONTINUE)

    def _turn_period(self, now: float) -> None:
        for trial in self.trials.values():
            trial.tree.look()
            trial.paced.waited = trial.tree.waited()
            trial.paced.close_period()
        # A pacer that was held up itself must not give the lost periods all at once.
        self.ends_at = max(self.ends_at + PERIOD_S, now + PERIOD_S / 2)
        open_period({key: trial.paced for key, trial in self.trials.items()}, self.quota)


def _exhausts_in(trial: PacedTrial) -> float:
    """Return for how many seconds the trial may surely be left alone."""
    if trial.tree.stopped:
        return PERIOD_S
    return min(_LATEST_S, max(_SOONEST_S, trial.paced.allowance / max(trial.paced.wanted, _LEAST_RATE)))
