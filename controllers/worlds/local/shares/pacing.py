"""Pacing: who of a node may run for how long, and the signals that see to it.

Time is cut into periods. Each gives a node ``quota * period`` CPU seconds, split among its trials by
weight, but to none more than it can use (weighted max-min fairness). A trial that has used up its
part waits for the next period; what it used too much is taken off its next part.
"""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controllers.worlds.local.processes import proctree

PERIOD_S: Final = 0.2
_HEADROOM: Final = 1.1
_LEAST_WANTED: Final = 0.01


@dataclass(slots=True)
class Paced:
    """A trial: its weight, what it may still use in this period, and what it could use of a core's time.

    ``allowance`` below zero is a debt. ``wanted`` is in cores.
    """

    weight: float
    allowance: float = 0.0
    wanted: float = 1.0
    used: float = 0.0
    ran: float = 0.0
    waited: float = 0.0

    @property
    def may_run(self) -> bool:
        """Whether anything is left of the allowance."""
        return self.allowance > 0

    def note(self, used: float, ran: float) -> None:
        """Account for ``used`` CPU seconds in ``ran`` seconds in which it was not stopped."""
        self.allowance -= used
        self.used += used
        self.ran += ran

    def close_period(self) -> None:
        """Learn from the period how many cores it would use if it never had to wait."""
        if self.ran > 0:
            self.wanted = (self.used + self.waited) / self.ran
        self.used = self.ran = self.waited = 0.0


def open_period(trials: Mapping[str, Paced], quota: float) -> None:
    """Give each trial of a node its part of the next period; debts are kept, savings are not."""
    caps = {key: max(trial.wanted * _HEADROOM, _LEAST_WANTED) * PERIOD_S for key, trial in trials.items()}
    parts = split(quota * PERIOD_S, {key: trial.weight for key, trial in trials.items()}, caps)
    for key, trial in trials.items():
        trial.allowance = min(trial.allowance, 0.0) + parts[key]


def split(total: float, weights: Mapping[str, float], caps: Mapping[str, float]) -> dict[str, float]:
    """Split ``total`` by weight, to none more than its cap; what a cap leaves goes to the others."""
    parts: dict[str, float] = {}
    # The one that needs least for its weight is served first: all before it were capped, so the rest is known.
    for key in sorted(weights, key=lambda key: (caps[key] / weights[key], key)):
        rest = sum(weight for other, weight in weights.items() if other not in parts)
        parts[key] = min(caps[key], (total - sum(parts.values())) * weights[key] / rest)
    return parts


STOP, CONTINUE, KILL = signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL


class PacedTree:
    """The tree under one root process while that pid means that process, and the processes of it that outlive that."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._born = {root: proctree.start_time(root)}
        self._pids: list[int] = []
        self._account = proctree.CpuAccount()
        self._waiting = 0.0
        self.stopped = False
        self.look()

    def look(self) -> None:
        """Find out which processes belong to the tree by now."""
        # Those whose parents have ended too: stopped, nobody else would let them go on.
        known = [pid for pid, born in self._born.items() if born is not None and proctree.start_time(pid) == born]
        pids = [pid for member in known for pid in proctree.tree(member)]
        if any(proctree.session(pid) == self._root for pid in known):
            pids += proctree.strays(self._root)
        self._pids = list(dict.fromkeys(pids))
        self._born = {pid: self._born.get(pid) or proctree.start_time(pid) for pid in self._pids}

    def cpu_seconds(self) -> float:
        """Return the CPU seconds used so far; they stay when the processes are gone."""
        return self._account.seconds(self._pids)

    def waited(self) -> float:
        """Return for how many seconds threads waited for a core since the last call."""
        before, self._waiting = self._waiting, proctree.waiting_seconds(self._pids)
        return max(0.0, self._waiting - before)

    def stop(self, stopped: bool) -> None:  # noqa: FBT001 - says what is to be
        """Stop or continue every process of it, unless that is how it is already."""
        if stopped != self.stopped:
            self.stopped = stopped
            self.signal(STOP if stopped else CONTINUE)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the root's process group and to what has left it."""
        if self._pids:
            if any(proctree.session(pid) == self._root for pid in self._pids):
                proctree.send_group(self._root, number)
            proctree.send(self._pids, number)


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
