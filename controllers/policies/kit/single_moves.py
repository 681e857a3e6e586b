"""Move rules that move each trial at most once: what was asked for, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId


@dataclass(frozen=True, slots=True)
class Asked:
    """A move that was asked for, with the attempt that ran then."""

    destination: NodeName
    attempt: int


@dataclass(frozen=True, slots=True)
class SingleMoves:
    """Moves asked for and under way, and the trials that have had theirs; of trials that have not ended."""

    asked: Mapping[TrialId, Asked] = field(default_factory=dict)
    done: tuple[TrialId, ...] = ()

    def allows(self, trial: Trial) -> bool:
        """Whether ``trial`` runs, alone, and has never been moved."""
        return trial.steady and trial.workers == 1 and trial.id not in self.asked and trial.id not in self.done

    def with_asked(self, trial: Trial, node: NodeName) -> "SingleMoves":
        """Return these with a move of ``trial`` to ``node``; whether it comes about, a later snapshot will show."""
        return replace(self, asked={**self.asked, trial.id: Asked(node, trial.attempt)})


def answered(snapshot: Snapshot, moves: SingleMoves) -> SingleMoves:
    """Return ``moves`` after a look at what became of them.

    A move is done once a later attempt runs at its destination; running anywhere else, it has failed and may be asked
    for again.
    """
    left = {trial.id: trial for trial in sorted(snapshot.trials, key=lambda one: one.id) if not trial.phase.ended}
    running = {name for name in moves.asked if name in left and left[name].phase is Phase.RUNNING}
    arrived = {name for name in running if _arrived(left[name], moves.asked[name])}
    return SingleMoves(
        {name: asked for name, asked in sorted(moves.asked.items()) if name in left and name not in running},
        tuple(sorted((arrived | set(moves.done)) & left.keys())),
    )


def headed(snapshot: Snapshot, moves: SingleMoves) -> Snapshot:
    """Return ``snapshot`` with the destinations that were asked for, where the world does not tell."""
    return replace(snapshot, trials=tuple(_headed(trial, moves.asked.get(trial.id)) for trial in snapshot.trials))


def _arrived(trial: Trial, asked: Asked) -> bool:
    return trial.node == asked.destination and trial.attempt > asked.attempt


def _headed(trial: Trial, asked: Asked | None) -> Trial:
    if trial.phase is not Phase.MOVING or trial.moving_to or asked is None:
        return trial
    return replace(trial, moving_to=asked.destination)
