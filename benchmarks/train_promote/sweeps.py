"""Sweeps of recorded curves under a promised risk, as fast as they can be simulated: for training and for judging.

Only the rule is here: places, looks, and when all is over. The odds are those of the product. What starts and resumes
cost is a part of a trial. The simulator of the project runs the product as it is, and takes a hundred times as long.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import Floats, features
from controllers.policies.promote.noise import deviation
from controllers.policies.promote.promised import FAR_BETTER, LOOKS, PROBES

START: Final = 0.02
"""What a start or a resume takes, of a trial's training."""
LOOKS_AT: Final = tuple(int(np.ceil(look * PARTS - 1e-6)) for look in LOOKS)
Model = Callable[[Floats], Floats]
"""Odds of each trial by its features."""


@dataclass
class Seen:
    """What a decision saw: features of all that has not ended, and whether each would have beaten the best."""

    features: Floats
    better: np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class End:
    """What a sweep would come to if all ended at a decision.

    ``left`` is the risk that the model saw. ``makespan`` is a part of that of training everything; ``regret`` that of
    the best value that a completed trial reported, in percent of the gap between the best and the median.
    """

    left: float
    makespan: float
    regret: float


@dataclass
class Outcome:
    """What a sweep came to: what its decisions saw, and how it would have ended at each; the last is how it did.

    ``noise`` is that of all values, in percent of the same gap.
    """

    noise: float
    seen: list[Seen] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)

    def at(self, bound: float) -> End:
        """Return how it ends where what is left may be as much as ``bound``."""
        return next((end for end in self.ends if end.left <= bound), self.ends[-1])


def noise_of(values: Floats) -> float:
    """Return how far a value is off by chance: by second differences of successive values of all trials."""
    second = np.abs(values[:, 2:] - 2 * values[:, 1:-1] + values[:, :-2])
    second = second[np.isfinite(second)]
    return deviation([float(np.median(second))]) if len(second) else 0.0


def whole_makespan(trials: int, slots: int) -> float:
    """Return how long training everything takes, in trials."""
    return -(-trials // slots) * (1 + START)


def end_of(values: Floats, completed: Sequence[int], now: float, slots: int) -> End:
    """Return what a sweep of ``values`` comes to that is over at ``now`` (in trials) with those trials completed."""
    ends = values.min(axis=1)
    scale = max(1e-12, float(np.median(ends) - ends.min()))
    regret = float(100 * (ends[list(completed)].min() - ends.min()) / scale)
    return End(1.0, now / whole_makespan(len(values), slots), regret)


class Sweep:
    """One sweep of trials with ``values`` (losses by trial and part) on so many ``slots``.

    ``most_active`` trials share all slots once all have been looked at, if it is given: idle cores, with linear
    speed-up.
    """

    def __init__(self, values: Floats, slots: int, model: Model, most_active: int | None = None) -> None:
        self.values = values
        self.best = np.minimum.accumulate(values, axis=1)
        self.slots, self.model, self.most_active = slots, model, most_active
        trials = len(values)
        self.parts = np.zeros(trials, int)
        self.passed = np.zeros(trials, int)
        self.running: dict[int, tuple[float, int, int, float]] = {}
        self.done: list[int] = []
        self.paused: set[int] = set()
        self.new = list(range(trials))
        self.events: list[tuple[float, int, int]] = []
        self.now = 0.0
        ends = self.best[:, -1]
        self.scale = max(1e-12, float(np.median(ends) - ends.min()))

    def run(self, bound: float, every: int = 0) -> Outcome:
        """Run until what is left is at most ``bound``; keep what each ``every``-th decision saw."""
        outcome = Outcome(100 * noise_of(self.values) / self.scale)
        self._fill({})
        while self.events:
            self.now, trial, part = heapq.heappop(self.events)
            if trial not in self.running or self.running[trial][2] != part:
                continue
            self._moves_on(trial, part)
            odds, left, seen = self._judged()
            if left is not None:
                if every and seen is not None and len(outcome.ends) % every == 0:
                    outcome.seen.append(seen)
                outcome.ends.append(self._end(left))
                if left <= bound:
                    return outcome
            if part < PARTS:
                self._at_look(trial, odds)
            self._fill(odds)
        outcome.ends.append(self._end(0.0))
        return outcome

    def _end(self, left: float) -> End:
        return End(left, self.now / whole_makespan(len(self.values), self.slots), self._regret())

    def _moves_on(self, trial: int, part: int) -> None:
        """Note how far all have come now that ``trial`` has come to ``part``."""
        self.parts[trial] = part
        if part == PARTS:
            del self.running[trial]
            self.done.append(trial)
        for other, (since, begun, target, pace) in self.running.items():
            made = begun + int(max(0.0, self.now - since) * pace * PARTS + 1e-6)
            self.parts[other] = max(self.parts[other], min(made, target))

    def _regret(self) -> float:
        ends = self.best[:, -1]
        return float(100 * (ends[self.done].min() - ends.min()) / self.scale)

    def _judged(self) -> tuple[dict[int, float], float | None, Seen | None]:
        """Return the odds of all that have begun and not ended, what is left if that can be told, and what was seen."""
        unended = np.array([trial for trial in (*self.running, *self.paused) if self.parts[trial] > 0], int)
        if not self.done:
            return {}, None, None
        if len(unended) == 0:
            return {}, (None if self.new or self.running else 0.0), None
        completed = self.best[self.done]
        made = np.concatenate([self.parts[unended], [PARTS] * len(self.done)])
        known = self.values[np.concatenate([unended, self.done])].copy()
        known[np.arange(PARTS)[None, :] >= made[:, None]] = np.nan
        least = float(completed[:, -1].min())
        found = features(self.best[unended], self.parts[unended], completed, least, noise_of(known))
        odds = self.model(found)
        begun = len(unended) == len(self.running) + len(self.paused) and (self.parts[unended] >= LOOKS_AT[0]).all()
        left = float(1 - np.prod(1 - odds)) if begun and not self.new else None
        better = self.best[unended, -1] < least - 0.01 * self.scale
        return dict(zip(unended.tolist(), odds.tolist(), strict=True)), left, Seen(found, better)

    def _at_look(self, trial: int, odds: dict[int, float]) -> None:
        """Let a trial wait, or pass the look that it has come to."""
        reached = sum(self.parts[trial] >= look for look in LOOKS_AT)
        rival = max(self.paused, key=lambda one: self._merit(one, odds), default=None)
        if self.new:
            leaves = self.passed[trial] == 0
        elif rival is None:
            leaves = False
        elif trial not in odds:
            leaves = self.passed[trial] == 0 and self._merit(rival, odds) > self._merit(trial, odds)
        else:
            far = FAR_BETTER if self.passed[trial] else 1.0
            leaves = odds[rival] > far * odds[trial]
        crowd = not self.new and self.most_active is not None and len(self.running) > self.most_active
        if leaves or (crowd and self.passed[trial] == 0):
            del self.running[trial]
            self.paused.add(trial)
            return
        self.passed[trial] = reached if odds else len(LOOKS_AT)
        self._go(trial, start=False)

    def _merit(self, trial: int, odds: dict[int, float]) -> float:
        return odds[trial] if odds else -float(self.best[trial, self.parts[trial] - 1])

    def _fill(self, odds: dict[int, float]) -> None:
        while len(self.running) < self.slots:
            if self.new:
                self._go(self.new.pop(0), start=True)
            elif self.paused and (self.most_active is None or len(self.running) < self.most_active):
                trial = max(self.paused, key=lambda one: self._merit(one, odds))
                self.paused.remove(trial)
                self.passed[trial] = sum(self.parts[trial] >= look for look in LOOKS_AT) if odds else len(LOOKS_AT)
                self._go(trial, start=True)
            else:
                return

    def _go(self, trial: int, *, start: bool) -> None:
        first = trial < PROBES
        target = PARTS if first or self.passed[trial] >= len(LOOKS_AT) else LOOKS_AT[self.passed[trial]]
        pace = 1.0
        if self.most_active is not None and not self.new and len(self.running.keys() | {trial}) <= self.most_active:
            pace = self.slots / self.most_active
        begins = self.now + (START if start else 0.0)
        took = (target - self.parts[trial]) / PARTS / pace
        self.running[trial] = (begins, int(self.parts[trial]), target, pace)
        heapq.heappush(self.events, (begins + took, trial, target))
