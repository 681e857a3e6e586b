"""Promote: the promising trials go first, by rungs of their own training; what the others get is the author's choice.

The rule is that of ASHA (see ``rungs``), or that of a promised risk (see ``by_odds``). What is ours: trials that
wait are suspended with their checkpoint and go on where they were, and at its first level nothing is ever stopped.
"""

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import ClassVar, Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from controllers.core.actions import Action, Assessment, Decision, Place, Proposal, Stop, Suspend
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.places import with_room
from controllers.policies.kit.settings import PolicySettings
from controllers.policies.kit.sweeps import by_sweep
from controllers.policies.kit.work_left import SweepMeasurements, measure_sweep, most_cores
from controllers.policies.promote.by_odds import Terms, by_odds
from controllers.policies.promote.idle_cores import IdleCores
from controllers.policies.promote.promised import looks_after
from controllers.policies.promote.ranks import PromoteState, Ranks
from controllers.policies.promote.rungs import Level

Finish = Literal["all", "best", "fast"]
PROMISES: Final[Mapping[Finish, float]] = {"best": 0.05, "fast": 0.2}
"""The risk that each level promises; where everything is trained, there is none."""
Rungs = Literal["best", "fast"]
RUNGS: Final[Mapping[Rungs, Level]] = {"best": Level(0.16, 2.0), "fast": Level(0.08, 1.5)}
FIRST_RUNG: Final = RUNGS["best"].first
"""Part of its training after which a trial is first compared, by the rungs that suit most sweeps."""
DIVERGED: Final = "its objective is NaN or infinite"
LEAST: Final = 4
"""Trials that go beyond each rung at least: of twelve trials, the rule of the best half alone leaves one."""
MOST_SUSPENSIONS: Final = max(len(level.rungs(0.0)) for level in RUNGS.values())
"""A trial that was suspended so often goes on: each attempt takes one from the sweep's retries."""
STAYS: Final = 10.0
"""A resumed trial keeps its place for this many start-up times, unless another needs it.

What others can use is measured, and changes from one look to the next: a place that is idle now may not be idle then.
"""
MOST_BESIDE: Final = 100
"""Trials that get idle cores in one decision, so that none takes long: the others come next."""


class Promote(PolicySettings):
    """Lets the promising trials go first: those that are among the best at each rung of their own training.

    A trial that reaches a rung and is not among the best there waits: it is suspended with its checkpoint, holds
    nothing, and goes on as soon as it is among the best of those that have come so far. ``finish`` says what becomes of
    those that wait to the end:

    - ``all``: they go on too, once nobody goes before them. Nothing is lost; the best is known far sooner.
    - ``best``: they are stopped, at a promised risk of 5 % that a model more than 1 % better is missed.
    - ``fast``: they are stopped, at a promised risk of 20 %. ``risk`` promises any other.

    Under a promise, there are no rungs. Two trials train to their end, the others to 8 %. From then on the likeliest to
    beat the best goes on, by a model that was learnt from other sweeps, and all is stopped once what is left adds up to
    no more than the risk that was promised (see ``promised``). One that goes on after a pause trains for twice
    as long as that took before it waits again. Where the likeliest can use all cores, the others wait for them to end
    (see ``leaders``).

    ``rungs`` stops by fixed rungs, and promises nothing: ``best`` has them at 16, 32 and 64 % of a training, and half
    of the trials go on; ``fast`` has them from 8 % on, and two of three go on. Trials that wait train on meanwhile on
    cores that nobody else can use. Their rung lets them past by the same rule.

    Four trials go beyond each rung at least: where these are more than the rule lets past, the others follow once
    nobody can come to the rung any more.

    A trial whose objective is NaN or infinite is stopped.
    """

    name: ClassVar[str] = "promote"
    summary: ClassVar[str] = "the promising trials go first, by rungs of their own training; the others wait or stop"
    source: ClassVar[str] = "ours, with the promotion rule of ASHA (Li et al. 2020)"
    state_type: ClassVar[type[PromoteState]] = PromoteState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Suspend, Stop})
    placement: ClassVar[str] = "the promising first, then new trials; the default scheduler chooses the node"
    suspensions: ClassVar[str] = "trials that are not among the best at a rung, while others go first"
    stops: ClassVar[str] = (
        "trials that diverged; with finish=best or fast, or risk=, all that are left once that keeps the promise; with "
        "rungs=, those that still wait when the winner is known"
    )
    most_moves: ClassVar[int | None] = MOST_SUSPENSIONS

    finish: Finish = Field(
        default="all", description="what is trained: all, or what it takes for a promised risk of 5 % or 20 %"
    )
    risk: float | None = Field(
        default=None,
        ge=0.0001,
        le=0.2,
        description="promised part of sweeps in which a model more than 1 % better may be missed; in place of finish",
    )
    rungs: Rungs | None = Field(
        default=None, description="fixed rungs that trials are stopped by, without a promise; in place of finish"
    )
    warmup: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="part of a training before which nobody is compared: its learning-rate warm-up",
    )
    interval: float = Field(default=5.0, gt=0, description="seconds between two looks at what the trials report")

    @field_validator("risk", "rungs")
    @classmethod
    def _check_alone(cls, given: float | str | None, info: ValidationInfo) -> float | str | None:
        other = next((name for name in ("finish", "risk") if info.data.get(name) not in {None, "all"}), None)
        if given is not None and other is not None:
            message = f"{info.field_name}= and {other}= both say when trials are ended: leave one out"
            raise ValueError(message)
        return given

    @property
    def promise(self) -> float | None:
        """The promised part of sweeps in which a model more than 1 % better may be missed; None without a promise."""
        return self.risk or PROMISES.get(self.finish)

    @property
    def level(self) -> Level:
        """The rungs at which trials are compared where no risk is promised."""
        return RUNGS[self.rungs or "best"]

    def decide(self, snapshot: Snapshot, state: PromoteState) -> Decision[PromoteState]:
        """Compare the trials; place, suspend and stop by that."""
        if self.promise is not None:
            return self._by_odds(snapshot, state, self.promise)
        return self._by_rungs(snapshot, state)

    def _by_rungs(self, snapshot: Snapshot, state: PromoteState) -> Decision[PromoteState]:
        """Let those go first that are among the best at their rungs."""
        level = self.level
        sweeps = by_sweep(snapshot.trials)
        rungs, usual = level.rungs(self.warmup), {sweep: _usual_steps(trials) for sweep, trials in sweeps.items()}
        ranks = Ranks.of(snapshot, state, level, rungs, usual)
        stops = _diverged(snapshot)
        if self.rungs is not None:
            for of_sweep in sweeps.values():
                stops += self._ends(of_sweep, ranks, rungs)
        stopped = {stop.action.trial for stop in stops}
        left = [trial for trial in snapshot.unended if trial.id not in stopped]
        known = state.measured if self.rungs is None else measure_sweep(snapshot, state.measured)
        placing, suspensions = self._steps(snapshot, left, ranks, known)
        places = [
            Proposal(Place(trial.id) if node is None else Place.on(node, trial), ranks.reason(trial, rungs))
            for trial, node in placing
        ]
        return Decision(
            PromoteState(ranks.losses, ranks.passed, ranks.ended, known, state.promised),
            (*stops, *places, *suspensions),
            snapshot.now + self.interval if snapshot.unended else None,
            {trial.id: Assessment(outlook=ranks.outlook(trial, rungs)) for trial in left if ranks.losses[trial.id]},
            narrowed=_narrowed(
                snapshot,
                frozenset(trial.id for trial, _ in placing),
                lambda trial: _up_to_its_rung(trial, ranks, rungs, usual, self.rungs),
            ),
        )

    def _by_odds(self, snapshot: Snapshot, state: PromoteState, risk: float) -> Decision[PromoteState]:
        """Train what is likely to be the best, until the rest is no greater a risk than was promised."""
        usual = {sweep: _usual_steps(trials) for sweep, trials in by_sweep(snapshot.trials).items()}
        stops = _diverged(snapshot)
        terms = Terms(risk, looks_after(self.warmup), MOST_SUSPENSIONS)
        known = measure_sweep(snapshot, state.measured)
        found = by_odds(snapshot, state.promised, known, usual, terms)
        return Decision(
            replace(state, promised=found.state, measured=known),
            (*stops, *found.proposals),
            snapshot.now + self.interval if snapshot.unended else None,
            found.told,
            narrowed=_narrowed(snapshot, found.placed),
        )

    def _steps(
        self, snapshot: Snapshot, trials: Sequence[Trial], ranks: Ranks, known: SweepMeasurements
    ) -> tuple[list[tuple[Trial, NodeName | None]], list[Proposal]]:
        """Return who gets a place, on which node if that matters, and who is suspended; ``trials`` are not stopped."""
        first = ranks.in_order(trial for trial in trials if trial.waits and not ranks.held(trial))
        last = ranks.in_order(trial for trial in trials if trial.waits and ranks.held(trial))
        behind = ranks.in_order(
            trial for trial in trials if trial.steady and ranks.held(trial) and trial.suspensions < MOST_SUSPENSIONS
        )
        placed, unplaced = with_room(snapshot, first)
        kept, beside = behind, list[tuple[Trial, NodeName | None]]()
        if self.rungs is None and not unplaced:
            placed, _ = with_room(snapshot, [*first, *last])
        elif self.rungs is not None and (behind or last):
            kept, beside = _on_idle_cores(snapshot, ranks, known, behind, [] if first else last)
        stay = {trial.id for trial in kept}
        behind = [trial for trial in behind if trial.id not in stay]
        leaving = len(behind) + sum(trial.phase in {Phase.SUSPENDING, Phase.STOPPING} for trial in snapshot.unended)
        # A trial that leaves already makes room. Without this, each look would suspend one more until it has left.
        worst = list(reversed(kept))[: max(0, len(unplaced) - leaving)]
        suspensions = [
            *(Proposal(Suspend(trial.id), "suspending: it is not among the best at its rung") for trial in behind),
            *(Proposal(Suspend(trial.id), "suspending: others that may be better go first") for trial in worst),
        ]
        return [*((trial, None) for trial in placed), *beside], suspensions

    def _ends(self, trials: Sequence[Trial], ranks: Ranks, rungs: Sequence[float]) -> list[Proposal]:
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
        return [Proposal(Stop(trial.id, why), why) for trial in sound if _may_stop(trial)]


def _on_idle_cores(
    snapshot: Snapshot, ranks: Ranks, known: SweepMeasurements, behind: Sequence[Trial], waiting: Sequence[Trial]
) -> tuple[list[Trial], list[tuple[Trial, NodeName | None]]]:
    """Return who of those that run ``behind`` stays on idle cores, and who of those ``waiting`` starts on such."""
    starting = {trial.id for trial in snapshot.unended if ranks.held(trial) and not (trial.waits or trial.steady)}
    idle = IdleCores(snapshot, most_cores(snapshot, known), {trial.id for trial in behind}, starting)
    since = snapshot.now - STAYS * statistics.median(known.starts or (0.0,))
    # A gang never trains on idle cores, so it has none to stay on.
    new = {trial.id for trial in behind if not trial.gang and known.trials[trial.id].running_since > since}
    kept = list(idle.kept(behind, new))
    # The last suspension is kept for a rung: a trial on idle cores may have to make room once more.
    again = [trial for trial in waiting if trial.suspensions < MOST_SUSPENSIONS - 1]
    return kept, [*islice(idle.places(again), MOST_BESIDE)]


def _diverged(snapshot: Snapshot) -> list[Proposal]:
    diverged = (trial for trial in snapshot.unended if _may_stop(trial) and trial.diverged)
    return [Proposal(Stop(trial.id, DIVERGED), DIVERGED) for trial in diverged]


def _may_stop(trial: Trial) -> bool:
    return trial.steady or trial.waits


def _usual_steps(trials: Iterable[Trial]) -> float | None:
    """Return the steps in all of a trial that does not tell its own: the median of what the others tell."""
    told = [trial.progress.steps_total for trial in trials if trial.progress and trial.progress.steps_total]
    return statistics.median(told) if told else None


def _narrowed(
    snapshot: Snapshot, placed: Collection[TrialId], seen: Callable[[Trial], Trial] = lambda trial: trial
) -> Snapshot:
    """Return the snapshot as policies behind this one shall see it: trials that shall not start now do not wait.

    Args:
        snapshot: What there is.
        placed: Who shall start now.
        seen: How each trial shall be seen besides.
    """

    def narrowed(trial: Trial) -> Trial:
        return seen(replace(trial, withheld=True) if trial.waits and trial.id not in placed else trial)

    unended = tuple(narrowed(trial) for trial in snapshot.unended)
    changed = {trial.id: trial for trial in unended}
    return snapshot.of_trials(tuple(changed.get(trial.id, trial) for trial in snapshot.trials), unended)


def _up_to_its_rung(
    trial: Trial, ranks: Ranks, rungs: Sequence[float], usual: Mapping[str, float | None], fixed: Rungs | None
) -> Trial:
    """Return a trial as policies behind this one shall see it where it is compared at rungs.

    One that trains on beyond its rung stays where it found idle cores: elsewhere it would be in the way of those that
    go first. The training of one that is to be compared again ends at its next rung: until then, that is the work that
    is known to be worth doing.
    """
    if fixed is not None and ranks.held(trial) and trial.nodes:
        trial = replace(trial, may_use=frozenset(trial.nodes))
    progress, reached = trial.progress, ranks.reached(trial)
    if progress is None or ranks.held(trial) or reached >= len(rungs):
        return trial
    total = progress.steps_total or usual[trial.sweep]
    if not total:
        return trial
    return replace(trial, progress=replace(progress, steps_total=max(1, math.ceil(total * rungs[reached]))))
