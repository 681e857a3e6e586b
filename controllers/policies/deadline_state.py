"""What the deadline policy remembers between two decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controllers.model import Snapshot, Trial, TrialId
from controllers.policies.pace import Pace, measured
from controllers.progress import usable


@dataclass(frozen=True, slots=True)
class TrialMemo:
    """One trial: its pace, and the attempt in which it was asked to move for its deadline, if it was."""

    pace: Pace = field(default_factory=Pace)
    asked_in: int | None = None

    def may_move(self, trial: Trial) -> bool:
        """Whether it runs alone on a node and has not left one for its deadline before; a refusal does not count."""
        return trial.steady and trial.workers == 1 and (self.asked_in is None or trial.attempt <= self.asked_in)


@dataclass(frozen=True, slots=True)
class DeadlineState:
    """Memos of the trials that have not ended, when to look next (seconds), and where they were at the last look."""

    due_at: float = 0.0
    trials: Mapping[TrialId, TrialMemo] = field(default_factory=dict)
    places: Mapping[TrialId, str] = field(default_factory=dict)


def places(snapshot: Snapshot) -> dict[TrialId, str]:
    """Return where each trial that has not ended stands, to tell whether anything has changed."""
    standing = sorted((trial for trial in snapshot.trials if not trial.phase.ended), key=lambda trial: trial.id)
    return {trial.id: f"{trial.phase} {','.join(trial.nodes)}" for trial in standing}


def recalled(snapshot: Snapshot, known: Mapping[TrialId, TrialMemo], stale_after: float) -> dict[TrialId, TrialMemo]:
    """Return the memos to go on with, each with what was measured since the last look."""
    going_on = sorted((trial for trial in snapshot.trials if not trial.phase.ended), key=lambda trial: trial.id)
    return {
        trial.id: _updated(trial, known.get(trial.id, TrialMemo()), snapshot.now, stale_after) for trial in going_on
    }


def _updated(trial: Trial, memo: TrialMemo, now: float, stale_after: float) -> TrialMemo:
    progress = usable(trial.progress, now, stale_after)
    if progress is None or not trial.steady or trial.workers > 1:
        return memo
    return replace(memo, pace=measured(trial, memo.pace, progress))
