"""What SpeCon remembers of each trial: how fast it still grows (Algorithm 3 of the thesis), and its moves."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from controllers.core.actions import Assessment
from controllers.core.model import Category, Phase, Snapshot, Trial, TrialId
from controllers.core.progress import Mark, growth, mark, recategorise, reported_since, usable
from controllers.policies.kit.asked_moves import AskedMove
from controllers.policies.kit.settings import Threshold


class MoveKind(StrEnum):
    """Why SpeCon moves a trial; each reason moves it at most once."""

    CONVERGED = "converged"
    REBALANCE = "rebalance"


@dataclass(frozen=True, slots=True)
class PendingMove(AskedMove):
    """A move that was asked for, and why."""

    kind: MoveKind


@dataclass(frozen=True)
class SpeConMemo:
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

    @cached_property
    def assessment(self) -> Assessment:
        """What is shown to people."""
        return Assessment(self.category, self.growth)


@dataclass(frozen=True, slots=True)
class SpeConState:
    """Memos of the trials that have not ended, by name, and when to categorise next (seconds)."""

    due_at: float = 0.0
    trials: Mapping[TrialId, SpeConMemo] = field(default_factory=dict)


_UNKNOWN = SpeConMemo()


def recall(snapshot: Snapshot, state: SpeConState) -> dict[TrialId, SpeConMemo]:
    """Return the memos to go on with: of every live or moving trial, and of those that were live and have not ended.

    A moving trial may hold no node, and be new to this state, where a controller begins in mid-move.
    """
    memos = {
        trial.id: state.trials.get(trial.id, _UNKNOWN)
        for trial in snapshot.unended
        if trial.id in state.trials or trial.live or trial.phase is Phase.MOVING
    }
    for name in [name for name, memo in memos.items() if memo.pending]:
        memos[name] = _with_answer(snapshot.named[name], memos[name], snapshot.now)
    return memos


def categorise(trial: Trial, memo: SpeConMemo, threshold: Threshold, now: float) -> SpeConMemo:
    """Return the memo after one categorisation interval; without a new, usable report it stays as it is.

    The first report is only remembered, and the first gain has no gain before it to fall below.
    """
    progress = usable(trial.progress, now, threshold.stale_after)
    if progress is None or (memo.mark and not reported_since(progress, memo.mark)):
        return memo
    if memo.mark is None:
        return replace(memo, mark=mark(progress))
    gain = growth(progress, memo.mark, trial.direction, threshold.normalise)
    category = recategorise(memo.category, fast=gain >= threshold.alpha, slowing=_declined(memo.growth, gain))
    since = memo.converged_at if memo.category is Category.CONVERGED else now
    converged_at = since if category is Category.CONVERGED else None
    return replace(memo, mark=mark(progress), growth=gain, category=category, converged_at=converged_at)


def went_on_declining(before: SpeConMemo, after: SpeConMemo) -> bool:
    """Return whether a trial that had converged gained still less: the time to ask for a move."""
    if before.category is not Category.CONVERGED or after.category is not Category.CONVERGED:
        return False
    return after.growth is not None and _declined(before.growth, after.growth)


def _declined(before: float | None, gain: float) -> bool:
    """Return whether a gain fell, or is none at all.

    The listing asks for a smaller gain than before. Its |dE| is never quite 0; ours is, whenever a trial
    gets no better, and a trial that stands still for good would never leave WATCHING.
    """
    return before is not None and (gain < before or gain == 0)


def _with_answer(trial: Trial, memo: SpeConMemo, now: float) -> SpeConMemo:
    """Return the memo after a look at what became of the move that was asked for."""
    move = memo.pending
    if move is None or not move.answered_by(trial):
        return memo
    memo = replace(memo, pending=None)
    if not move.arrived(trial):
        return memo
    if move.kind is MoveKind.CONVERGED:
        return replace(memo, migrated_at=now)
    return replace(memo, rebalanced=True)
