"""Policies that know how much work each trial has left, as only a simulator can tell; for comparison."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from controllers.core.actions import Action, Decision, Resize
from controllers.core.model import Snapshot, Trial, TrialId
from controllers.core.policy import Policy
from controllers.policies.comparison.textbook import in_order
from controllers.policies.kit.settings import NoState, Stateless
from controllers.policies.wrappers.wrapper import parts, with_parts


class Clairvoyant(Stateless):
    """Base of those policies. A trial that has reported no step is taken to have all of its work before it."""

    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})

    work: Mapping[TrialId, float] = Field(
        default={}, exclude=True, description="seconds that each trial needs alone; given by the simulator"
    )

    steps: Mapping[TrialId, int] = Field(
        default={}, exclude=True, description="steps of each trial, where the simulator knows better than its reports"
    )

    def remaining(self, trial: Trial) -> float:
        """Return the lone seconds that ``trial`` has left, each step taken to be as long as the others."""
        progress = trial.progress
        steps = self.steps.get(trial.id) or (progress.steps_total if progress is not None else None)
        done = progress.step / steps if progress is not None and steps else 0.0
        return self.work.get(trial.id, 0.0) * max(0.0, 1 - done)


class ShortestRemaining(Clairvoyant):
    """Gives each node to the trial that will be done first: on one machine nothing has a better mean.

    Schrage, "A proof of the optimality of the shortest remaining processing time discipline", Operations Research 16,
    1968.
    """

    name: ClassVar[str] = "shortest-remaining"
    summary: ClassVar[str] = "trains on each node the trial with the least left to do; only in the simulator"
    source: ClassVar[str] = "Schrage 1968 (SRPT); for comparison"
    shares: ClassVar[str] = "all to the one with the least left"
    shortest_first: ClassVar[bool] = True

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Order each node's trials by what they have left, least first."""
        return Decision(state, in_order(snapshot, self.remaining, "shortest remaining first"))


class LongestRemaining(Clairvoyant):
    """Gives each node to the trial that will be done last."""

    name: ClassVar[str] = "longest-remaining"
    summary: ClassVar[str] = "trains on each node the trial with the most left to do; only in the simulator"
    source: ClassVar[str] = "a textbook's (LRPT); for comparison"
    shares: ClassVar[str] = "all to the one with the most left"

    interval: float = Field(default=30.0, gt=0, description="seconds after which the order is looked at again")

    def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        """Order each node's trials by what they have left, most first."""
        proposals = in_order(snapshot, lambda trial: -self.remaining(trial), "longest remaining first")
        # The longest does not stay the longest while it alone is trained.
        live = any(trial.live for trial in snapshot.unended)
        return Decision(state, proposals, wake_at=snapshot.now + self.interval if live else None)


def inform(
    policy: Policy[Any], work: Mapping[TrialId, float], steps: Mapping[TrialId, int] | None = None
) -> Policy[Any]:
    """Return ``policy`` with every clairvoyant part of it told the ``work`` (lone seconds) of each trial.

    ``steps`` are those that each trial makes in all; what a trial says itself may be less than the truth.
    """

    def told(part: Policy[Any]) -> Policy[Any]:
        known = {"work": dict(work), "steps": dict(steps or {})}
        return part.model_copy(update=known) if isinstance(part, Clairvoyant) else part

    return with_parts(policy, told)


def uninformed_parts(policy: Policy[Any]) -> list[str]:
    """Return the names of those parts of ``policy`` that would have to know each trial's work and do not."""
    return [part.name for part in parts(policy) if isinstance(part, Clairvoyant) and not part.work]
