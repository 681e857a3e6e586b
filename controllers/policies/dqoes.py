"""DQoES: each trial has a time that a step shall take, and shares move towards these targets.

After Mao et al., "Differentiate Quality of Experience Scheduling for Deep Learning Applications with Docker Containers
in the Cloud" (DQoES). Only its abstract is public: the rule by which shares move is ours.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from pydantic import Field

from controllers.core.actions import Action, Assessment, Decision, Proposal, Resize
from controllers.core.model import Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.policies.kit.paces import StepMemo, StepTime, time_steps
from controllers.policies.kit.settings import MinChange, MinCpu, PolicySettings, StaleAfter
from controllers.policies.kit.shares import SharedNode, shared_nodes, shrinks_first

_NEWEST: Final = 0.3
"""Weight of the newest measurement in what a step is known to cost."""


@dataclass(frozen=True, slots=True)
class NodeSplit:
    """The part of a node's requests for each of its trials, all together 1; ``served`` get what they need."""

    parts: Mapping[TrialId, float]
    served: tuple[TrialId, ...]


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
    be are satisfied (``split``).
    """

    name: ClassVar[str] = "dqoes"
    summary: ClassVar[str] = "moves shares from trials faster than their time per step to those that are slower"
    source: ClassVar[str] = "DQoES (abstract); the rule is ours"
    state_type: ClassVar[type[DQoESState]] = DQoESState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})
    goal: ClassVar[str] = "seconds_per_step"
    shares: ClassVar[str] = "what its time per step takes, the least first, as far as there is enough"

    interval: float = Field(default=20.0, gt=0, description="seconds between two looks")
    tolerance: float = Field(
        default=0.1, gt=0, lt=1, description="part of its target by which a trial may miss it and yet be satisfied"
    )
    step: float = Field(
        default=0.5,
        gt=0,
        lt=1,
        description="most that a share shrinks by in one look, as a part of it; it grows by as much the other way",
    )
    stale_after: StaleAfter = 3.0
    min_change: MinChange = 0.05
    min_cpu: MinCpu = 0.01

    def decide(self, snapshot: Snapshot, state: DQoESState) -> Decision[DQoESState]:
        """Measure, and move shares where a measurement is new."""
        left = {trial.id for trial in snapshot.unended}
        state = state.of(left)
        told = {
            trial.id: Assessment(outlook=self._outlook(trial, state.steps.get(trial.id)))
            for trial in snapshot.unended
            if trial.live
        }
        if snapshot.now < state.due_at - CLOCK_SLACK:
            return Decision(state, wake_at=state.due_at, assessments=told)
        steps = time_steps(snapshot, state.steps, self.stale_after * self.interval)
        fresh = _fresh(steps, state.steps)
        costs = dict(state.costs)
        for name, took in fresh.items():
            costs[name] = costs.get(name, took.core_seconds) * (1 - _NEWEST) + took.core_seconds * _NEWEST
        nodes = [node for node in shared_nodes(snapshot).values() if node.budget > 0]
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
        node: SharedNode,
        fresh: Mapping[TrialId, StepTime],
        costs: Mapping[TrialId, float],
        served: Collection[TrialId],
    ) -> NodeSplit:
        """Split the node; one that is served goes before others whose time per step costs about as much."""
        goals = {trial.id: trial.goals.seconds_per_step for trial in node.members}
        took = {name: fresh[name].seconds for name in goals if name in fresh}
        rank = {
            name: costs[name] / goal * (1 - self.tolerance * (name in served))
            for name, goal in goals.items()
            if goal is not None and name in took
        }
        return split(node.members, took, rank, self.tolerance)

    def _changes(self, node: SharedNode, split: NodeSplit, fresh: Mapping[TrialId, StepTime]) -> Iterator[Proposal]:
        """Yield the resizes towards ``split``, with no share changed by more than one look may change it."""
        goals = {trial.id: trial.goals.seconds_per_step for trial in node.members}
        now = {trial.id: trial.cpu * len(trial.nodes) / node.budget for trial in node.members}
        least, most = 1 - self.step, 1 / (1 - self.step)
        parts = {name: min(max(part, now[name] * least), now[name] * most) for name, part in split.parts.items()}
        for name, cpu in node.requests(parts, self.min_change, self.min_cpu).items():
            took, goal = fresh.get(name), goals[name]
            reason = "makes room" if took is None or goal is None else f"{took.seconds:.3g} s a step, not {goal:.3g} s"
            yield Proposal(Resize(name, cpu), reason)

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


def split(
    members: Sequence[Trial], took: Mapping[TrialId, float], rank: Mapping[TrialId, float], tolerance: float
) -> NodeSplit:
    """Split a node.

    A trial needs its present part times the seconds that its steps take over those that they shall take. From the
    least in rank to the greatest each gets that, as long as it fits. Those that do not fit share what is left. Where
    all fit, it goes to those without a time per step, else to the last in rank, so that the others are no faster than
    they shall be. A trial without a time per step is sure of what its author asked for. A trial that was not measured
    keeps what it has.

    Args:
        members: Trials of one node.
        took: Seconds that a step takes, of those that were measured.
        rank: Cores that the time per step of those costs: it changes less than measured needs do, so that who is
            served does not flicker.
        tolerance: Part of its time per step by which a trial may be too slow.
    """
    asked = _parts({trial.id: trial.base_cpu * len(trial.nodes) for trial in members})
    now = _parts({trial.id: trial.cpu * len(trial.nodes) for trial in members})
    goals = {trial.id: trial.goals.seconds_per_step for trial in members}
    needs = {name: now[name] * took[name] / goal for name, goal in goals.items() if goal is not None and name in took}
    sure = {name: asked[name] if goal is None else now[name] for name, goal in goals.items() if name not in needs}
    sure = {name: part / max(1.0, sum(sure.values())) for name, part in sure.items()}
    order = sorted(needs, key=lambda name: (rank[name], name))
    met = _met({name: needs[name] for name in order}, 1 - sum(sure.values()), tolerance)
    short = {name: needs[name] for name in order if name not in met}
    free = {name: asked[name] for name, goal in goals.items() if goal is None}
    given = sure | met
    left = max(0.0, 1 - sum(given.values()))
    rest = _parts(short or free or dict.fromkeys(order[-1:], 1.0))
    return NodeSplit({name: given.get(name, 0.0) + left * rest.get(name, 0.0) for name in goals}, tuple(met))


def _met(needs: Mapping[TrialId, float], left: float, tolerance: float) -> dict[TrialId, float]:
    met: dict[TrialId, float] = {}
    for name, need in needs.items():
        if need <= left * (1 + tolerance):
            met[name] = min(need, left)
            left -= met[name]
    return met


def _parts(amounts: Mapping[TrialId, float]) -> dict[TrialId, float]:
    """Return the part that each is of the sum; where all are 0, as of trials that request nothing, they are even."""
    total = sum(amounts.values())
    return {name: amount / total if total else 1 / len(amounts) for name, amount in amounts.items()}
