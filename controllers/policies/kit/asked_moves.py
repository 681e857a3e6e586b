"""Moves that were asked for: which are under way, which arrived, and how often each trial has been moved."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId


@dataclass(frozen=True, slots=True)
class AskedMove:
    """A move that was asked for, with the attempt that ran then."""

    destination: NodeName
    attempt: int

    def answered_by(self, trial: Trial) -> bool:
        """Return whether the world has answered: the trial runs, at its destination or anywhere else."""
        return trial.phase is Phase.RUNNING

    def arrived(self, trial: Trial) -> bool:
        """Return whether a later attempt runs at the destination; running anywhere else, the move has failed."""
        return self.answered_by(trial) and trial.node == self.destination and trial.attempt > self.attempt


def with_destinations(snapshot: Snapshot, asked: Mapping[TrialId, AskedMove]) -> Snapshot:
    """Return ``snapshot`` with the destinations that were asked for, of trials whose world does not tell theirs."""
    told = {
        name: replace(trial, destination=(move.destination,) * trial.workers)
        for name, move in asked.items()
        if (trial := snapshot.named.get(name)) and trial.phase is Phase.MOVING and not trial.moving_to
    }
    if not told:
        return snapshot
    return replace(snapshot, trials=tuple(told.get(trial.id, trial) for trial in snapshot.trials))


@dataclass(frozen=True, slots=True)
class AskedMoves:
    """Moves asked for and under way, and how many of each trial have arrived; of trials that have not ended."""

    asked: Mapping[TrialId, AskedMove] = field(default_factory=dict)
    arrived: Mapping[TrialId, int] = field(default_factory=dict)

    def allows(self, trial: Trial, most: int = 1) -> bool:
        """Whether ``trial`` runs, whole, no move of it is under way, and fewer than ``most`` have arrived."""
        return trial.whole and trial.id not in self.asked and self.arrived.get(trial.id, 0) < most

    def with_asked(self, trial: Trial, node: NodeName) -> "AskedMoves":
        """Return these with a move of ``trial`` to ``node``; whether it comes about, a later snapshot will show."""
        return replace(self, asked={**self.asked, trial.id: AskedMove(node, trial.attempt)})

    def answered(self, snapshot: Snapshot) -> "AskedMoves":
        """Return these after a look at what became of them; a move that failed may be asked for again."""
        left = {trial.id: trial for trial in snapshot.unended}
        asked = {name: move for name, move in sorted(self.asked.items()) if name in left}
        arrived = {name: count for name, count in self.arrived.items() if name in left}
        for name, move in asked.items():
            if move.arrived(left[name]):
                arrived[name] = arrived.get(name, 0) + 1
        return AskedMoves(
            {name: move for name, move in asked.items() if not move.answered_by(left[name])},
            dict(sorted(arrived.items())),
        )
