"""Checks around any policy: what it wants is let through only where that is safe."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar, assert_never

from pydantic import Field

from controllers.core.actions import Action, Clone, Decision, Migrate, Place, Proposal, Resize, Stop, Suspend
from controllers.core.model import Phase, Snapshot, Trial, TrialId
from controllers.core.progress import is_stale, usable
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.places import waiting
from controllers.policies.wrappers.wrapper import AroundOne

S = TypeVar("S")
NO_ROOM: Final = "the node has no room for it"


@dataclass(frozen=True, slots=True)
class GuardedState(Generic[S]):
    """The policy's own state, and when each trial was last acted on, and last moved (seconds): for the cooldown.

    Only of trials that have not ended.
    """

    policy: S
    acted_at: Mapping[TrialId, float] = field(default_factory=dict)
    moved_at: Mapping[TrialId, float] = field(default_factory=dict)


class Guarded(AroundOne):
    """Lets the proposals of ``policy`` through one by one; the others come back as ``vetoed`` with the reason.

    A proposal is held back where its trial is not running or a gang is incomplete; was moved less than ``cooldown``
    ago, or for a resize acted on less than ``resize_cooldown`` ago; would be the one move too many; has a stale metric,
    or for a move none; or where the node has no room, counting requests and the moves under way to it. A gang is let
    through whole, with a node for each of its workers, or held back: where a policy names one node, or none, the others
    are those nearest to it. A trial may be placed if it waits for that, and stopped if it runs or waits. One that is
    suspended may go on from the checkpoint of another trial of its sweep, unless that has failed. A change of its share
    holds no move, suspension or stop back: it has taken hold, and the next attempt starts with the request of old.

    A trial must leave a node that goes. So neither its moves nor its metric hold that back, and it is none of those
    that may move at once.

    While a trial waits for a place, a policy that gives places is asked again every ``look_again``: room may come
    without any trial changing, when others' pods leave a node.
    """

    cooldown: float = Field(
        default=5.0,
        ge=0,
        description="seconds between two moves or suspensions of a trial, as long as a save and resume",
    )
    resize_cooldown: float = Field(
        default=5.0,
        ge=0,
        description="seconds after any action on a trial in which its share is not changed; that delays no move",
    )
    disruption: float = Field(
        default=0.25, gt=0, le=1, description="greatest share of the live trials that may move at once, but always one"
    )
    stale_after: float = Field(
        default=300.0,
        gt=0,
        description="seconds after which a trial's newest report is too old to act on: it may be gone",
    )
    look_again: float = Field(
        default=10.0,
        gt=0,
        description="seconds between two looks while a trial waits for a place: others' pods may leave a node",
    )

    @property
    def state_type(self) -> type[GuardedState[Any]]:
        """Type of the state."""
        inner = self.policy.state_type
        return GuardedState[inner]  # type: ignore[valid-type]  # known at run time only

    def initial(self) -> GuardedState[Any]:
        """Return the state before the first decision."""
        return GuardedState(self.policy.initial())

    def decide(self, snapshot: Snapshot, state: GuardedState[Any]) -> Decision[GuardedState[Any]]:
        """Ask the policy and check what it wants, in its order."""
        wanted = self.policy.decide(snapshot, state.policy)
        cooling = self._recent(snapshot, state.acted_at, self.resize_cooldown)
        moved = self._recent(snapshot, state.moved_at, self.cooldown)
        passed: list[Proposal] = []
        vetoed = list(wanted.vetoed)
        if wanted.proposals:
            review = _Review(self, snapshot, cooling, moved)
            for proposal in wanted.proposals:
                objection = review.objection(proposal.action)
                whole = review.capacity.completed(proposal.action)
                if objection is None and whole is not None:
                    review.let_through(whole)
                    passed.append(replace(proposal, action=whole))
                else:
                    vetoed.append((proposal, objection or NO_ROOM))
        acted = {proposal.action.trial: snapshot.now for proposal in passed}
        moves = {proposal.action.trial: snapshot.now for proposal in passed if isinstance(proposal.action, Migrate)}
        return Decision(
            GuardedState(wanted.state, {**cooling, **acted}, {**moved, **moves}),
            tuple(passed),
            self._wake_at(snapshot, wanted.wake_at),
            wanted.assessments,
            tuple(vetoed),
        )

    @staticmethod
    def _recent(snapshot: Snapshot, since: Mapping[TrialId, float], cooldown: float) -> dict[TrialId, float]:
        """Return those of ``since`` that a cooldown still counts, by name."""
        return {
            name: at
            for name, at in sorted(since.items())
            if snapshot.now - at < cooldown and not ((trial := snapshot.named.get(name)) and trial.phase.ended)
        }

    def _wake_at(self, snapshot: Snapshot, asked: float | None) -> float | None:
        if Place not in self.needs or not any(waiting(snapshot)):
            return asked
        again = snapshot.now + self.look_again
        return again if asked is None else min(asked, again)


class _Review:
    """The checks of one decision; each proposal is seen beside those let through before it."""

    def __init__(
        self, guards: Guarded, snapshot: Snapshot, cooling: Mapping[TrialId, float], moved: Mapping[TrialId, float]
    ) -> None:
        self.guards, self.now, self.cooling, self.moved = guards, snapshot.now, cooling, moved
        self.capacity = Capacity.of(snapshot)
        self.going = {node.name for node in snapshot.nodes if node.leaves_at is not None}
        phases = [trial.phase for trial in snapshot.unended]
        waiting_for_room = phases.count(Phase.PENDING) + phases.count(Phase.SUSPENDED)
        leaving = sum(trial.phase is Phase.MOVING and self._must_go(trial) for trial in snapshot.unended if self.going)
        self.moving = phases.count(Phase.MOVING) - leaving
        self.most_moving = max(1, math.floor((len(phases) - waiting_for_room) * guards.disruption))
        self.acted_on: set[TrialId] = set()

    def let_through(self, action: Action) -> None:
        """Count ``action`` as begun."""
        self.capacity.apply(action)
        self.acted_on.add(action.trial)
        self.moving += isinstance(action, Migrate) and not self._must_go(self.capacity.trials[action.trial])

    def objection(self, action: Action) -> str | None:
        """Return what speaks against ``action``, if anything: the first of its checks that objects."""
        trial = self.capacity.trials.get(action.trial)
        if trial is None:
            return f"no trial {action.trial!r}"
        if trial.id in self.acted_on:
            return "the trial has another action in this decision"
        match action:
            case Place():
                objection = None if trial.waits else "the trial does not wait for a place"
            case Resize():
                objection = (
                    self._unfit(trial)
                    or self._cooling(trial, self.cooling, self.guards.resize_cooldown)
                    or self._stale(trial)
                )
            case Migrate() | Suspend() if self._must_go(trial):
                objection = self._unfit(trial)
            case Migrate():
                blind = "no metric yet" if trial.progress is None else self._stale(trial)
                cooling = self._cooling(trial, self.moved, self.guards.cooldown)
                objection = self._unfit(trial) or cooling or blind or self._too_many()
            case Suspend():
                objection = self._unfit(trial) or self._cooling(trial, self.moved, self.guards.cooldown)
            case Stop():
                objection = None if trial.waits else self._unfit(trial)
            case Clone(parent=parent):
                objection = self._no_clone(trial, self.capacity.trials.get(parent))
            case _:
                assert_never(action)
        if objection:
            return objection
        return None if self.capacity.allows(action) else NO_ROOM

    @staticmethod
    def _no_clone(trial: Trial, parent: Trial | None) -> str | None:
        if not trial.waits or trial.phase is not Phase.SUSPENDED:
            return "the trial is not suspended"
        if trial.gang:
            return "the trial is a gang"
        if parent is None or parent.id == trial.id or parent.sweep != trial.sweep:
            return "its parent is no other trial of its sweep"
        return "its parent has failed" if parent.phase is Phase.FAILED else None

    def _must_go(self, trial: Trial) -> bool:
        return not self.going.isdisjoint(trial.nodes)

    def _unfit(self, trial: Trial) -> str | None:
        if not trial.steady:
            return f"the trial is {trial.phase}"
        if len(trial.nodes) < trial.workers:
            return f"only {len(trial.nodes)} of {trial.workers} workers are placed"
        return None

    def _cooling(self, trial: Trial, since: Mapping[TrialId, float], cooldown: float) -> str | None:
        if trial.id in since:
            return f"acted on {self.now - since[trial.id]:g} s ago, cooldown {cooldown:g} s"
        return None

    def _stale(self, trial: Trial) -> str | None:
        bound = self.guards.stale_after
        if trial.progress is None:
            return None
        if is_stale(trial.progress, self.now, bound):
            return f"the newest report is {self.now - trial.progress.at:g} s old, bound {bound:g} s"
        return None if usable(trial.progress, self.now, bound) else f"the metric is {trial.progress.latest}"

    def _too_many(self) -> str | None:
        if self.moving >= self.most_moving:
            return f"{self.moving} trials move already, at most {self.most_moving} at once"
        return None
