"""A sweep at one moment, wherever it runs: what ``specon status`` shows. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from controllers.core.model import Assessment, Phase, Snapshot, Trial, TrialId
from hera_specon.display import words
from hera_specon.display.eta import average_pace, seconds_left
from hera_specon.display.rows import ORDER, Tally, tally


@dataclass(frozen=True, slots=True)
class SweepState:
    """What is known of a sweep now.

    ``name`` is what people call it, ``where`` the place it runs, ``total`` the trials it has in all. ``steered``
    says who acts on it. ``missing`` says what could not be learnt and why. Times of ``snapshot`` are seconds since
    the sweep began.
    """

    name: str
    where: str
    phase: str
    policy: str
    steered: str
    total: int
    snapshot: Snapshot
    assessments: Mapping[TrialId, Assessment] = field(default_factory=dict)
    reasons: Mapping[TrialId, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    over: bool = False

    @property
    def counted(self) -> Tally:
        """How many trials stand where."""
        return tally(self.snapshot, self.total)

    @property
    def left(self) -> float | None:
        """Seconds until its end at the average pace so far, None while that is not known."""
        if self.over:
            return 0.0
        left = seconds_left(average_pace(self.snapshot), self.snapshot)
        return left or None  # 0 means that all ended that are there, and more will come


@dataclass(frozen=True, slots=True)
class StateRow:
    """One trial's line; CPU in cores, None where nothing is known."""

    trial: str
    phase: str
    node: str
    cpu: float
    base_cpu: float
    attempt: int
    moves: int
    category: str | None
    growth: float | None
    step: int | None
    steps_total: int | None
    metric: float | None
    reason: str
    outlook: str


def state_rows(state: SweepState) -> Sequence[StateRow]:
    """Return a line for each trial: those at work first, those waiting next, those that ended last."""
    trials = sorted(state.snapshot.trials, key=lambda trial: (ORDER[trial.phase], trial.id))
    return [_row(trial, state.assessments.get(trial.id), state.reasons.get(trial.id, "")) for trial in trials]


def _row(trial: Trial, assessment: Assessment | None, reason: str) -> StateRow:
    seen = trial.progress
    judged = assessment if trial.phase in {Phase.RUNNING, Phase.MOVING} else None
    waits = " (gated)" if trial.gated else ""
    return StateRow(
        trial=words.short_id(trial.id),
        phase=trial.phase.value + waits,
        node=f"{trial.node or '?'} → {trial.moving_to}" if trial.moving_to else trial.node or "",
        cpu=trial.cpu,
        base_cpu=trial.base_cpu,
        attempt=trial.attempt,
        moves=trial.moves,
        category=judged.category.value if judged and judged.category else None,
        growth=judged.growth if judged else None,
        step=seen.step if seen else None,
        steps_total=seen.steps_total if seen else None,
        metric=seen.latest if seen else None,
        reason=reason,
        outlook=assessment.outlook if assessment else "",
    )


def to_json(state: SweepState) -> dict[str, Any]:
    """Return the state for scripts, as ``specon status --json`` prints it."""
    count = state.counted
    return {
        "name": state.name,
        "where": state.where,
        "phase": state.phase,
        "policy": state.policy,
        "steered": state.steered,
        "over": state.over,
        "elapsed_s": round(state.snapshot.now, 1),
        "left_s": None if state.left is None else round(state.left, 1),
        "counts": {**asdict(count), "ended": count.ended},
        "missing": list(state.missing),
        "trials": [asdict(row) for row in state_rows(state)],
    }
