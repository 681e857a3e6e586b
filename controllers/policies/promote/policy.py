"""Promote: the promising trials go first, by rungs of their own training; what the others get is the author's choice.

The rule is that of ASHA (see ``rungs``). What is ours: trials that wait at a rung are suspended with their checkpoint
and go on where they were, and at its first level nothing is ever stopped.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from controllers.core.actions import Action, Assessment, Decision, Place, Proposal, Stop, Suspend
from controllers.core.model import Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.places import with_room
from controllers.policies.kit.settings import PolicySettings
from controllers.policies.promote.rungs import KeptLosses, Ladder, Level, Losses, with_reached

Finish = Literal["all", "best", "fast"]
LEVELS: Final[Mapping[str, Level]] = {"all": Level(0.16, 2.0), "best": Level(0.16, 2.0), "fast": Level(0.08, 1.5)}
FIRST_RUNG: Final = LEVELS["best"].first
"""Part of its training after which a trial is first compared, at the level that suits most sweeps."""
DIVERGED: Final = "its objective is NaN or infinite"
LEAST: Final = 4
"""Trials that go beyond each rung at least: of twelve trials, the rule of the best half alone leaves one."""
MOST_SUSPENSIONS: Final = max(len(level.rungs(0.0)) for level in LEVELS.values())


def _by_sweep_or_anew(ended: object) -> object:
    """Return None for losses that an older version kept of all sweeps together: the next look finds them by sweep."""
    return None if isinstance(ended, list) else ended


@dataclass(frozen=True, slots=True)
class PromoteState:
    """The losses of each trial at the rungs that it has reached, and how many of these it may go beyond.

    Both of trials that have not ended. ``ended`` holds the losses of the others, by sweep and rung, and is None before
    the first look.
    """

    losses: Mapping[TrialId, tuple[KeptLosses, ...]] = field(default_factory=dict)
    passed: Mapping[TrialId, int] = field(default_factory=dict)
    ended: Annotated[Mapping[str, tuple[tuple[KeptLosses, ...], ...]] | None, BeforeValidator(_by_sweep_or_anew)] = None


class Promote(PolicySettings):
    """Lets the promising trials go first: those that are among the best at each rung of their own training.

    A trial that reaches a rung and is not among the best there waits: it is suspended with its checkpoint, holds
    nothing, and goes on as soon as it is among the best of those that have come so far. ``finish`` says what becomes of
    those that wait to the end:

    - ``all``: they go on too, once nobody goes before them. Nothing is lost; the best is known far sooner.
    - ``best``: they are stopped. Rungs at 16, 32 and 64 % of a training, half of the trials go on.
    - ``fast``: they are stopped. Rungs from 8 % on, two of three go on.

    Four trials go beyond each rung at least: where these are more than the rule lets past, the others follow once
    nobody can come to the rung any more.

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
        sweeps = _by_sweep(snapshot.trials)
        rungs, usual = level.rungs(self.warmup), {sweep: _usual_steps(trials) for sweep, trials in sweeps.items()}
        ranks = _Ranks.of(snapshot, state, level, rungs, usual)
        stops = [
            Proposal(Stop(one.id, DIVERGED), DIVERGED) for one in snapshot.unended if _may_stop(one) and one.diverged
        ]
        if self.finish != "all":
            for of_sweep in sweeps.values():
                stops += self._ends(of_sweep, ranks, rungs)
        stopped = {one.action.trial for one in stops}
        left = [trial for trial in snapshot.unended if trial.id not in stopped]
        first = ranks.in_order(trial for trial in left if trial.waits and not ranks.held(trial))
        last = ranks.in_order(trial for trial in left if trial.waits and ranks.held(trial))
        behind = ranks.in_order(trial for trial in left if trial.steady and ranks.held(trial))
        places, unplaced = with_room(snapshot, first)
        suspensions = self._suspended(behind, unplaced)
        if self.finish == "all" and not unplaced:
            places, _ = with_room(snapshot, [*first, *last])
        proposals = (*stops, *(Proposal(Place(one.id), ranks.reason(one, rungs)) for one in places), *suspensions)
        seen = frozenset(one.id for one in places)
        return Decision(
            PromoteState(ranks.losses, ranks.passed, ranks.ended),
            proposals,
            snapshot.now + self.interval if snapshot.unended else None,
            {one.id: Assessment(outlook=ranks.outlook(one, rungs)) for one in left if ranks.losses[one.id]},
            narrowed=_narrowed(snapshot, seen, ranks, rungs, usual),
        )

    def _ends(self, trials: Sequence[Trial], ranks: "_Ranks", rungs: Sequence[float]) -> list[Proposal]:
        """Return stops of the trials of a sweep that still wait at a rung, once nobody will go on any more.

        Before, at each rung that nobody can come to any more, ``LEAST`` are let past.
        """
        sound = [trial for trial in trials if not (trial.phase.ended or (trial.diverged and _may_stop(trial)))]
        going_on = [trial for trial in sound if not ranks.held(trial) and trial.phase is not Phase.STOPPING]
        if any(trial.phase in {Phase.SUSPENDING, Phase.MOVING} for trial in sound):
            return []  # it cannot be let past yet, and a worse one would be in its place
        succeeded = sum(trial.phase is Phase.SUCCEEDED for trial in trials)
        for rung in range(len(rungs)):
            if any(ranks.reached(trial) <= rung for trial in going_on):
                return []
            waiting = ranks.in_order(trial for trial in sound if _may_stop(trial) and ranks.waits_at(trial, rung))
            beyond = succeeded + sum(ranks.passed[trial.id] > rung for trial in sound)
            for trial in waiting[: max(0, LEAST - beyond)]:
                ranks.let_past(trial, rung)
                going_on.append(trial)
        if going_on:
            return []
        why = f"not among the best at {100 * rungs[0]:.0f} % of its training or later, and the best is known"
        return [Proposal(Stop(one.id, why), why) for one in sound if _may_stop(one)]

    def _suspended(self, behind: Sequence[Trial], unplaced: Sequence[Trial]) -> list[Proposal]:
        """Return suspensions of trials that are not among the best: of all, or of as many as keep others waiting."""
        if self.finish != "all":
            return [Proposal(Suspend(one.id), "suspending: it is not among the best at its rung") for one in behind]
        worst = list(reversed(behind))[: len(unplaced)]
        return [Proposal(Suspend(one.id), "suspending: others that may be better go first") for one in worst]


class _Ranks:
    """Who goes before whom, and how far each may go. Losses and places are those of ``PromoteState``."""

    def __init__(
        self,
        losses: dict[TrialId, tuple[Losses, ...]],
        passed: Mapping[TrialId, int],
        ended: Mapping[str, tuple[tuple[Losses, ...], ...]],
        trials: Mapping[str, Sequence[Trial]],
        eta: float,
    ) -> None:
        self.losses, self.ended = losses, ended
        self._ladders = {
            sweep: Ladder({one.id: losses[one.id] for one in trials.get(sweep, ())}, of_ended, eta)
            for sweep, of_ended in ended.items()
        }
        self.passed = {
            one.id: self._ladders[sweep].passed(one.id, passed.get(one.id, 0))
            for sweep, of_sweep in trials.items()
            for one in of_sweep
        }

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        state: PromoteState,
        level: Level,
        rungs: Sequence[float],
        usual: Mapping[str, float | None],
    ) -> "_Ranks":
        """Return how the trials of ``snapshot`` compare, after what was known before."""

        def reached(trial: Trial) -> tuple[Losses, ...]:
            return with_reached(trial, state.losses.get(trial.id, ()), rungs, usual[trial.sweep])

        new = [one for one in snapshot.trials if one.phase.ended and (state.ended is None or one.id in state.losses)]
        ended = dict(state.ended or {})
        for sweep, of_sweep in _by_sweep((*snapshot.unended, *new)).items():
            over = [reached(one) for one in of_sweep if one.phase.ended]
            ended[sweep] = tuple(
                (*before, *(found[rung] for found in over if len(found) > rung))
                for rung, before in enumerate(ended.get(sweep, ((),) * len(rungs)))
            )
        losses = {one.id: reached(one) for one in snapshot.unended}
        return cls(losses, state.passed, ended, _by_sweep(snapshot.unended), level.eta)

    def let_past(self, trial: Trial, rung: int) -> None:
        """Let ``trial`` go beyond ``rung``."""
        self.passed[trial.id] = rung + 1

    def reached(self, trial: Trial) -> int:
        """Return how many rungs a trial has reached."""
        return len(self.losses.get(trial.id, ()))

    def held(self, trial: Trial) -> bool:
        """Whether a trial waits at a rung that it may not go beyond."""
        return self.reached(trial) > self.passed.get(trial.id, 0)

    def waits_at(self, trial: Trial, rung: int) -> bool:
        """Whether a trial has reached ``rung`` and may not go beyond it."""
        return self.passed[trial.id] <= rung < self.reached(trial)

    def in_order(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return ``trials``, first those that have come further, then the better ones, then those submitted earlier."""

        def rank(trial: Trial) -> tuple[int, float, float, TrialId]:
            reached = self.reached(trial)
            better = self._better(trial, reached - 1) if reached else 0.0
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
        better = 100 * self._better(trial, rung)
        place = f"better than {100 - better:.0f} % of those that have come to {100 * rungs[rung]:.0f} %"
        return f"waits at its rung: {place}" if self.held(trial) else f"goes on: {place}"

    def _better(self, trial: Trial, rung: int) -> float:
        """Return which part of the trials of its sweep was better at ``rung``."""
        return self._ladders[trial.sweep].rank(trial.id, rung)


def _may_stop(trial: Trial) -> bool:
    return trial.steady or trial.waits


def _by_sweep(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Return the trials of each sweep: only these can be compared."""
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.sweep, []).append(trial)
    return found


def _usual_steps(trials: Iterable[Trial]) -> float | None:
    """Return the steps in all of a trial that does not tell its own: the median of what the others tell."""
    told = [trial.progress.steps_total for trial in trials if trial.progress and trial.progress.steps_total]
    return statistics.median(told) if told else None


def _narrowed(
    snapshot: Snapshot,
    places: frozenset[TrialId],
    ranks: _Ranks,
    rungs: Sequence[float],
    usual: Mapping[str, float | None],
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
        total = progress.steps_total or usual[trial.sweep]
        if not total:
            return trial
        return replace(trial, progress=replace(progress, steps_total=max(1, math.ceil(total * rungs[reached]))))

    unended = tuple(seen(trial) for trial in snapshot.unended)
    changed = {trial.id: trial for trial in unended}
    trials = tuple(changed.get(trial.id, trial) for trial in snapshot.trials)
    return Snapshot.in_order(snapshot.now, trials, unended, snapshot.nodes)
