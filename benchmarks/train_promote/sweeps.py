"""Sweeps of recorded curves under a promised risk, as fast as they can be simulated: for training and for judging.

Only the rule is here: places, looks, and when all is over. The odds are those of the product. What starts and resumes
cost is a part of a trial. The simulator of the project runs the product as it is, and takes a hundred times as long.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.features import Floats, features
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
    risk: float


@dataclass
class Outcome:
    """What a sweep came to.

    ``makespan`` is a part of that of training everything; ``regret`` of the best completed one, in percent of the gap
    between the best and the median.
    """

    makespan: float
    regret: float
    trained: int
    left: float
    pauses: int = 0
    seen: list[Seen] = field(default_factory=list)
    stops: list[tuple[float, float, float]] = field(default_factory=list)
    """What was left, makespan and regret if all had ended there, by decision."""


def noise_of(values: Floats) -> float:
    """Return how far a value is off by chance: by second differences of successive values of all trials."""
    second = np.abs(values[:, 2:] - 2 * values[:, 1:-1] + values[:, :-2])
    second = second[np.isfinite(second)]
    return float(np.median(second)) / (0.6745 * np.sqrt(6)) if len(second) else 0.0


def shifted(odds: Floats, shift: float) -> Floats:
    away = odds / np.maximum(1e-12, 1 - odds) * np.exp(shift)
    return np.asarray(away / (1 + away))


def shift_of(said: Floats, came: Floats, trust: float) -> float:
    shift = 0.0
    for _ in range(8):
        now = shifted(said, shift)
        slope = float((came - now).sum()) - shift / trust**2
        shift += slope / (float((now * (1 - now)).sum()) + 1 / trust**2)
        shift = max(-3.0, min(3.0, shift))
    return shift


def whole_makespan(trials: int, slots: int) -> float:
    """Return how long training everything takes, in trials."""
    return -(-trials // slots) * (1 + START)


class Sweep:
    """One sweep of trials with ``values`` (losses by trial and part) on so many ``slots``.

    ``most_active`` trials share all slots once all have been looked at, if it is given: idle cores, with linear
    speed-up.
    """

    def __init__(self, values: Floats, slots: int, model: Model, most_active: int | None = None, trust: float = 0.0) -> None:
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
        self.pauses = 0
        self.trust = trust
        self.bets: dict[int, tuple[float, float]] = {}
        ends = self.best[:, -1]
        self.scale = max(1e-12, float(np.median(ends) - ends.min()))

    def run(self, bound: float, every: int = 0) -> Outcome:
        """Run until what is left is at most ``bound``; keep what each ``every``-th decision saw."""
        seen, stops, decisions = [], [], 0
        self._fill({})
        while self.events:
            self.now, trial, part = heapq.heappop(self.events)
            if trial not in self.running or self.running[trial][2] != part:
                continue
            self.parts[trial] = part
            if part == PARTS:
                del self.running[trial]
                self.done.append(trial)
            for other, (since, begun, target, pace) in self.running.items():
                made = begun + int(max(0.0, self.now - since) * pace * PARTS + 1e-6)
                self.parts[other] = max(self.parts[other], min(made, target))
            odds, left, found = self._judged()
            if left is not None:
                stops.append((left, self.now / whole_makespan(len(self.values), self.slots), self._regret()))
                if every and decisions % every == 0 and found is not None:
                    seen.append(found)
                decisions += 1
                if left <= bound:
                    break
            if part < PARTS:
                self._at_look(trial, odds)
            self._fill(odds)
        makespan = self.now / whole_makespan(len(self.values), self.slots)
        last = stops[-1][0] if stops else 0.0
        return Outcome(makespan, self._regret(), len(self.done), last, self.pauses, seen, stops)

    def _regret(self) -> float:
        ends = self.best[:, -1]
        return float(100 * (ends[self.done].min() - ends.min()) / self.scale)

    def _judged(self) -> tuple[dict[int, float], float | None, Seen | None]:
        unended = np.array([trial for trial in (*self.running, *self.paused) if self.parts[trial] > 0], int)
        if not self.done:
            return {}, None, None
        if len(unended) == 0:
            return {}, (None if self.new else 0.0), None
        completed = self.best[self.done]
        made = np.concatenate([self.parts[unended], [PARTS] * len(self.done)])
        known = self.values[np.concatenate([unended, self.done])].copy()
        known[np.arange(PARTS)[None, :] >= made[:, None]] = np.nan
        found = features(self.best[unended], self.parts[unended], completed, noise_of(known))
        odds = self.model(found)
        self.raw = dict(zip(unended.tolist(), odds.tolist(), strict=True))
        self.bar = completed[:, -1].min() - 0.01 * self.scale
        if self.trust and self.bets:
            odds = shifted(odds, self._shift())
        left = None
        if not self.new and (self.parts[unended] >= LOOKS_AT[0]).all() and len(unended) == len(self.running) + len(
            self.paused
        ):
            left = float(1 - np.prod(1 - odds))
        bar = completed[:, -1].min() - 0.01 * self.scale
        seen = Seen(found, self.best[unended, -1] < bar, left if left is not None else 1.0)
        return dict(zip(unended.tolist(), odds.tolist(), strict=True)), left, seen

    def _shift(self) -> float:
        said, came = [], []
        for trial, (odds, bar) in self.bets.items():
            if self.parts[trial] == PARTS:
                said.append(odds)
                came.append(float(self.best[trial, -1] < bar))
            elif trial in self.paused:
                said.append(odds)
                came.append(min(odds, self.raw.get(trial, 0.0)))
        return shift_of(np.array(said), np.array(came), self.trust)

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
            self.pauses += 1
            return
        self.passed[trial] = reached if odds else len(LOOKS_AT)
        self._go(trial, start=False)

    def _merit(self, trial: int, odds: dict[int, float]) -> float:
        return odds.get(trial, -self.best[trial, max(0, self.parts[trial] - 1)]) if odds else (
            -self.best[trial, max(0, self.parts[trial] - 1)]
        )

    def _fill(self, odds: dict[int, float]) -> None:
        while len(self.running) < self.slots:
            if self.new:
                self._go(self.new.pop(0), start=True)
            elif self.paused and (self.most_active is None or len(self.running) < self.most_active):
                trial = max(self.paused, key=lambda one: self._merit(one, odds))
                self.paused.remove(trial)
                self.passed[trial] = (
                    sum(self.parts[trial] >= look for look in LOOKS_AT) if odds else len(LOOKS_AT)
                )
                if odds and trial in self.raw:
                    self.bets.setdefault(trial, (self.raw[trial], self.bar))
                self._go(trial, start=True)
            else:
                return

    def _go(self, trial: int, *, start: bool) -> None:
        first = trial < PROBES
        target = PARTS if first or self.passed[trial] >= len(LOOKS_AT) else LOOKS_AT[self.passed[trial]]
        pace = 1.0
        if self.most_active is not None and not self.new:
            pace = self.slots / self.most_active
        begins = self.now + (START if start else 0.0)
        took = (target - self.parts[trial]) / PARTS / pace
        self.running[trial] = (begins, int(self.parts[trial]), target, pace)
        heapq.heappush(self.events, (begins + took, trial, target))
