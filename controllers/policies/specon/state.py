"""What SpeCon remembers of each trial, and how the cluster's answer to a move changes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from controllers.core.model import Category, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.core.progress import Mark


class MoveKind(StrEnum):
    """Why SpeCon moves a trial; each reason moves it at most once."""

    CONVERGED = "converged"
    REBALANCE = "rebalance"


@dataclass(frozen=True, slots=True)
class PendingMove:
    """A move that was asked for, with the attempt that ran then."""

    kind: MoveKind
    destination: NodeName
    attempt: int


@dataclass(frozen=True, slots=True)
class TrialMemo:
    """One trial: its category and the gain before, since when it is converged, and its moves."""

    category: Category = Category.PROGRESSING
    mark: Mark | None = None
    growth: float | None = None
    converged_at: float | None = None
    migrated_at: float | None = None
    rebalanced: bool = False
    pending: PendingMove | None = None

    @property
    def migrated(self) -> bool:
        """Whether it was moved for having converged, or was found to be in the best place already."""
        return self.migrated_at is not None


@dataclass(frozen=True, slots=True)
class SpeConState:
    """Memos of the trials that have not ended, by name, and when to categorise next (seconds)."""

    due_at: float = 0.0
    trials: Mapping[TrialId, TrialMemo] = field(default_factory=dict)


_UNKNOWN = TrialMemo()


def recalled(snapshot: Snapshot, state: SpeConState) -> dict[TrialId, TrialMemo]:
    """Return the memos to go on with: of every live or moving trial, and of those that were live and have not ended.

    A moving trial may hold no node, and be new to this state, where a controller begins in mid-move.
    """
    return {
        trial.id: _answered(trial, state.trials.get(trial.id, _UNKNOWN), snapshot.now)
        for trial in snapshot.unended
        if trial.live or trial.phase is Phase.MOVING or trial.id in state.trials
    }


def _answered(trial: Trial, memo: TrialMemo, now: float) -> TrialMemo:
    """A move is done once a later attempt runs at its destination; running anywhere else, it has failed."""
    move = memo.pending
    if move is None or trial.phase is not Phase.RUNNING:
        return memo
    memo = replace(memo, pending=None)
    if trial.node != move.destination or trial.attempt <= move.attempt:
        return memo
    if move.kind is MoveKind.CONVERGED:
        return replace(memo, migrated_at=now)
    return replace(memo, rebalanced=True)
