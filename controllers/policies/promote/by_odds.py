"""What is done for a promised risk: who gets a place, who makes room, and when all is over. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controllers.core.actions import Assessment, Place, Proposal, Stop, Suspend
from controllers.core.model import Phase, Snapshot, Trial, TrialId
from controllers.core.promises import PromiseKept
from controllers.policies.kit.places import with_room
from controllers.policies.kit.sweeps import by_sweep
from controllers.policies.kit.work_left import SweepMeasurements
from controllers.policies.promote.leaders import LeadingTrials
from controllers.policies.promote.promised import Chances, PromisedState, bound_of

_LEAST_TOLD: Final = 0.001
"""Smaller odds are not told as a number."""


@dataclass(frozen=True, slots=True)
class ByOdds:
    """What a look comes to: what is kept, what is done, and what is told of each trial that goes on."""

    state: PromisedState
    proposals: tuple[Proposal, ...]
    placed: frozenset[TrialId]
    told: Mapping[TrialId, Assessment]


@dataclass(frozen=True, slots=True)
class Terms:
    """The ``risk`` that is promised.

    ``looks`` are the parts of a training after which a trial may have to wait, rising; it has to ``most_suspensions``
    times at most.
    """

    risk: float
    looks: Sequence[float]
    most_suspensions: int

    def may_suspend(self, trial: Trial) -> bool:
        """Return whether a trial has suspensions left."""
        return trial.suspensions < self.most_suspensions


def by_odds(
    snapshot: Snapshot,
    state: PromisedState,
    known: SweepMeasurements,
    usual: Mapping[str, float | None],
    terms: Terms,
) -> ByOdds:
    """Return what to do so that no more than the promised part of all sweeps misses a better model.

    Args:
        snapshot: What there is.
        state: What was kept.
        known: What was measured.
        usual: Steps in all of each sweep's trials, for those that do not tell their own.
        terms: What is promised, and how.
    """
    chances = Chances(snapshot, state.seen(snapshot, usual), terms.looks)
    stops = [stop for trials in by_sweep(snapshot.trials).values() for stop in _ends(trials, chances, terms.risk)]
    over = {stop.action.trial for stop in stops}
    left = [trial for trial in snapshot.unended if trial.id not in over and not trial.diverged]
    leaders = LeadingTrials(snapshot, known, chances.in_order(trial for trial in left if trial.steady))
    waiting = chances.in_order(trial for trial in left if trial.waits)
    placed = _placing(snapshot, chances, leaders, waiting)
    placed_ids = frozenset(trial.id for trial in placed)
    unplaced = [trial for trial in waiting if trial.id not in placed_ids]
    leaving = sum(trial.phase in {Phase.SUSPENDING, Phase.STOPPING} for trial in snapshot.unended)
    suspensions = _making_room(chances, leaders, left, unplaced[leaving:], terms)
    places = [Proposal(Place(trial.id), _why_placed(trial, chances)) for trial in placed]
    told = {trial.id: Assessment(outlook=_outlook(odds)) for trial in left if (odds := chances.odds(trial)) is not None}
    ending = tuple(sorted({*chances.state.ending, *over}))
    kept = replace(chances.state, passed=chances.passed, ending=ending, resumed=chances.resumed)
    return ByOdds(kept, (*stops, *places, *suspensions), placed_ids, told)


def _placing(snapshot: Snapshot, chances: Chances, leaders: LeadingTrials, waiting: Sequence[Trial]) -> list[Trial]:
    """Return who of those ``waiting``, in order, gets a place; one that was at a look goes on from there."""
    placed, _ = with_room(snapshot, waiting)
    placed = [trial for trial in placed if chances.is_first(trial) or leaders.leave_room(trial)]
    for trial in placed:
        chances.resumes(trial)
        if not chances.is_new(trial):
            chances.passes(trial)
    return placed


def _making_room(
    chances: Chances,
    leaders: LeadingTrials,
    trials: Sequence[Trial],
    unplaced: Sequence[Trial],
    terms: Terms,
) -> list[Proposal]:
    """Return suspensions of those at a look that make room for ``unplaced`` or ``leaders``; others pass it."""
    suspensions: list[Proposal] = []
    waiting = list(unplaced)
    at_look = [trial for trial in trials if trial.steady and chances.at_look(trial) and chances.may_wait(trial)]
    for trial in reversed(chances.in_order(at_look)):  # those with the worst odds first
        leader = leaders.before(trial)
        if waiting and terms.may_suspend(trial) and chances.gives_way(trial, waiting[0]):
            waiting.pop(0)
            suspensions.append(Proposal(Suspend(trial.id), "suspending: others are likelier to be the best"))
        elif leader is not None and terms.may_suspend(trial) and chances.gives_way(trial, leader):
            why = "suspending: others are likelier to be the best, and can use its cores"
            suspensions.append(Proposal(Suspend(trial.id), why))
        else:
            chances.passes(trial)
    return suspensions


def _ends(trials: Sequence[Trial], chances: Chances, promise: float) -> list[Proposal]:
    """Return stops of all trials of a sweep that are left, once that is no greater a risk than was promised."""
    left = chances.left(trials[0].sweep)
    if left is None or left > bound_of(promise, len(trials)):
        return []
    whole = sum(trial.phase is Phase.SUCCEEDED for trial in trials)
    kept = PromiseKept(promise, left, whole, len(trials))
    may_stop = (trial for trial in trials if (trial.steady or trial.waits) and not trial.diverged)
    return [Proposal(Stop(trial.id, kept.written()), f"stopping: {kept.words()}") for trial in may_stop]


def _why_placed(trial: Trial, chances: Chances) -> str:
    if chances.is_new(trial):
        return "placing: a new trial, up to its first look"
    odds = chances.odds(trial)
    return "resuming: the best so far" if odds is None else f"resuming: {_outlook(odds)}"


def _outlook(odds: float) -> str:
    told = f"{odds:.1%} likely" if odds >= _LEAST_TOLD else "hardly likely"
    return f"{told} to end better than the best"
