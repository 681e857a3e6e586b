"""DQoES: each trial has a time that a step shall take, and shares move towards these targets.

After Mao et al., "Differentiate Quality of Experience Scheduling for Deep Learning Applications with Docker Containers
in the Cloud" (DQoES), of which the abstract is public here: the rule by which shares move is ours.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from pydantic import Field

from controllers.core.model import Action, Assessment, Decision, Proposal, Resize, Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.policies.dqoes.parts import Split, split
from controllers.policies.kit.node_shares import NodeShares, node_shares, shrinks_first
from controllers.policies.kit.settings import MinChange, MinCpu, PolicySettings, StaleAfter
from controllers.policies.kit.step_times import StepMemo, StepTime, timed

_NEWEST: Final = 0.3
"""Weight of the newest measurement in what a step is known to cost."""


@dataclass(frozen=True, slots=True)
class DQoESState:
    """Of the trials that have not ended: step times, core seconds of a step, and who is served; when to look next."""

    due_at: float = 0.0
    steps: Mapping[TrialId, StepMemo] = field(default_factory=dict)
    costs: Mapping[TrialId, float] = field(default_factory=dict)
    served: tuple[TrialId, ...] = ()

    def of(self, trials: Collection[TrialId]) -> "DQoESState":
        """Return what of it is about ``trials``."""
        return replace(
            self,
            steps={name: memo for name, memo in self.steps.items() if name in trials},
            costs={name: cost for name, cost in self.costs.items() if name in trials},
            served=tuple(name for name in self.served if name in trials),
        )


class DQoES(PolicySettings):
    """Trials that are faster than they need be give some of their share to those that are too slow.

    A trial is satisfied within ``tolerance`` of its target. The sum of a node's requests stays at most what the
    authors asked for; where that is too little for all, those that need the least come first, so that as many as can
    be are satisfied (`controllers.policies.dqoes.parts`).
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
        state = state.of(left)
        live = sorted((trial for trial in snapshot.trials if trial.live), key=lambda trial: trial.id)
        told = {trial.id: Assessment(outlook=self._outlook(trial, state.steps.get(trial.id))) for trial in live}
        if snapshot.now < state.due_at - CLOCK_SLACK:
            return Decision(state, wake_at=state.due_at, assessments=told)
        steps = timed(snapshot, state.steps, self.stale_after * self.interval)
        fresh = _fresh(steps, state.steps)
        costs = {**state.costs, **_costs(state.costs, fresh)}
        nodes = [node for node in node_shares(snapshot).values() if node.budget > 0]
        splits = [self._split(node, fresh, costs, state.served) for node in nodes]
        changes = (change for node, of in zip(nodes, splits, strict=True) for change in self._changes(node, of, fresh))
        served = {trial for split in splits for trial in split.served} | (set(state.served) - fresh.keys())
        due_at = snapshot.now + self.interval
        return Decision(
            DQoESState(due_at, steps, costs, tuple(sorted(served))),
            shrinks_first(changes, snapshot),
            wake_at=due_at if left else None,
            assessments=told,
        )

    def _split(
        self,
        node: NodeShares,
        fresh: Mapping[TrialId, StepTime],
        costs: Mapping[TrialId, float],
        served: Collection[TrialId],
    ) -> Split:
        """Split the node; one that is served goes before others whose time per step costs about as much."""
        goals = {trial.id: trial.goals.seconds_per_step for trial in node.members}
        took = {name: fresh[name].seconds for name in goals if name in fresh}
        rank = {
            name: costs[name] / goal * (1 - self.tolerance * (name in served))
            for name, goal in goals.items()
            if goal is not None and name in took
        }
        return split(node.members, took, rank, self.tolerance)

    def _changes(self, node: NodeShares, split: Split, fresh: Mapping[TrialId, StepTime]) -> Iterator[Proposal]:
        goals = {trial.id: trial.goals.seconds_per_step for trial in node.members}
        parts = self._bounded(node, split.parts)
        for name, cpu in node.requests(parts, self.min_change, self.min_cpu).items():
            took, goal = fresh.get(name), goals[name]
            reason = "makes room" if took is None or goal is None else f"{took.seconds:.3g} s a step, not {goal:.3g} s"
            yield Proposal(Resize(name, cpu), reason)

    def _bounded(self, node: NodeShares, parts: Mapping[TrialId, float]) -> dict[TrialId, float]:
        """Return ``parts`` with no share changed by more than one look may change it."""
        now = {trial.id: trial.cpu * len(trial.nodes) / node.budget for trial in node.members}
        least, most = 1 - self.step, 1 / (1 - self.step)
        return {name: min(max(part, now[name] * least), now[name] * most) for name, part in parts.items()}

    def _outlook(self, trial: Trial, memo: StepMemo | None) -> str:
        goal, took = trial.goals.seconds_per_step, memo.latest if memo else None
        if goal is None or took is None or took.seconds <= goal * (1 + self.tolerance):
            return ""
        return f"takes {took.seconds:.2g} s a step, not the {goal:.2g} s that were asked for"


def _fresh(steps: Mapping[TrialId, StepMemo], known: Mapping[TrialId, StepMemo]) -> dict[TrialId, StepTime]:
    """Return the measurements that are new since ``known``."""
    return {
        name: memo.latest
        for name, memo in steps.items()
        if memo.latest is not None and name in known and memo.mark != known[name].mark
    }


def _costs(known: Mapping[TrialId, float], fresh: Mapping[TrialId, StepTime]) -> dict[TrialId, float]:
    """Return the core seconds of a step, smoothed over the measurements."""
    return {
        name: known.get(name, took.core_seconds) * (1 - _NEWEST) + took.core_seconds * _NEWEST
        for name, took in fresh.items()
    }
