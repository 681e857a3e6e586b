"""SpeCon: send converged trials away from those that still grow (thesis ch. 4.2 and 5.2).

Algorithm 3 categorises (``categories``), Algorithm 4 places and Algorithm 5 evens out what is left (``placement``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import ClassVar, Literal

from pydantic import Field

from controllers.core.actions import Action, Decision, Migrate, Proposal
from controllers.core.model import NodeName, Snapshot, Trial, TrialId
from controllers.core.policy import CLOCK_SLACK
from controllers.core.progress import Normalise
from controllers.policies.kit.asked_moves import with_destinations
from controllers.policies.kit.settings import PolicySettings, StaleAfter, Threshold
from controllers.policies.specon.categories import (
    MoveKind,
    PendingMove,
    SpeConMemo,
    SpeConState,
    categorise,
    recall,
    went_on_declining,
)
from controllers.policies.specon.placement import ScoredNodes, destination, rebalance


@dataclass
class _Turn:
    """One decision in the making: the cluster as it is, and the memos as this decision leaves them."""

    snapshot: Snapshot
    memos: dict[TrialId, SpeConMemo]
    trials: Mapping[TrialId, Trial] = field(init=False)

    def __post_init__(self) -> None:
        pending = {name: memo.pending for name, memo in self.memos.items() if memo.pending}
        self.snapshot = with_destinations(self.snapshot, pending)
        self.trials = self.snapshot.named

    @cached_property
    def nodes(self) -> ScoredNodes:
        """The nodes by score. To be looked at only once all trials are categorised: scores follow from that."""
        return ScoredNodes.of(self.snapshot, {trial: memo.category for trial, memo in self.memos.items()})

    def movable(self, name: TrialId) -> bool:
        """Whether the trial runs, whole, with no move of it asked for."""
        return self.trials[name].whole and self.memos[name].pending is None

    def ask(self, trial: Trial, kind: MoveKind, node: NodeName, reason: str) -> Proposal:
        """Return the proposal of a move; whether it came about, a later snapshot will show."""
        self.memos[trial.id] = replace(self.memos[trial.id], pending=PendingMove(node, trial.attempt, kind))
        return Proposal(Migrate.to(node, trial), reason)


class SpeCon(PolicySettings):
    """Moves each trial at most once for having converged, and at most once to even out the nodes.

    Trials with several workers are categorised and counted but left where they are.
    """

    name: ClassVar[str] = "specon"
    summary: ClassVar[str] = "moves trials that have converged away from those that still improve quickly"
    source: ClassVar[str] = "thesis ch. 4.2 and 5.2, Algorithms 3-5"
    state_type: ClassVar[type[SpeConState]] = SpeConState
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Migrate})
    moves: ClassVar[str] = "converged trials, to the node of least weight of categories"
    most_moves: ClassVar[int | None] = 2

    alpha: float = Field(
        default=0.01,
        gt=0,
        lt=1,
        description="gain per interval, as a share of all gained so far, that is slow",
    )
    interval: float = Field(default=30.0, gt=0, description="seconds between two categorisations of a trial")
    stale_after: StaleAfter = 2.0
    normalise: Normalise = Field(
        default="range", description="range compares gains over objectives of any unit; none takes the paper's raw |dE|"
    )
    strict: bool = Field(
        default=True, description="move only where the destination, with the trial, scores below the node it leaves"
    )
    rebalance_when: Literal["converged", "migrated"] = Field(
        default="converged",
        description="what every live trial must be before nodes are evened out: the thesis's text says the first, "
        "its listing the second, which trials that no neighbour waits for never become",
    )

    def decide(self, snapshot: Snapshot, state: SpeConState) -> Decision[SpeConState]:
        """Categorise what is due, and ask for the moves that follow."""
        turn = _Turn(snapshot, recall(snapshot, state))
        due = snapshot.now >= state.due_at - CLOCK_SLACK
        declining = self._categorise(turn) if due else ()
        proposals = list(self._migrations(turn, declining))
        if due or state.trials.keys() - turn.memos.keys():
            proposals += self._rebalancing(turn)
        due_at = snapshot.now + self.interval if due else state.due_at
        return Decision(
            SpeConState(due_at, turn.memos),
            tuple(proposals),
            wake_at=due_at if any(map(_is_placed, turn.snapshot.unended)) else None,
            assessments=dict(zip(turn.memos, map(attrgetter("assessment"), turn.memos.values()), strict=True)),
        )

    def _categorise(self, turn: _Turn) -> tuple[TrialId, ...]:
        """Run Algorithm 3; return the trials that ask for a move."""
        threshold = Threshold(self.alpha, self.normalise, self.stale_after * self.interval)
        steady = [trial for trial, memo in turn.memos.items() if turn.trials[trial].steady and not memo.migrated]
        before = {trial: turn.memos[trial] for trial in steady}
        for trial in steady:
            turn.memos[trial] = categorise(turn.trials[trial], before[trial], threshold, turn.snapshot.now)
        return tuple(trial for trial in steady if went_on_declining(before[trial], turn.memos[trial]))

    def _migrations(self, turn: _Turn, declining: tuple[TrialId, ...]) -> Iterator[Proposal]:
        """Serve requests one at a time with Algorithm 4, each after the moves before it."""
        for trial in (turn.trials[name] for name in declining if turn.movable(name)):
            own, nodes = trial.node, turn.nodes
            if own is None or nodes.unconverged(own) <= 1:
                continue
            node = destination(nodes, trial, strict=self.strict)
            if node == own:
                # It is in its place already, which counts as the move that it may have.
                turn.memos[trial.id] = replace(turn.memos[trial.id], migrated_at=turn.snapshot.now)
            elif node is not None:
                growth = f"growth {turn.memos[trial.id].growth:.3g} is below alpha {self.alpha:g} and falling"
                scores = f"{node} scores {nodes.score(node):g}, {own} {nodes.score(own):g}"
                nodes.move(trial, node)
                yield turn.ask(trial, MoveKind.CONVERGED, node, f"converged: {growth}; {scores}")

    def _rebalancing(self, turn: _Turn) -> Iterator[Proposal]:
        """Run Algorithm 5 once every live trial is eligible for it."""
        eligible: dict[TrialId, float] = {}
        for trial in filter(_is_placed, turn.snapshot.unended):
            since = self._eligible_since(trial, turn.memos[trial.id])
            if since is None:
                return
            eligible[trial.id] = since
        offered = {name: at for name, at in eligible.items() if turn.movable(name) and not turn.memos[name].rebalanced}
        for trial, node in rebalance(turn.nodes, offered):
            reason = f"rebalancing: every trial has converged and {node} has the room"
            yield turn.ask(trial, MoveKind.REBALANCE, node, reason)

    def _eligible_since(self, trial: Trial, memo: SpeConMemo) -> float | None:
        if memo.migrated or (self.rebalance_when == "migrated" and not trial.gang):
            return memo.migrated_at
        return memo.converged_at


def _is_placed(trial: Trial) -> bool:
    """Return whether the trial is on a node, or on its way to one."""
    return trial.live or bool(trial.moving_to)
