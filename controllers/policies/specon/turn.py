"""One decision of SpeCon in the making."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from controllers.core.model import Migrate, NodeName, Phase, Proposal, Snapshot, Trial, TrialId
from controllers.policies.specon.placement import Board
from controllers.policies.specon.state import MoveKind, PendingMove, TrialMemo


@dataclass
class Turn:
    """The cluster as it is, and the memos as this decision leaves them."""

    snapshot: Snapshot
    memos: dict[TrialId, TrialMemo]
    trials: dict[TrialId, Trial] = field(init=False)

    def __post_init__(self) -> None:
        self.trials = {trial.id: trial for trial in self.snapshot.unended}
        if headed := {trial.id: self._headed(trial) for trial in self.snapshot.unended if self._lacks_target(trial)}:
            self.trials |= headed
            trials = tuple(headed.get(trial.id, trial) for trial in self.snapshot.trials)
            self.snapshot = replace(self.snapshot, trials=trials)

    @cached_property
    def board(self) -> Board:
        """Where the live trials are or are heading. First looked at once all are categorised."""
        categories = {trial: memo.category for trial, memo in self.memos.items()}
        return Board.of(self.snapshot, categories)

    @cached_property
    def placed(self) -> tuple[TrialId, ...]:
        """The trials that were on a node, or on their way to one, as the decision began."""
        return tuple(trial.id for trial in self.trials.values() if trial.live or trial.moving_to)

    def movable(self, trial: TrialId) -> bool:
        """Whether ``trial`` runs, alone, with no move of it asked for."""
        return self.trials[trial].steady and self.trials[trial].workers == 1 and self.memos[trial].pending is None

    def settle(self, trial: TrialId) -> None:
        """Mark ``trial`` as being in its place."""
        self.memos[trial] = replace(self.memos[trial], migrated_at=self.snapshot.now)

    def ask(self, trial: TrialId, kind: MoveKind, node: NodeName, reason: str) -> Proposal:
        """Return the proposal of a move; whether it came about, a later snapshot will show."""
        pending = PendingMove(kind, node, self.trials[trial].attempt)
        self.memos[trial] = replace(self.memos[trial], pending=pending)
        return Proposal(Migrate(trial, node), reason)

    def _headed(self, trial: Trial) -> Trial:
        """Return ``trial`` with the destination that was asked for, as its world does not tell."""
        memo = self.memos.get(trial.id)
        return trial if memo is None or memo.pending is None else replace(trial, moving_to=memo.pending.destination)

    @staticmethod
    def _lacks_target(trial: Trial) -> bool:
        return trial.phase is Phase.MOVING and not trial.moving_to
