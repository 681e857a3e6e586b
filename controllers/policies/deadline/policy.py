"""Deadlines: the smallest share that keeps each, and early word of those that can't be kept.

After "A QoS-oriented Scheduling and Autoscaling Framework for Deep Learning" (deadlines in place of resource requests,
training time predicted, resources scaled to it). Only its abstract is public: the algorithm is ours.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

from pydantic import Field

from controllers.core.actions import Action, Assessment, Decision, Migrate, Place, Proposal, Resize
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.core.progress import usable
from controllers.policies.deadline.forecast import Prospect, TrialOutlook, forecast, outlook, share_reason, waiting
from controllers.policies.deadline.sharing import CoreSplit, Floors, rescues, split, to_idle_nodes
from controllers.policies.kit.asked_moves import AskedMoves, with_destinations
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.paces import Pace, StepMemo, time_steps, update_pace
from controllers.policies.kit.places import admit_trials, by_deadline, nodes_placed_on
from controllers.policies.kit.settings import MinChange, MinCpu, PolicySettings
from controllers.policies.kit.shares import SharedNode, shrinks_first


@dataclass(frozen=True, slots=True)
class DeadlineState:
    """Of trials that have not ended: their steps and paces, their moves, and where they were at the last look.

    ``due_at`` is when to look next, in seconds.
    """

    due_at: float = 0.0
    steps: Mapping[TrialId, StepMemo] = field(default_factory=dict)
    paces: Mapping[TrialId, Pace] = field(default_factory=dict)
    moves: AskedMoves = field(default_factory=AskedMoves)
    places: Mapping[TrialId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _NodePlan:
    """A node's trials that may be resized, what becomes of them, how its cores are split, and cores nobody needs.

    ``cores`` are those that these trials get together. Requests are parts of the node's ``budget``, which may be more.
    """

    node: SharedNode
    cores: float
    forecasts: Sequence[TrialOutlook]
    split: CoreSplit
    spare: float

    def missing(self, moves: AskedMoves) -> list[TrialOutlook]:
        """Return the trials that won't keep their deadlines here, of those that may move."""
        return [
            foreseen
            for foreseen in self.forecasts
            if (foreseen.prospect is Prospect.OUT_OF_REACH or foreseen.trial.id in self.split.given_up)
            and moves.allows(foreseen.trial)
        ]


class Deadline(PolicySettings):
    """Keeps as many deadlines as it can.

    Shares are requests, so what a node has to spare goes to its trials in proportion to them by itself: all get the
    same part of what they need on top. Requests stay as small as deadlines allow, and trials that come find room.
    """

    name: ClassVar[str] = "deadline"
    summary: ClassVar[str] = "gives each trial the least CPU that keeps its deadline, and says early which will miss"
    source: ClassVar[str] = "QoS-oriented scheduling and autoscaling framework (abstract); the algorithm is ours"
    state_type: ClassVar[type[DeadlineState]] = DeadlineState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Resize, Migrate})
    goal: ClassVar[str] = "deadline"
    placement: ClassVar[str] = "the earliest deadline first, to the node with the most cores to spare"
    shares: ClassVar[str] = "the least that keeps each deadline, least slack first; a floor for those out of reach"
    most_moves: ClassVar[int | None] = 1
    moves: ClassVar[str] = "trials whose deadlines another node can keep in spite of the move; late ones to idle nodes"

    interval: float = Field(default=15.0, gt=0, description="seconds between two looks, where nothing changes")
    margin: float = Field(
        default=0.1, ge=0, lt=1, description="part of the time from submission to deadline that is kept in reserve"
    )
    probe: float = Field(
        default=1.0, gt=0, description="cores for a trial whose pace is not known yet, as far as there is room"
    )
    floor: float = Field(
        default=0.05,
        gt=0,
        le=1,
        description="part of what it asked for that a trial keeps if its deadline can't be kept",
    )
    min_cpu: MinCpu = 0.005
    move_cost: float = Field(
        default=20.0, ge=0, description="seconds that a move takes: it must keep the deadline in spite of them"
    )
    stale_after: float = Field(
        default=8.0, ge=1, description="age in intervals beyond which a report decides nothing: the share stays"
    )
    min_change: MinChange = 0.05

    def decide(self, snapshot: Snapshot, state: DeadlineState) -> Decision[DeadlineState]:
        """Split every node again, move the trials that this helps, and let those in that have room."""
        moves = state.moves.answered(snapshot)
        snapshot = with_destinations(snapshot, moves.asked)
        standing = {trial.id: f"{trial.phase} {','.join(trial.nodes)}" for trial in snapshot.unended}
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        if not due and standing == state.places:
            plans = self._plans(snapshot, state.paces)
            return Decision(
                replace(state, moves=moves),
                wake_at=state.due_at,
                assessments=_assessments(snapshot, plans.values(), ()),
            )
        due_at = snapshot.now + self.interval if due else state.due_at
        steps, paces = self._measure(snapshot, state) if due else (state.steps, state.paces)
        plans = self._plans(snapshot, paces)
        proposals = tuple(self._proposals(snapshot, plans, moves))
        trials = {trial.id: trial for trial in snapshot.unended}
        for proposal in proposals:
            if isinstance(proposal.action, Migrate):
                moves = moves.with_asked(trials[proposal.action.trial], proposal.action.node)
        return Decision(
            DeadlineState(
                due_at,
                {name: memo for name, memo in steps.items() if name in standing},
                {name: pace for name, pace in paces.items() if name in standing},
                moves,
                standing,
            ),
            proposals,
            wake_at=due_at if standing else None,
            assessments=_assessments(snapshot, plans.values(), proposals),
        )

    def _measure(
        self, snapshot: Snapshot, state: DeadlineState
    ) -> tuple[Mapping[TrialId, StepMemo], Mapping[TrialId, Pace]]:
        """Return steps and paces after a look at the newest reports."""
        steps = time_steps(snapshot, state.steps, self.stale_after * self.interval)
        trials = {trial.id: trial for trial in snapshot.unended}
        paces = {
            name: update_pace(trials[name], state.paces.get(name, Pace()), state.steps.get(name, StepMemo()), memo)
            for name, memo in steps.items()
            if trials[name].workers == 1
        }
        return steps, paces

    def _plans(self, snapshot: Snapshot, paces: Mapping[TrialId, Pace]) -> dict[NodeName, _NodePlan]:
        """Return for each node, by name, what becomes of its trials and how its cores are to be split."""
        capacity = Capacity.of(snapshot)
        members: dict[NodeName, list[Trial]] = {name: [] for name in capacity.nodes}
        for trial in snapshot.unended:
            if trial.steady and trial.workers == 1 and trial.nodes[0] in members:
                members[trial.nodes[0]].append(trial)
        plans: dict[NodeName, _NodePlan] = {}
        for name, trials in members.items():
            others = capacity.requested(name) - sum(trial.cpu for trial in trials)
            node = capacity.nodes[name]
            budget = max(0.0, node.cpu - others)
            cores = budget * node.supplied / node.cpu if node.cpu > 0 else 0.0
            forecasts: list[TrialOutlook] = []
            for trial in trials:
                progress = usable(trial.progress, snapshot.now, self.stale_after * self.interval)
                pace = paces.get(trial.id, Pace())
                forecasts.append(forecast(trial, pace, progress, snapshot.now, cores, self.margin))
            shares = split(forecasts, cores, Floors(self.floor, self.min_cpu, self.probe))
            spare = cores - sum(shares.shares.values())
            plans[name] = _NodePlan(SharedNode(tuple(trials), budget), cores, forecasts, shares, spare)
        return plans

    def _proposals(
        self, snapshot: Snapshot, plans: Mapping[NodeName, _NodePlan], moves: AskedMoves
    ) -> Iterator[Proposal]:
        """Yield what there is room for, in an order that never asks for more of a node than it has."""
        capacity = Capacity.of(snapshot)
        spare = {name: plan.spare for name, plan in plans.items() if capacity.nodes[name].ready}
        missing = [foreseen for plan in plans.values() for foreseen in plan.missing(moves)]
        # Who leaves is found out first, on a copy: shares of those that leave stay as they are, and only after all
        # others have shrunk is it sure that the moves fit.
        rescued = {move.trial for move, _ in rescues(missing, Capacity.of(snapshot), spare, self.move_cost)}
        late = [] if rescued else [plan.missing(moves) for plan in plans.values() if len(plan.forecasts) > 1]
        spread = list(to_idle_nodes(late, snapshot, Capacity.of(snapshot), self.move_cost))
        leaving = rescued | {move.trial for move, _ in spread}
        resizes = (
            resize for plan in plans.values() for resize in self._resizes(plan) if resize.action.trial not in leaving
        )
        for resize in shrinks_first(resizes, snapshot):
            if capacity.allows(resize.action):
                capacity.apply(resize.action)
                yield resize
        going = [foreseen for foreseen in missing if foreseen.trial.id in rescued]
        for move, reason in chain(rescues(going, capacity, spare, self.move_cost), spread):
            yield Proposal(move, reason)
        yield from admit_trials(
            snapshot,
            capacity,
            by_deadline,
            lambda trial: (
                "there is room" + (", and its deadline is the next" if trial.goals.deadline_at is not None else "")
            ),
        )

    def _resizes(self, plan: _NodePlan) -> Iterator[Proposal]:
        if plan.cores <= 0:
            return
        parts = {trial: cores / plan.cores for trial, cores in plan.split.shares.items()}
        forecasts = {foreseen.trial.id: foreseen for foreseen in plan.forecasts}
        for name, cpu in plan.node.requests(parts, self.min_change, self.min_cpu).items():
            why = share_reason(forecasts[name], given_up=name in plan.split.given_up)
            yield Proposal(Resize(name, cpu), why)


def _assessments(
    snapshot: Snapshot, plans: Iterable[_NodePlan], proposals: Iterable[Proposal]
) -> dict[TrialId, Assessment]:
    starting = nodes_placed_on(proposals)
    told = {
        trial.id: "" if trial.id in starting else waiting(trial)
        for trial in snapshot.unended
        if trial.phase is Phase.PENDING
    }
    for plan in plans:
        for foreseen in plan.forecasts:
            given_up = foreseen.trial.id in plan.split.given_up
            told[foreseen.trial.id] = outlook(foreseen, plan.split.shares[foreseen.trial.id], given_up=given_up)
    return {trial: Assessment(outlook=words) for trial, words in sorted(told.items())}
