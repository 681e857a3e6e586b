"""A promised risk: what is trained follows from how likely each trial is to be the best, not from fixed rungs. Pure.

Two trials are trained to their end at once: what they gain tells what others may. All others wait at the first look.
From then on a free place goes to the trial with the best odds, and a running one gives way at a look where another has
far better ones. But one that goes on after a pause trains for twice as long as that took before it waits again: so
pauses take a part of the time only, however dear they are. All is over once what is left adds up to less than was
promised.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from controllers.core.model import Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.sweeps import by_sweep
from controllers.policies.promote.curves import PARTS, Curve, extended, whole
from controllers.policies.promote.noise import Noise
from controllers.policies.promote.rungs import losses_of

LOOKS: Final = (0.08, 0.12, 0.18, 0.26, 0.38, 0.56, 0.78)
"""Parts of a training after which a trial may have to wait."""


def looks_after(warmup: float) -> tuple[float, ...]:
    """Return the looks of a training that begins with a ``warmup`` of that part."""
    return tuple(warmup + (1 - warmup) * look for look in LOOKS)


PROBES: Final = 2
"""Trials of a sweep that are trained to their end without a look."""
FAR_BETTER: Final = 2.5
"""A trial gives way at a later look to one that is so many times as likely to be the best."""
FEW: Final = 60
"""Of so many trials or fewer, those that count most are so few that the bound must be stricter,"""
STRICTER: Final = 0.75
"""by this factor."""
WORTH_A_START: Final = 2.0
"""A trial that goes on trains at least so many times as long as that took before it has to wait again.

Of real sweeps with trainings of seconds, those with 2 lost less to pauses than those with 1. Where trainings are long,
neither changes anything on average.
"""
_ROUNDED: Final = 1e-6
_BOUNDS: Final = ((0.0, 0.0), (0.02, 0.1), (0.05, 0.2), (0.1, 0.3), (0.2, 0.5))
"""What is left may add up to so much for each promise: the model is too careful, by as much as was measured."""


def bound_of(promise: float, trials: int) -> float:
    """Return what the odds of all that is left may add up to, for a promised risk in a sweep of so many trials."""
    stricter = STRICTER if trials <= FEW else 1.0
    for (low, at_low), (high, at_high) in pairwise(_BOUNDS):
        if promise <= high:
            return stricter * (at_low + (at_high - at_low) * (promise - low) / (high - low))
    return stricter * _BOUNDS[-1][1]


@dataclass(frozen=True, slots=True)
class Resumption:
    """A trial that went on after a pause: placed ``at``, from ``step``; it reported the next one ``since`` then.

    Times are seconds of the sweep's clock. Whatever lies between both is what the pause cost: pods that are scheduled,
    images that are pulled, imports, and steps that are trained once more.
    """

    at: float
    step: int
    since: float | None = None

    def seen(self, trial: Trial, now: float) -> "Resumption":
        """Return what is known after a look at the trial."""
        further = trial.progress is not None and trial.progress.step > self.step
        return replace(self, since=now) if self.since is None and further else self

    def paid_off(self, now: float) -> bool:
        """Return whether the trial has trained for long enough since."""
        return self.since is not None and now - self.since >= WORTH_A_START * (self.since - self.at)


@dataclass(frozen=True, slots=True)
class PromisedState:
    """What is kept of all sweeps: the curve of each trial that has not ended, and how many looks it has passed.

    ``completed`` are the curves of those that have trained to their end, by sweep, and ``noise`` is that of values.
    ``ending`` are trials that are being stopped as the promise allows, ``given_up`` the curves of those that were, by
    sweep: where trials arrive one by one, what each batch of them may have missed adds up. ``resumed`` are the last
    pauses of those that went on.
    """

    curves: Mapping[TrialId, Curve] = field(default_factory=dict)
    passed: Mapping[TrialId, int] = field(default_factory=dict)
    completed: Mapping[str, tuple[Curve, ...]] = field(default_factory=dict)
    noise: Noise = field(default_factory=Noise)
    ending: tuple[TrialId, ...] = ()
    given_up: Mapping[str, Mapping[TrialId, Curve]] = field(default_factory=dict)
    resumed: Mapping[TrialId, Resumption] = field(default_factory=dict)

    def seen(self, snapshot: Snapshot, usual: Mapping[str, float | None]) -> "PromisedState":
        """Return what is known after a look at ``snapshot``; ``usual`` are the steps in all of each sweep's trials."""
        curves = {trial.id: _curve(trial, self.curves, usual) for trial in snapshot.unended}
        completed = dict(self.completed)
        for trial in snapshot.trials:
            if trial.id in self.curves and trial.phase is Phase.SUCCEEDED and not trial.diverged:
                curve = whole(_curve(trial, self.curves, usual))
                if curve:
                    completed[trial.sweep] = (*completed.get(trial.sweep, ()), curve)
        passed = {trial.id: self.passed.get(trial.id, 0) for trial in snapshot.unended}
        newest = {
            (trial.sweep, trial.id): losses_of(trial.progress, trial.direction).newest
            for trial in snapshot.unended
            if trial.progress is not None and len(curves[trial.id]) > len(self.curves.get(trial.id, ()))
        }
        given_up = {sweep: dict(of_sweep) for sweep, of_sweep in self.given_up.items()}
        for trial in snapshot.trials:
            if trial.id in self.ending and trial.phase is Phase.STOPPED and self.curves.get(trial.id):
                given_up.setdefault(trial.sweep, {})[trial.id] = self.curves[trial.id]
        ending = tuple(trial for trial in self.ending if trial in curves)
        noise = self.noise.seen(newest, [*curves])
        resumed = {
            trial.id: self.resumed[trial.id].seen(trial, snapshot.now)
            for trial in snapshot.unended
            if trial.id in self.resumed
        }
        return PromisedState(curves, passed, completed, noise, ending, given_up, resumed)


def _end(trial: Trial) -> float | None:
    """Return the best loss of a trial that has trained to its end; None of others, and where it told nothing."""
    if trial.phase is not Phase.SUCCEEDED or trial.progress is None or trial.diverged:
        return None
    return losses_of(trial.progress, trial.direction).best


def _curve(trial: Trial, known: Mapping[TrialId, Curve], usual: Mapping[str, float | None]) -> Curve:
    before = known.get(trial.id, ())
    if trial.progress is None:
        return before
    return extended(before, trial.progress, trial.direction, usual[trial.sweep])


class Chances:
    """How the trials of a snapshot stand, by what is known of them (``state``).

    ``looks`` are parts of a training after which a trial may have to wait, rising.
    """

    def __init__(self, snapshot: Snapshot, state: PromisedState, looks: Sequence[float] = LOOKS) -> None:
        self.state = state
        self._looks = tuple(math.ceil(look * PARTS - _ROUNDED) for look in looks)
        self.passed = dict(state.passed)
        self.resumed = dict(state.resumed)
        self._now = snapshot.now
        self._odds: dict[TrialId, float] = {}
        self._probes: set[TrialId] = set()
        self._left: dict[str, float] = {}
        for sweep, trials in by_sweep(snapshot.trials).items():
            sound = [trial for trial in trials if trial.phase is not Phase.FAILED and not trial.diverged]
            ends = [end for trial in sound if (end := _end(trial)) is not None]
            self._probes |= self._probes_of(sweep, sound, len(ends))
            self._judge(sweep, [trial for trial in sound if not trial.phase.ended], min(ends, default=math.inf))

    def _probes_of(self, sweep: str, sound: Sequence[Trial], ended: int) -> set[TrialId]:
        """Return the trials of a sweep that need no look; so many have trained to their end.

        Trials that ended before anybody looked tell no gains. Where there are such, others take their places.
        """
        in_order = sorted(sound, key=lambda trial: (trial.submitted_at, trial.id))
        known = len(self.state.completed.get(sweep, ()))
        if ended <= known:
            return {trial.id for trial in in_order[:PROBES]}
        return {trial.id for trial in [one for one in in_order if not one.phase.ended][: max(0, PROBES - known)]}

    def _judge(self, sweep: str, trials: Sequence[Trial], least: float) -> None:
        """Find the odds of the trials of a sweep that have not ended, and what they add up to.

        ``least`` is the least loss of all that have trained to their end.
        """
        curves = {trial.id: curve for trial in trials if (curve := self.state.curves[trial.id])}
        completed = self.state.completed.get(sweep, ())
        if not completed:
            return
        # numpy takes longer to import than most commands take to run.
        from controllers.policies.promote.odds import odds_of, read, risk_left  # noqa: PLC0415

        given_up = self.state.given_up.get(sweep, {})
        found = odds_of({**given_up, **curves}, completed, least, self.state.noise.of(sweep), read())
        self._odds |= {trial: found[trial] for trial in curves}
        if not any(self.is_new(trial) for trial in trials):
            self._left[sweep] = risk_left(found.values())

    def is_new(self, trial: Trial) -> bool:
        """Whether a trial has not come to the first look."""
        return len(self.state.curves[trial.id]) < self._looks[0]

    def is_first(self, trial: Trial) -> bool:
        """Whether a trial goes before all that have come to the first look: it is new, or one of the first ones."""
        return self.is_new(trial) or trial.id in self._probes

    def odds(self, trial: Trial) -> float | None:
        """Return how likely a trial is to beat the best that has ended; None where nobody can tell."""
        return self._odds.get(trial.id)

    def left(self, sweep: str) -> float | None:
        """Return how likely any trial of a sweep is to do so, or would have been that was stopped as promised.

        None while some have yet to come to the first look.
        """
        return self._left.get(sweep)

    def at_look(self, trial: Trial) -> bool:
        """Whether a trial has come to a look that it has not passed."""
        return trial.id not in self._probes and self._reached(trial) > self.passed[trial.id]

    def in_order(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return ``trials``: the first ones and new ones by submission, then those with the best odds."""

        def rank(trial: Trial) -> tuple[bool, bool, float, float, TrialId]:
            new, probe = self.is_new(trial), trial.id in self._probes
            chance = 0.0 if new else self._merit(trial)
            return not probe, not new, -chance, trial.submitted_at, trial.id

        return sorted(trials, key=rank)

    def gives_way(self, trial: Trial, to: Trial) -> bool:
        """Whether a running trial that has come to a look makes room for one that waits."""
        if self.is_new(to):
            return self.passed[trial.id] == 0
        if self.odds(trial) is None or self.odds(to) is None:
            return self.passed[trial.id] == 0 and self._merit(to) > self._merit(trial)
        far = FAR_BETTER if self.passed[trial.id] else 1.0
        return self._merit(to) > far * self._merit(trial)

    def may_wait(self, trial: Trial) -> bool:
        """Whether a trial that went on has trained for long enough since, so that it may have to wait again."""
        return trial.id not in self.resumed or self.resumed[trial.id].paid_off(self._now)

    def resumes(self, trial: Trial) -> None:
        """Note that a trial that was paused is placed now; it goes on from there."""
        if trial.progress is not None:
            self.resumed[trial.id] = Resumption(self._now, trial.progress.step)

    def passes(self, trial: Trial) -> None:
        """Let a trial go on from where it is; before any has ended, to its end."""
        self.passed[trial.id] = len(self._looks) if self.odds(trial) is None else self._reached(trial)

    def _reached(self, trial: Trial) -> int:
        """Return how many looks a trial has come to."""
        return sum(len(self.state.curves[trial.id]) >= look for look in self._looks)

    def _merit(self, trial: Trial) -> float:
        """Return what a trial is compared by: its odds, or before any can be told, how good it is."""
        odds, curve = self.odds(trial), self.state.curves[trial.id]
        return odds if odds is not None else -curve[-1]
