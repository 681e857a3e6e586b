"""DQoES: each trial has a time that a step shall take, and shares move towards these targets.

After Mao et al., "Differentiate Quality of Experience Scheduling for Deep Learning Applications with Docker Containers
in the Cloud" (DQoES), of which the abstract is public here: the rule by which shares move is ours.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import Field

from controllers.model import Action, Assessment, Decision, Proposal, Resize, Snapshot, Trial, TrialId
from controllers.policies.base import CLOCK_SLACK
from controllers.policies.dqoes_parts import shared_out
from controllers.policies.node_shares import NodeShares, node_shares, shrinks_first
from controllers.policies.settings import MinChange, MinCpu, PolicySettings, StaleAfter
from controllers.policies.step_times import StepMemo, timed


@dataclass(frozen=True, slots=True)
class DQoESState:
    """Step times of the trials that have not ended, and when to look next (seconds)."""

    due_at: float = 0.0
    steps: Mapping[TrialId, StepMemo] = field(default_factory=dict)


class DQoES(PolicySettings):
    """Trials that are faster than they need be give some of their share to those that are too slow.

    A trial is satisfied within ``tolerance`` of its target. The sum of a node's requests stays at most what the
    authors asked for; where that is too little for all, those that need the least come first, so that as many as can
    be are satisfied (`controllers.policies.dqoes_parts`).
    """

    name: ClassVar[str] = "dqoes"
    summary: ClassVar[str] = "moves shares from trials faster than their time per step to those that are slower"
    source: ClassVar[str] = "DQoES (abstract); the rule is ours"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})
    goal: ClassVar[str] = "seconds_per_step"
    shares: ClassVar[str] = "what its time per step takes, the least first, as far as there is enough"

    interval: float = Field(default=20.0, gt=0, description="seconds between two looks")
    tolerance: float = Field(
        default=0.1, gt=0, lt=1, description="part of its target by which a trial may miss it and yet be satisfied"
    )
    step: float = Field(
        default=0.5, gt=0, lt=1, description="most that a share shrinks by in one look, as a part of it"
    )
    stale_after: StaleAfter = 3.0
    min_change: MinChange = 0.05
    min_cpu: MinCpu = 0.01

    @property
    def state_type(self) -> type[DQoESState]:
        """Type of the state."""
        return DQoESState

    def initial(self) -> DQoESState:
        """Return the state before the first decision."""
        return DQoESState()

    def decide(self, snapshot: Snapshot, state: DQoESState) -> Decision[DQoESState]:
        """Measure, and move shares where a measurement is new."""
        left = {trial.id for trial in snapshot.trials if not trial.phase.ended}
        known = {name: memo for name, memo in state.steps.items() if name in left}
        live = sorted((trial for trial in snapshot.trials if trial.live), key=lambda trial: trial.id)
        told = {trial.id: Assessment(outlook=self._outlook(trial, known.get(trial.id))) for trial in live}
        if snapshot.now < state.due_at - CLOCK_SLACK:
            return Decision(DQoESState(state.due_at, known), wake_at=state.due_at, assessments=told)
        steps = timed(snapshot, known, self.stale_after * self.interval)
        fresh = {name: memo for name, memo in steps.items() if name in known and memo.mark != known[name].mark}
        changes = (proposal for node in node_shares(snapshot).values() for proposal in self._changes(node, fresh))
        due_at = snapshot.now + self.interval
        wake_at = due_at if left else None
        return Decision(DQoESState(due_at, steps), shrinks_first(changes, snapshot), wake_at=wake_at, assessments=told)

    def _changes(self, node: NodeShares, fresh: Mapping[TrialId, StepMemo]) -> Iterator[Proposal]:
        if node.budget <= 0:
            return
        took = {trial.id: seconds for trial in node.members if (seconds := _seconds(fresh.get(trial.id))) is not None}
        goals = {trial.id: trial.goals.seconds_per_step for trial in node.members}
        parts = self._bounded(node, shared_out(node.members, took, self.tolerance))
        for name, cpu in node.requests(parts, self.min_change, self.min_cpu).items():
            goal = goals[name]
            known = name in took and goal is not None
            yield Proposal(Resize(name, cpu), f"{took[name]:.3g} s a step, not {goal:.3g} s" if known else "makes room")

    def _bounded(self, node: NodeShares, parts: Mapping[TrialId, float]) -> dict[TrialId, float]:
        """Return ``parts`` with no share changed by more than one look may change it."""
        now = {trial.id: trial.cpu * len(trial.nodes) / node.budget for trial in node.members}
        least, most = 1 - self.step, 1 / (1 - self.step)
        return {name: min(max(part, now[name] * least), now[name] * most) for name, part in parts.items()}

    def _outlook(self, trial: Trial, memo: StepMemo | None) -> str:
        goal, took = trial.goals.seconds_per_step, _seconds(memo)
        if goal is None or took is None or took <= goal * (1 + self.tolerance):
            return ""
        return f"takes {took:.2g} s a step, not the {goal:.2g} s that were asked for"


def _seconds(memo: StepMemo | None) -> float | None:
    return None if memo is None or memo.latest is None else memo.latest.seconds
