"""A sweep at one moment, wherever it runs: its trials, its nodes, how many have ended, when it will end. Pure."""

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from controllers.core.model import Assessment, Category, NodeName, Phase, Snapshot, TrialId
from hera_specon import formatting

WINDOW = 120.0
"""Seconds that a pace looks back: long enough to smooth, short enough to follow a new share."""

Mark = tuple[float, int]


@dataclass(frozen=True, slots=True)
class Pace:
    """Where each trial was when: pairs of time (seconds) and step, oldest first."""

    marks: Mapping[TrialId, tuple[Mark, ...]] = field(default_factory=dict)

    def after(self, snapshot: Snapshot) -> "Pace":
        """Return the pace with ``snapshot`` taken in; marks older than the window are dropped."""
        seen = {trial.id: (snapshot.now, trial.progress.step) for trial in snapshot.trials if trial.progress}
        oldest = snapshot.now - WINDOW
        return Pace(
            {
                trial: (*(old for old in self.marks.get(trial, ()) if old[0] >= oldest), mark)
                for trial, mark in seen.items()
            }
        )

    def steps_per_second(self, trial: TrialId) -> float | None:
        """Return the trial's pace over the window, None while it has not moved on within it."""
        marks = self.marks.get(trial, ())
        if len(marks) < 2:  # noqa: PLR2004 - a pace needs two points
            return None
        (before, first), (now, last) = marks[0], marks[-1]
        return (last - first) / (now - before) if last > first and now > before else None


def average_pace(snapshot: Snapshot) -> Pace:
    """Return the pace of each trial at work over all its time so far: what one look at a sweep can tell."""
    at_work = [trial for trial in snapshot.trials if trial.live and trial.progress]
    return Pace({t.id: ((t.submitted_at, 0), (snapshot.now, t.progress.step)) for t in at_work if t.progress})


def seconds_left(pace: Pace, snapshot: Snapshot) -> float | None:
    """Return the seconds until the last trial ends, if every pace stays as it is.

    A trial of unknown pace or length is taken to be like the median of those known, so the
    figure is a lower bound while trials wait for a place. None while nothing is known.
    """
    open_trials = [trial for trial in snapshot.trials if not trial.phase.ended]
    if not open_trials:
        return 0.0
    paces = {trial.id: pace.steps_per_second(trial.id) for trial in snapshot.trials}
    known_paces = [rate for rate in paces.values() if rate is not None]
    lengths = [t.progress.steps_total for t in snapshot.trials if t.progress and t.progress.steps_total]
    typical_pace = statistics.median(known_paces) if known_paces else None
    typical_length = statistics.median(lengths) if lengths else None
    left = []
    for trial in open_trials:
        rate = paces[trial.id] or typical_pace
        total = (trial.progress.steps_total if trial.progress else None) or typical_length
        if rate is None or total is None:
            return None
        left.append(max(0.0, total - (trial.progress.step if trial.progress else 0)) / rate)
    return max(left)


ORDER = {Phase.RUNNING: 0, Phase.MOVING: 0, Phase.PENDING: 1, Phase.FAILED: 2, Phase.SUCCEEDED: 3}
"""How trials are listed: those at work first, then those that wait, then those that have ended."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One trial's line on every screen.

    CPU is in cores. ``share`` runs from 0 to 1 and is the part of its node that a live trial holds; 0 where the size
    of the node is not known. ``category`` and ``growth`` are None unless the trial is at work. ``outlook`` is what its
    policy foresees, ``reason`` why it was acted on last. None stands for what is not known.
    """

    id: TrialId
    phase: Phase
    gated: bool
    node: str
    cpu: float
    base_cpu: float
    share: float
    attempt: int
    moves: int
    category: Category | None
    growth: float | None
    step: int | None
    steps_total: int | None
    metric: float | None
    reason: str
    outlook: str

    @property
    def done(self) -> float | None:
        """Part of its steps that it has made, from 0 to 1; None while that is not known."""
        if self.phase is Phase.SUCCEEDED:
            return 1.0
        return min(1.0, (self.step or 0) / self.steps_total) if self.steps_total else None

    @property
    def note(self) -> str:
        """The outlook of a trial that has not ended; if it has none, the reason."""
        return self.outlook if self.outlook and not self.phase.ended else self.reason


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node's line: of ``cpu`` cores its live trials hold ``given`` and use ``used``."""

    name: NodeName
    cpu: float
    given: float
    used: float
    trials: int
    ready: bool


def trial_rows(
    snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
) -> list[TrialRow]:
    """Return a row for each trial, in the order of ``ORDER``."""
    capacity = {node.name: node.cpu for node in snapshot.nodes}
    rows = []
    for trial in sorted(snapshot.trials, key=lambda trial: (ORDER[trial.phase], trial.id)):
        seen, assessment = trial.progress, assessments.get(trial.id)
        judged = assessment if trial.phase in {Phase.RUNNING, Phase.MOVING} else None
        cpu = capacity.get(trial.node) if trial.node else None
        rows.append(
            TrialRow(
                id=trial.id,
                phase=trial.phase,
                gated=trial.gated,
                node=f"{trial.node or '?'} → {trial.moving_to}" if trial.moving_to else trial.node or "",
                cpu=trial.cpu,
                base_cpu=trial.base_cpu,
                share=min(1.0, trial.cpu / cpu) if cpu and trial.live else 0.0,
                attempt=trial.attempt,
                moves=trial.moves,
                category=judged.category if judged else None,
                growth=judged.growth if judged else None,
                step=seen.step if seen else None,
                steps_total=seen.steps_total if seen else None,
                metric=seen.latest if seen else None,
                reason=reasons.get(trial.id, ""),
                outlook=assessment.outlook if assessment else "",
            )
        )
    return rows


def node_rows(snapshot: Snapshot) -> list[NodeRow]:
    """Return a row for each node."""
    rows = []
    for node in snapshot.nodes:
        trials = snapshot.on(node.name)
        given = sum(trial.cpu * trial.nodes.count(node.name) for trial in trials)
        rows.append(NodeRow(node.name, node.cpu, given, node.cpu_used, len(trials), node.ready))
    return rows


@dataclass(frozen=True, slots=True)
class Tally:
    """How many trials of a sweep stand where; ``total`` counts those not yet submitted too."""

    total: int
    running: int
    moving: int
    succeeded: int
    failed: int

    @property
    def ended(self) -> int:
        """Trials to which nothing more will happen."""
        return self.succeeded + self.failed


def tally(snapshot: Snapshot, total: int) -> Tally:
    """Count the trials of ``snapshot`` by phase."""
    phases = [trial.phase for trial in snapshot.trials]
    return Tally(
        total=max(total, len(phases)),
        running=phases.count(Phase.RUNNING),
        moving=phases.count(Phase.MOVING),
        succeeded=phases.count(Phase.SUCCEEDED),
        failed=phases.count(Phase.FAILED),
    )


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

    @property
    def rows(self) -> list[TrialRow]:
        """A line for each trial."""
        return trial_rows(self.snapshot, self.assessments, self.reasons)


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
        "trials": [
            {
                "trial": formatting.short_id(row.id),
                "phase": row.phase.value + (" (gated)" if row.gated else ""),
                "node": row.node,
                "cpu": row.cpu,
                "base_cpu": row.base_cpu,
                "attempt": row.attempt,
                "moves": row.moves,
                "category": row.category.value if row.category else None,
                "growth": row.growth,
                "step": row.step,
                "steps_total": row.steps_total,
                "metric": row.metric,
                "reason": row.reason,
                "outlook": row.outlook,
            }
            for row in state.rows
        ],
    }
