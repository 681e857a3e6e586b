"""Promote: the promising trials go first, by rungs of their own training; what the others get is the author's choice.

The rule is that of ASHA (see ``rungs``). What is ours: trials that wait at a rung are suspended with their checkpoint
and go on where they were, and at its first level nothing is ever stopped.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal

from pydantic import Field

from controllers.core.model import (
    Action,
    Assessment,
    Decision,
    Phase,
    Place,
    Proposal,
    Snapshot,
    Stop,
    Suspend,
    Trial,
    TrialId,
)
from controllers.policies.kit.places import with_room
from controllers.policies.kit.settings import PolicySettings
from controllers.policies.promote.rungs import Ladder, Level, with_reached

Finish = Literal["all", "best", "fast"]
LEVELS: Final[Mapping[str, Level]] = {"all": Level(0.16, 2.0), "best": Level(0.16, 2.0), "fast": Level(0.08, 1.5)}
DIVERGED: Final = "its objective is NaN or infinite"
MOST_SUSPENSIONS: Final = max(len(level.rungs(0.0)) for level in LEVELS.values())


@dataclass(frozen=True, slots=True)
class PromoteState:
    """The losses of each trial at the rungs that it has reached, and how many of these it may go beyond.

    Both of trials that have not ended; ``ended`` holds the losses of the others by rung, None before the first look.
    """

    losses: Mapping[TrialId, tuple[float, ...]] = field(default_factory=dict)
    passed: Mapping[TrialId, int] = field(default_factory=dict)
    ended: tuple[tuple[float, ...], ...] | None = None


class Promote(PolicySettings):
    """Lets the promising trials go first: those that are among the best at each rung of their own training.

    A trial that reaches a rung and is not among the best there waits: it is suspended with its checkpoint, holds
    nothing, and goes on as soon as it is among the best of those that have come so far. ``finish`` says what becomes of
    those that wait to the end:

    - ``all``: they go on too, once nobody goes before them. Nothing is lost; the best is known far sooner.
    - ``best``: they are stopped. Rungs at 16, 32 and 64 % of a training, half of the trials go on.
    - ``fast``: they are stopped. Rungs from 8 % on, two of three go on.

    A trial whose objective is NaN or infinite is stopped.
    """

    name: ClassVar[str] = "promote"
    summary: ClassVar[str] = "the promising trials go first, by rungs of their own training; the others wait or stop"
    source: ClassVar[str] = "ours, with the promotion rule of ASHA (Li et al. 2020)"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Suspend, Stop})
    placement: ClassVar[str] = "the promising first, then new trials; the default scheduler chooses the node"
    suspensions: ClassVar[str] = "trials that are not among the best at a rung, while others go first"
    stops: ClassVar[str] = (
        "trials that diverged; with finish=best or fast, those that still wait when the winner is known"
    )
    most_moves: ClassVar[int | None] = MOST_SUSPENSIONS

    finish: Finish = Field(default="all", description="what becomes of trials that wait at a rung to the end")
    warmup: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="part of a training before which nobody is compared: its learning-rate warm-up",
    )
    interval: float = Field(default=5.0, gt=0, description="seconds between two looks at what the trials report")

    @property
    def state_type(self) -> type[PromoteState]:
        """Type of the state."""
        return PromoteState

    def initial(self) -> PromoteState:
        """Return the state before the first decision."""
        return PromoteState()

    def decide(self, snapshot: Snapshot, state: PromoteState) -> Decision[PromoteState]:
        """Compare the trials at their rungs; place, suspend and stop by that."""
        level = LEVELS[self.finish]
        rungs, usual = level.rungs(self.warmup), _usual_steps(snapshot.trials)
        reached = {
            trial.id: with_reached(trial, state.losses.get(trial.id, ()), rungs, usual)
            for trial in snapshot.trials
            if not trial.phase.ended or state.ended is None or trial.id in state.losses
        }
        losses = {trial.id: reached.pop(trial.id) for trial in snapshot.unended}
        before = state.ended or ((),) * len(rungs)
        ended = tuple(
            (*of_rung, *(found[rung] for found in reached.values() if len(found) > rung))
            for rung, of_rung in enumerate(before)
        )
        ladder = Ladder(losses, ended, level.eta)
        passed = {name: ladder.passed(name, state.passed.get(name, 0)) for name in losses}
        ranks = _Ranks(losses, passed, ladder)
        stops = [
            Proposal(Stop(one.id, DIVERGED), DIVERGED) for one in snapshot.unended if _may_stop(one) and one.diverged
        ]
        stopped = {one.action.trial for one in stops}
        left = [trial for trial in snapshot.unended if trial.id not in stopped]
        first = ranks.in_order(trial for trial in left if trial.waits and not ranks.held(trial))
        last = ranks.in_order(trial for trial in left if trial.waits and ranks.held(trial))
        behind = ranks.in_order(trial for trial in left if trial.steady and ranks.held(trial))
        if self.finish != "all" and not _any_goes_on(left, ranks):
            if any(trial.phase is Phase.SUCCEEDED for trial in snapshot.trials):
                why = f"not among the best at {100 * rungs[0]:.0f} % of its training or later, and the best is known"
                stops += [Proposal(Stop(trial.id, why), why) for trial in (*last, *behind)]
                first, last, behind = [], [], []
            elif candidates := ranks.in_order((*last, *behind)):
                # Somebody has to come to the end: the best of those that wait.
                best = candidates[0]
                passed[best.id] = len(losses[best.id])
                last, behind = ([one for one in them if one is not best] for them in (last, behind))
                first = [best] if best.waits else []
        places, unplaced = with_room(snapshot, first)
        suspensions = self._suspended(behind, unplaced)
        if self.finish == "all" and not unplaced:
            more, _ = with_room(snapshot, [*first, *last])
            places = more
        proposals = (*stops, *self._proposals(places, ranks, rungs), *suspensions)
        seen = frozenset(one.id for one in places)
        return Decision(
            PromoteState(losses, passed, ended),
            proposals,
            snapshot.now + self.interval if snapshot.unended else None,
            {one.id: Assessment(outlook=ranks.outlook(one, rungs)) for one in left if losses[one.id]},
            narrowed=_narrowed(snapshot, seen, ranks, rungs, usual),
        )

    def _suspended(self, behind: Sequence[Trial], unplaced: Sequence[Trial]) -> list[Proposal]:
        """Return suspensions of trials that are not among the best: of all, or of as many as keep others waiting."""
        if self.finish != "all":
            return [Proposal(Suspend(one.id), "suspending: it is not among the best at its rung") for one in behind]
        worst = list(reversed(behind))[: len(unplaced)]
        return [Proposal(Suspend(one.id), "suspending: others that may be better go first") for one in worst]

    def _proposals(self, places: Iterable[Trial], ranks: "_Ranks", rungs: Sequence[float]) -> Iterator[Proposal]:
        for trial in places:
            yield Proposal(Place(trial.id), ranks.reason(trial, rungs))


class _Ranks:
    """Who goes before whom."""

    def __init__(
        self, losses: Mapping[TrialId, tuple[float, ...]], passed: Mapping[TrialId, int], ladder: Ladder
    ) -> None:
        self.losses, self.passed, self.ladder = losses, passed, ladder

    def reached(self, trial: Trial) -> int:
        """Return how many rungs a trial has reached."""
        return len(self.losses.get(trial.id, ()))

    def held(self, trial: Trial) -> bool:
        """Whether a trial waits at a rung that it may not go beyond."""
        return self.reached(trial) > self.passed.get(trial.id, 0)

    def in_order(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return ``trials``, first those that have come further, then the better ones, then those submitted earlier."""

        def rank(trial: Trial) -> tuple[int, float, float, TrialId]:
            reached = self.reached(trial)
            better = self.ladder.rank(trial.id, reached - 1) if reached else 0.0
            return -reached, better, trial.submitted_at, trial.id

        return sorted(trials, key=rank)

    def reason(self, trial: Trial, rungs: Sequence[float]) -> str:
        """Return why a trial gets a place."""
        reached = self.reached(trial)
        if not reached:
            return "placing: a new trial, up to its first rung"
        part = 100 * rungs[reached - 1]
        if self.held(trial):
            return f"resuming: nobody goes before it, though it was not among the best at {part:.0f} %"
        return f"resuming: it is among the best at {part:.0f} % of its training"

    def outlook(self, trial: Trial, rungs: Sequence[float]) -> str:
        """Return how a trial stands, in words."""
        rung = self.reached(trial) - 1
        better = 100 * self.ladder.rank(trial.id, rung)
        place = f"better than {100 - better:.0f} % of those that have come to {100 * rungs[rung]:.0f} %"
        return f"waits at its rung: {place}" if self.held(trial) else f"goes on: {place}"


def _may_stop(trial: Trial) -> bool:
    return trial.steady or trial.waits


def _any_goes_on(unended: Iterable[Trial], ranks: _Ranks) -> bool:
    """Whether any trial trains, or will, that does not wait at a rung."""
    return any(not ranks.held(trial) and trial.phase is not Phase.STOPPING for trial in unended)


def _usual_steps(trials: Iterable[Trial]) -> float | None:
    """Return the steps in all of a trial that does not tell its own: the median of what the others tell."""
    told = [trial.progress.steps_total for trial in trials if trial.progress and trial.progress.steps_total]
    return statistics.median(told) if told else None


def _narrowed(
    snapshot: Snapshot, places: frozenset[TrialId], ranks: _Ranks, rungs: Sequence[float], usual: float | None
) -> Snapshot:
    """Return the snapshot as policies behind this one shall see it.

    Trials that shall not start now do not wait. The training of one that is to be compared again ends at its next rung:
    until then, that is the work that is known to be worth doing.
    """

    def seen(trial: Trial) -> Trial:
        if trial.waits and trial.id not in places:
            trial = replace(trial, gated=False)
        progress, reached = trial.progress, ranks.reached(trial)
        if progress is None or ranks.held(trial) or reached >= len(rungs):
            return trial
        total = progress.steps_total or usual
        if not total:
            return trial
        return replace(trial, progress=replace(progress, steps_total=max(1, math.ceil(total * rungs[reached]))))

    unended = tuple(seen(trial) for trial in snapshot.unended)
    changed = {trial.id: trial for trial in unended}
    trials = tuple(changed.get(trial.id, trial) for trial in snapshot.trials)
    return Snapshot.in_order(snapshot.now, trials, unended, snapshot.nodes)
