"""What the deadline policy remembers between two decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.core.model import Snapshot, TrialId
from controllers.policies.kit.pace import Pace, paced
from controllers.policies.kit.single_moves import SingleMoves
from controllers.policies.kit.step_times import StepMemo, timed


@dataclass(frozen=True, slots=True)
class DeadlineState:
    """Of trials that have not ended: their steps and paces, their moves, and where they were at the last look.

    ``due_at`` is when to look next, in seconds.
    """

    due_at: float = 0.0
    steps: Mapping[TrialId, StepMemo] = field(default_factory=dict)
    paces: Mapping[TrialId, Pace] = field(default_factory=dict)
    moves: SingleMoves = field(default_factory=SingleMoves)
    places: Mapping[TrialId, str] = field(default_factory=dict)


def places(snapshot: Snapshot) -> dict[TrialId, str]:
    """Return where each trial that has not ended stands, to tell whether anything has changed."""
    standing = sorted((trial for trial in snapshot.trials if not trial.phase.ended), key=lambda trial: trial.id)
    return {trial.id: f"{trial.phase} {','.join(trial.nodes)}" for trial in standing}


def measured(
    snapshot: Snapshot, state: DeadlineState, stale_after: float
) -> tuple[dict[TrialId, StepMemo], dict[TrialId, Pace]]:
    """Return steps and paces after a look at the newest reports; ``stale_after`` is in seconds."""
    steps = timed(snapshot, state.steps, stale_after)
    trials = {trial.id: trial for trial in snapshot.trials}
    paces = {
        name: paced(trials[name], state.paces.get(name, Pace()), state.steps.get(name, StepMemo()), memo)
        for name, memo in steps.items()
        if trials[name].workers == 1
    }
    return steps, paces
