"""Deadlines: the smallest share that keeps each, and early word of those that can't be kept.

After "A QoS-oriented Scheduling and Autoscaling Framework for Deep Learning" (deadlines in place of resource requests,
training time predicted, resources scaled to it), of which only the abstract is public: the algorithm is ours.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pydantic import Field

from controllers.model import (
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
from controllers.policies import deadline_words as words
from controllers.policies.admission import admitted, by_deadline
from controllers.policies.capacity import Ledger
from controllers.policies.deadline_forecast import Forecast, Prospect, forecast
from controllers.policies.deadline_moves import moves
from controllers.policies.deadline_shares import Split, Terms, split
from controllers.policies.deadline_state import DeadlineState, TrialMemo, places, recalled
from controllers.policies.node_shares import NodeShares, shrinks_first
from controllers.policies.settings import PolicySettings
from controllers.progress import usable

CLOCK_SLACK = 1e-6
"""Seconds by which a wake-up may be early: sums of intervals are not exact."""


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
    memos: dict[TrialId, TrialMemo]
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

    interval: float = Field(default=15.0, gt=0, description="seconds between two looks, where nothing changes")
    margin: float = Field(
        default=0.1, ge=0, lt=1, description="part of the time from submission to deadline that is kept in reserve"
    )
    probe: float = Field(default=1.0, gt=0, description="cores for a trial whose pace is not known yet")
    floor: float = Field(default=0.05, gt=0, description="cores that a trial keeps whose deadline can't be kept")
    move_cost: float = Field(
        default=20.0, ge=0, description="seconds that a move takes: it must keep the deadline in spite of them"
    )
    stale_after: float = Field(
        default=8.0, ge=1, description="age in intervals beyond which a report decides nothing: the share stays"
    )
    min_change: float = Field(
        default=0.05, ge=0, lt=1, description="least change of a request that is worth making, as a share of it"
    )

    @property
    def state_type(self) -> type[DeadlineState]:
        """Type of the state."""
        return DeadlineState

    def initial(self) -> DeadlineState:
        """Return the state before the first decision."""
        return DeadlineState()

    def decide(self, snapshot: Snapshot, state: DeadlineState) -> Decision[DeadlineState]:
        """Split every node anew, move whom that helps, and let in whom there is room for."""
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        standing = places(snapshot)
        known = state.trials
        memos = recalled(snapshot, known, self.stale_after * self.interval) if due else _kept(standing, known)
        if not due and standing == state.places:
            plans = self._plans(_Turn(snapshot, memos))
            return Decision(state, wake_at=state.due_at, assessments=_assessments(snapshot, plans.values()))
        turn = _Turn(snapshot, memos)
        plans = self._plans(turn)
        proposals = tuple(self._proposals(turn, plans))
        due_at = snapshot.now + self.interval if due else state.due_at
        return Decision(
            DeadlineState(due_at, turn.memos, standing),
            proposals,
            wake_at=due_at if standing else None,
            assessments=_assessments(snapshot, plans.values()),
        )

    def _plans(self, turn: _Turn) -> dict[NodeName, _NodePlan]:
        members: dict[NodeName, list[Trial]] = {}
        for trial in turn.ledger.trials.values():
            if trial.steady and trial.workers == 1 and trial.nodes[0] in turn.ledger.nodes:
                members.setdefault(trial.nodes[0], []).append(trial)
        return {name: self._plan(turn, name, tuple(members.get(name, ()))) for name in sorted(turn.ledger.nodes)}

    def _plan(self, turn: _Turn, name: NodeName, members: tuple[Trial, ...]) -> _NodePlan:
        others = turn.ledger.requested(name) - sum(trial.cpu for trial in members)
        cores = max(0.0, turn.ledger.nodes[name].cpu - others)
        forecasts = [self._forecast(turn, trial, cores) for trial in members]
        plan = split(forecasts, cores, Terms(self.floor, self.probe))
        return _NodePlan(NodeShares(members, cores), forecasts, plan, cores - sum(plan.shares.values()))

    def _forecast(self, turn: _Turn, trial: Trial, cores: float) -> Forecast:
        now = turn.snapshot.now
        progress = usable(trial.progress, now, self.stale_after * self.interval)
        return forecast(trial, turn.memos[trial.id].pace, progress, now, cores, self.margin)

    def _proposals(self, turn: _Turn, plans: Mapping[NodeName, _NodePlan]) -> Iterator[Proposal]:
        """Yield what there is room for, in an order that never asks for more of a node than it has."""
        spare = {name: plan.spare for name, plan in plans.items() if turn.ledger.nodes[name].ready}
        missing = [
            one for plan in plans.values() for one in _missing(plan) if turn.memos[one.trial.id].may_move(one.trial)
        ]
        leaving = {move.action.trial for move in moves(missing, Ledger.of(turn.snapshot), spare, self.move_cost)}
        resizes = (one for plan in plans.values() for one in self._resizes(plan) if one.action.trial not in leaving)
        for resize in shrinks_first(resizes, turn.snapshot):
            if turn.ledger.allows(resize.action):
                turn.ledger.take(resize.action)
                yield resize
        for move in moves([one for one in missing if one.trial.id in leaving], turn.ledger, spare, self.move_cost):
            asked = turn.ledger.trials[move.action.trial].attempt
            turn.memos[move.action.trial] = replace(turn.memos[move.action.trial], asked_in=asked)
            yield move
        yield from admitted(turn.snapshot, turn.ledger, by_deadline, _why_now)

    def _resizes(self, plan: _NodePlan) -> Iterator[Proposal]:
        budget = plan.members.budget
        if budget <= 0:
            return
        parts = {trial: cores / budget for trial, cores in plan.plan.shares.items()}
        forecasts = {one.trial.id: one for one in plan.forecasts}
        for name, cpu in plan.members.requests(parts, self.min_change, self.floor).items():
            why = words.reason(forecasts[name], given_up=name in plan.plan.given_up)
            yield Proposal(Resize(name, cpu), why)


def _missing(plan: _NodePlan) -> Iterator[Forecast]:
    for one in plan.forecasts:
        if one.prospect is Prospect.OUT_OF_REACH or one.trial.id in plan.plan.given_up:
            yield one


def _kept(standing: Mapping[TrialId, str], known: Mapping[TrialId, TrialMemo]) -> dict[TrialId, TrialMemo]:
    return {trial: known.get(trial, TrialMemo()) for trial in standing}


def _why_now(trial: Trial) -> str:
    return "there is room" if trial.goals.deadline_at is None else "there is room, and its deadline is the next"


def _assessments(snapshot: Snapshot, plans: Iterable[_NodePlan]) -> dict[TrialId, Assessment]:
    told = {trial.id: words.waiting(trial, snapshot.now) for trial in snapshot.trials if trial.phase is Phase.PENDING}
    for plan in plans:
        for one in plan.forecasts:
            given_up = one.trial.id in plan.plan.given_up
            told[one.trial.id] = words.outlook(one, plan.plan.shares[one.trial.id], given_up=given_up)
    return {trial: Assessment(outlook=outlook) for trial, outlook in sorted(told.items())}
