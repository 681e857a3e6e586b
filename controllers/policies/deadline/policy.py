"""Deadlines: the smallest share that keeps each, and early word of those that can't be kept.

After "A QoS-oriented Scheduling and Autoscaling Framework for Deep Learning" (deadlines in place of resource requests,
training time predicted, resources scaled to it), of which only the abstract is public: the algorithm is ours.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

from pydantic import Field

from controllers.core.model import (
    Action,
    Assessment,
    Decision,
    Migrate,
    NodeName,
    Phase,
    Place,
    Proposal,
    Resize,
    Snapshot,
    Trial,
    TrialId,
)
from controllers.core.policy import CLOCK_SLACK
from controllers.core.progress import usable
from controllers.policies.deadline import words
from controllers.policies.deadline.forecast import Forecast, Prospect, forecast
from controllers.policies.deadline.moves import moves, to_idle_nodes
from controllers.policies.deadline.shares import Split, Terms, split
from controllers.policies.deadline.state import DeadlineState, measured, places
from controllers.policies.kit.admission import admitted, by_deadline
from controllers.policies.kit.capacity import Ledger
from controllers.policies.kit.node_shares import NodeShares, shrinks_first
from controllers.policies.kit.pace import Pace
from controllers.policies.kit.settings import MinChange, MinCpu, PolicySettings
from controllers.policies.kit.single_moves import SingleMoves, answered, headed


@dataclass(frozen=True, slots=True)
class _NodePlan:
    """A node's trials that may be resized, the cores that are theirs, and how these are to be split."""

    members: NodeShares
    forecasts: Sequence[Forecast]
    plan: Split
    spare: float


@dataclass
class _Turn:
    """One decision in the making."""

    snapshot: Snapshot
    paces: Mapping[TrialId, Pace]
    moves: SingleMoves
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger.of(self.snapshot)


class Deadline(PolicySettings):
    """Keeps as many deadlines as it can.

    Shares are requests, so what a node has to spare goes to its trials in proportion to them by itself: all get the
    same part of what they need on top. Requests stay as small as deadlines allow, and whoever comes finds room.
    """

    name: ClassVar[str] = "deadline"
    summary: ClassVar[str] = "gives each trial the least CPU that keeps its deadline, and says early which will miss"
    source: ClassVar[str] = "QoS-oriented scheduling and autoscaling framework (abstract); the algorithm is ours"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Resize, Migrate})
    goal: ClassVar[str] = "deadline"
    placement: ClassVar[str] = "the earliest deadline first, to the node with the most cores to spare"
    shares: ClassVar[str] = "the least that keeps each deadline, least slack first; a floor for those out of reach"
    moves: ClassVar[str] = "trials whose deadlines another node can keep in spite of the move; late ones to idle nodes"
    most_moves: ClassVar[int | None] = None

    interval: float = Field(default=15.0, gt=0, description="seconds between two looks, where nothing changes")
    margin: float = Field(
        default=0.1, ge=0, lt=1, description="part of the time from submission to deadline that is kept in reserve"
    )
    probe: float = Field(default=1.0, gt=0, description="cores for a trial whose pace is not known yet")
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

    @property
    def state_type(self) -> type[DeadlineState]:
        """Type of the state."""
        return DeadlineState

    def initial(self) -> DeadlineState:
        """Return the state before the first decision."""
        return DeadlineState()

    def decide(self, snapshot: Snapshot, state: DeadlineState) -> Decision[DeadlineState]:
        """Split every node anew, move whom that helps, and let in whom there is room for."""
        state = replace(state, moves=answered(snapshot, state.moves))
        snapshot, standing = headed(snapshot, state.moves), places(snapshot)
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        if not due and standing == state.places:
            plans = self._plans(_Turn(snapshot, state.paces, state.moves))
            return Decision(state, wake_at=state.due_at, assessments=_assessments(snapshot, plans.values(), ()))
        if due:
            steps, paces = measured(snapshot, state, self.stale_after * self.interval)
            state = replace(state, due_at=snapshot.now + self.interval, steps=steps, paces=paces)
        turn = _Turn(snapshot, state.paces, state.moves)
        plans = self._plans(turn)
        proposals = tuple(self._proposals(turn, plans))
        return Decision(
            replace(_of(state, standing), moves=turn.moves, places=standing),
            proposals,
            wake_at=state.due_at if standing else None,
            assessments=_assessments(snapshot, plans.values(), proposals),
        )

    def _plans(self, turn: _Turn) -> dict[NodeName, _NodePlan]:
        members: dict[NodeName, list[Trial]] = {}
        for trial in sorted(turn.snapshot.trials, key=lambda trial: trial.id):
            if trial.steady and trial.workers == 1 and trial.nodes[0] in turn.ledger.nodes:
                members.setdefault(trial.nodes[0], []).append(trial)
        return {name: self._plan(turn, name, tuple(members.get(name, ()))) for name in sorted(turn.ledger.nodes)}

    def _plan(self, turn: _Turn, name: NodeName, members: tuple[Trial, ...]) -> _NodePlan:
        others = turn.ledger.requested(name) - sum(trial.cpu for trial in members)
        cores = max(0.0, turn.ledger.nodes[name].cpu - others)
        forecasts = [self._forecast(turn, trial, cores) for trial in members]
        plan = split(forecasts, cores, Terms(self.floor, self.min_cpu, self.probe))
        return _NodePlan(NodeShares(members, cores), forecasts, plan, cores - sum(plan.shares.values()))

    def _forecast(self, turn: _Turn, trial: Trial, cores: float) -> Forecast:
        now = turn.snapshot.now
        progress = usable(trial.progress, now, self.stale_after * self.interval)
        return forecast(trial, turn.paces.get(trial.id, Pace()), progress, now, cores, self.margin)

    def _proposals(self, turn: _Turn, plans: Mapping[NodeName, _NodePlan]) -> Iterator[Proposal]:
        """Yield what there is room for, in an order that never asks for more of a node than it has."""
        spare = {name: plan.spare for name, plan in plans.items() if turn.ledger.nodes[name].ready}
        missing = [one for plan in plans.values() for one in _missing(plan) if turn.moves.allows(one.trial)]
        rescued = {move.trial for move, _ in moves(missing, Ledger.of(turn.snapshot), spare, self.move_cost)}
        spread = [] if rescued else list(self._spread(turn, plans))
        leaving = rescued | {move.trial for move, _ in spread}
        resizes = (one for plan in plans.values() for one in self._resizes(plan) if one.action.trial not in leaving)
        for resize in shrinks_first(resizes, turn.snapshot):
            if turn.ledger.allows(resize.action):
                turn.ledger.take(resize.action)
                yield resize
        going = [one for one in missing if one.trial.id in rescued]
        for move, reason in chain(moves(going, turn.ledger, spare, self.move_cost), spread):
            turn.moves = turn.moves.with_asked(turn.ledger.trials[move.trial], move.node)
            yield Proposal(move, reason)
        yield from admitted(turn.snapshot, turn.ledger, by_deadline, _why_now)

    def _spread(self, turn: _Turn, plans: Mapping[NodeName, _NodePlan]) -> Iterator[tuple[Migrate, str]]:
        shared = [plan for plan in plans.values() if len(plan.forecasts) > 1]
        late = [[one for one in _missing(plan) if turn.moves.allows(one.trial)] for plan in shared]
        return to_idle_nodes(late, turn.snapshot, Ledger.of(turn.snapshot), self.move_cost)

    def _resizes(self, plan: _NodePlan) -> Iterator[Proposal]:
        budget = plan.members.budget
        if budget <= 0:
            return
        parts = {trial: cores / budget for trial, cores in plan.plan.shares.items()}
        forecasts = {one.trial.id: one for one in plan.forecasts}
        for name, cpu in plan.members.requests(parts, self.min_change, self.min_cpu).items():
            why = words.reason(forecasts[name], given_up=name in plan.plan.given_up)
            yield Proposal(Resize(name, cpu), why)


def _missing(plan: _NodePlan) -> Iterator[Forecast]:
    for one in plan.forecasts:
        if one.prospect is Prospect.OUT_OF_REACH or one.trial.id in plan.plan.given_up:
            yield one


def _of(state: DeadlineState, standing: Mapping[TrialId, str]) -> DeadlineState:
    """Return ``state`` without the trials that have ended."""
    steps = {name: memo for name, memo in state.steps.items() if name in standing}
    return replace(state, steps=steps, paces={name: pace for name, pace in state.paces.items() if name in standing})


def _why_now(trial: Trial) -> str:
    return "there is room" if trial.goals.deadline_at is None else "there is room, and its deadline is the next"


def _assessments(
    snapshot: Snapshot, plans: Iterable[_NodePlan], proposals: Iterable[Proposal]
) -> dict[TrialId, Assessment]:
    starting = {proposal.action.trial for proposal in proposals if isinstance(proposal.action, Place)}
    told = {
        trial.id: "" if trial.id in starting else words.waiting(trial)
        for trial in snapshot.trials
        if trial.phase is Phase.PENDING
    }
    for plan in plans:
        for one in plan.forecasts:
            given_up = one.trial.id in plan.plan.given_up
            told[one.trial.id] = words.outlook(one, plan.plan.shares[one.trial.id], given_up=given_up)
    return {trial: Assessment(outlook=outlook) for trial, outlook in sorted(told.items())}
