"""DQoES: each trial has a time that a step shall take, and shares move towards these targets.

After Mao et al., "Differentiate Quality of Experience Scheduling for Deep Learning Applications with Docker Containers
in the Cloud" (DQoES), of which the abstract is public here: the rule by which shares move is ours.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import Field

from controllers.model import Action, Assessment, Decision, Proposal, Resize, Snapshot, Trial, TrialId
from controllers.policies.node_shares import NodeShares, node_shares, shrinks_first
from controllers.policies.pace import Pace, measured
from controllers.policies.settings import PolicySettings
from controllers.progress import usable

CLOCK_SLACK = 1e-6
"""Seconds by which a wake-up may be early: sums of intervals are not exact."""


@dataclass(frozen=True, slots=True)
class DQoESState:
    """Paces of the trials that have not ended, and when to look next (seconds)."""

    due_at: float = 0.0
    paces: Mapping[TrialId, Pace] = field(default_factory=dict)


class DQoES(PolicySettings):
    """Trials that are faster than they need be give some of their share to those that are too slow.

    A trial is satisfied within ``tolerance`` of its target. The sum of a node's requests stays at most what the
    authors asked for; where that is too little for all, growths are cut evenly.
    """

    name: ClassVar[str] = "dqoes"
    summary: ClassVar[str] = "moves shares from trials faster than their time per step to those that are slower"
    source: ClassVar[str] = "DQoES (abstract); the rule is ours"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})

    interval: float = Field(default=20.0, gt=0, description="seconds between two looks")
    tolerance: float = Field(
        default=0.1, gt=0, lt=1, description="part of its target by which a trial may miss it and yet be satisfied"
    )
    step: float = Field(
        default=0.5, gt=0, lt=1, description="most that a share shrinks by in one look, as a part of it"
    )
    stale_after: float = Field(
        default=3.0, ge=1, description="age in intervals beyond which a report decides nothing: it came late"
    )
    min_change: float = Field(
        default=0.05, ge=0, lt=1, description="least change of a request that is worth making, as a share of it"
    )
    min_cpu: float = Field(default=0.01, gt=0, description="least request of a worker in cores, so that it never stops")

    @property
    def state_type(self) -> type[DQoESState]:
        """Type of the state."""
        return DQoESState

    def initial(self) -> DQoESState:
        """Return the state before the first decision."""
        return DQoESState()

    def decide(self, snapshot: Snapshot, state: DQoESState) -> Decision[DQoESState]:
        """Measure, and move shares where a measurement is new."""
        trials = sorted((trial for trial in snapshot.trials if not trial.phase.ended), key=lambda trial: trial.id)
        paces = {trial.id: state.paces.get(trial.id, Pace()) for trial in trials}
        told = {trial.id: Assessment(outlook=self._outlook(trial, paces[trial.id])) for trial in trials if trial.live}
        if snapshot.now < state.due_at - CLOCK_SLACK:
            return Decision(DQoESState(state.due_at, paces), wake_at=state.due_at, assessments=told)
        new = {trial.id: self._measured(trial, paces[trial.id], snapshot.now) for trial in trials}
        fresh = {name for name, pace in new.items() if pace.latest is not None and pace.mark != paces[name].mark}
        changes = (proposal for node in node_shares(snapshot).values() for proposal in self._changes(node, new, fresh))
        due_at = snapshot.now + self.interval
        wake_at = due_at if trials else None
        return Decision(DQoESState(due_at, new), shrinks_first(changes, snapshot), wake_at=wake_at, assessments=told)

    def _measured(self, trial: Trial, pace: Pace, now: float) -> Pace:
        progress = usable(trial.progress, now, self.stale_after * self.interval)
        return pace if progress is None or not trial.steady else measured(trial, pace, progress)

    def _changes(self, node: NodeShares, paces: Mapping[TrialId, Pace], fresh: set[TrialId]) -> Iterator[Proposal]:
        if node.budget <= 0:
            return
        ratios = {trial.id: self._ratio(trial, paces[trial.id]) if trial.id in fresh else 1.0 for trial in node.members}
        parts = {trial.id: trial.cpu * len(trial.nodes) / node.budget * ratios[trial.id] for trial in node.members}
        goals = {trial.id: trial.goals.seconds_per_step for trial in node.members}
        for name, cpu in node.requests(parts, self.min_change, self.min_cpu).items():
            took, goal = paces[name].seconds_per_step, goals[name]
            known = took is not None and goal is not None
            yield Proposal(Resize(name, cpu), f"{took:.3g} s a step, not {goal:.3g} s" if known else "makes room")

    def _ratio(self, trial: Trial, pace: Pace) -> float:
        """Return what its share is to be multiplied by: 1 where it is satisfied, or wants nothing."""
        goal, took = trial.goals.seconds_per_step, pace.seconds_per_step
        if goal is None or took is None or abs(took - goal) <= self.tolerance * goal:
            return 1.0
        return min(max(took / goal, 1 - self.step), 1 / (1 - self.step))

    def _outlook(self, trial: Trial, pace: Pace) -> str:
        goal, took = trial.goals.seconds_per_step, pace.seconds_per_step
        if goal is None or took is None or took <= goal * (1 + self.tolerance):
            return ""
        return f"takes {took:.2g} s a step, not the {goal:.2g} s that were asked for"
