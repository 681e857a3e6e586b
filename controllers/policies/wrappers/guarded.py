"""Checks around any policy: what it wants is let through only where that is safe."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from controllers.core.model import Action, Decision, Migrate, Phase, Place, Proposal, Snapshot, Trial, TrialId
from controllers.core.policy import Policy
from controllers.core.progress import is_stale, usable
from controllers.policies.kit.capacity import Ledger
from controllers.policies.wrappers.pinned import waits

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class GuardedState(Generic[S]):
    """The policy's own state, and when each trial was last acted on (seconds) while that still counts."""

    policy: S
    acted_at: Mapping[TrialId, float] = field(default_factory=dict)


class Guarded(BaseModel):
    """Lets the proposals of ``policy`` through one by one; the others come back as ``vetoed`` with the reason.

    A proposal is held back where its trial is not running or a gang is incomplete; was acted on less than
    ``cooldown`` ago; would be the one move too many; has a stale metric, or for a move none; or where the
    node has no room, counting requests and the moves under way to it. A trial may be placed if it waits for that.

    While a trial waits for a place, a policy that gives places is asked again every ``look_again``: room may come
    without any trial changing, when others' pods leave a node.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)

    policy: SkipValidation[Policy[Any]]
    cooldown: float = Field(
        default=5.0, ge=0, description="seconds between two actions on a trial: a save and resume takes about as long"
    )
    disruption: float = Field(
        default=0.25, gt=0, le=1, description="greatest share of the live trials that may move at once, but always one"
    )
    stale_after: float = Field(
        default=300.0, gt=0, description="seconds after which a trial's newest report is too old to act on"
    )
    look_again: float = Field(default=10.0, gt=0, description="seconds between two looks for room for trials that wait")

    @property
    def name(self) -> str:
        """Name of the guarded policy."""
        return self.policy.name

    @property
    def needs(self) -> frozenset[type[Action]]:
        """What the guarded policy needs."""
        return self.policy.needs

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
        cooling = {trial: at for trial, at in sorted(state.acted_at.items()) if snapshot.now - at < self.cooldown}
        verdicts = _Review(self, snapshot, cooling).verdicts(wanted.proposals) if wanted.proposals else []
        passed = tuple(proposal for proposal, objection in verdicts if objection is None)
        acted = dict.fromkeys((proposal.action.trial for proposal in passed), snapshot.now)
        return Decision(
            GuardedState(wanted.state, {**cooling, **acted}),
            passed,
            self._wake_at(snapshot, wanted.wake_at),
            wanted.assessments,
            (*wanted.vetoed, *((proposal, objection) for proposal, objection in verdicts if objection is not None)),
        )

    def _wake_at(self, snapshot: Snapshot, asked: float | None) -> float | None:
        if Place not in self.needs or not any(map(waits, snapshot.unended)):
            return asked
        again = snapshot.now + self.look_again
        return again if asked is None else min(asked, again)


class _Review:
    """The checks of one decision; each proposal is seen beside those let through before it."""

    def __init__(self, guards: Guarded, snapshot: Snapshot, cooling: Mapping[TrialId, float]) -> None:
        self.guards, self.now, self.cooling = guards, snapshot.now, cooling
        self.ledger = Ledger.of(snapshot)
        live = [trial for trial in snapshot.unended if trial.phase is not Phase.PENDING]
        self.moving = sum(trial.phase is Phase.MOVING for trial in live)
        self.most_moving = max(1, math.floor(len(live) * guards.disruption))
        self.seen: set[TrialId] = set()

    def verdicts(self, proposals: tuple[Proposal, ...]) -> list[tuple[Proposal, str | None]]:
        """Return each proposal with what speaks against it, if anything."""
        return [(proposal, self._verdict(proposal.action)) for proposal in proposals]

    def _verdict(self, action: Action) -> str | None:
        objection = self._objection(action)
        if objection is None:
            self._take(action)
        return objection

    def _take(self, action: Action) -> None:
        self.ledger.take(action)
        self.seen.add(action.trial)
        self.moving += isinstance(action, Migrate)

    def _objection(self, action: Action) -> str | None:
        trial = self.ledger.trials.get(action.trial)
        if trial is None:
            return f"no trial {action.trial!r}"
        if isinstance(action, Place):
            return self._unplaceable(trial) or self._roomless(action)
        checks = (self._unfit(trial), self._too_soon(trial), self._blind(trial, action), self._too_many(action))
        objection = next((check for check in checks if check), None)
        return objection or self._roomless(action)

    def _roomless(self, action: Action) -> str | None:
        return None if self.ledger.allows(action) else "the node has no room for it"

    def _unplaceable(self, trial: Trial) -> str | None:
        if trial.id in self.seen:
            return "the trial has another action in this decision"
        return None if waits(trial) else "the trial does not wait for a place"

    def _unfit(self, trial: Trial) -> str | None:
        if not trial.steady:
            return f"the trial is {trial.phase}"
        if len(trial.nodes) < trial.workers:
            return f"only {len(trial.nodes)} of {trial.workers} workers are placed"
        return None

    def _too_soon(self, trial: Trial) -> str | None:
        if trial.id in self.seen:
            return "the trial has another action in this decision"
        if trial.id in self.cooling:
            return f"acted on {self.now - self.cooling[trial.id]:g} s ago, cooldown {self.guards.cooldown:g} s"
        return None

    def _blind(self, trial: Trial, action: Action) -> str | None:
        bound = self.guards.stale_after
        if trial.progress is None:
            return "no metric yet" if isinstance(action, Migrate) else None
        if is_stale(trial.progress, self.now, bound):
            return f"the newest report is {self.now - trial.progress.at:g} s old, bound {bound:g} s"
        return None if usable(trial.progress, self.now, bound) else f"the metric is {trial.progress.latest}"

    def _too_many(self, action: Action) -> str | None:
        if isinstance(action, Migrate) and self.moving >= self.most_moving:
            return f"{self.moving} trials move already, at most {self.most_moving} at once"
        return None
