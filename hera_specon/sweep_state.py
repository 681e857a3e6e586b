"""A sweep at one moment, wherever it runs: its trials, its nodes, how many have ended, when it will end. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from controllers.core.actions import Assessment
from controllers.core.aims import pareto_front
from controllers.core.forecast import EndRange, Forecast
from controllers.core.model import Category, Direction, NodeName, Phase, Snapshot, Trial, TrialId
from hera_specon import formatting

ORDER = {
    Phase.RUNNING: 0,
    Phase.MOVING: 0,
    Phase.SUSPENDING: 0,
    Phase.STOPPING: 0,
    Phase.SUSPENDED: 1,
    Phase.PENDING: 2,
    Phase.FAILED: 3,
    Phase.SUCCEEDED: 4,
    Phase.STOPPED: 5,
}
"""How trials are listed: those at work first, then those that wait, then those that have ended."""


DIVERGED: Final = "diverged"
_MOST_OF_FRONT: Final = 5
"""Trials that are named."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One trial's line on every screen.

    CPU is in cores, of each of its ``workers``. ``share`` runs from 0 to 1 and is the part of its (first) node that a
    live trial holds; 0 where the size of the node is not known. ``category`` and ``growth`` are None unless the trial
    is at work. ``outlook`` is what its policy foresees, ``reason`` why it was acted on last. ``left`` is in how many
    seconds it will end. None stands for what is not known. ``pids`` are the processes that were started for it and
    still run, ``folder`` is its own working folder; both only on this machine.
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
    left: EndRange | None
    diverged: bool = False
    workers: int = 1
    pids: tuple[int, ...] = ()
    folder: str = ""

    @property
    def outcome(self) -> str:
        """Its phase in a word, or that it trained to an end that is no number."""
        return DIVERGED if self.diverged and self.phase is Phase.SUCCEEDED else self.phase.value

    @property
    def done(self) -> float | None:
        """Part of its steps that it has made, from 0 to 1; None while that is not known."""
        if self.phase is Phase.SUCCEEDED:
            return 1.0
        return min(1.0, (self.step or 0) / self.steps_total) if self.steps_total else None

    @property
    def note(self) -> str:
        """The outlook of a trial that has not ended; if it has none, the reason."""
        return self.outlook or self.reason


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
    snapshot: Snapshot,
    assessments: Mapping[TrialId, Assessment],
    reasons: Mapping[TrialId, str],
    forecast: Forecast | None = None,
    most: int | None = None,
) -> list[TrialRow]:
    """Return a row for each trial, in the order of ``ORDER``; the first ``most`` of them where not all are shown."""
    foreseen = {} if forecast is None else forecast.trials
    capacity = {node.name: node.cpu for node in snapshot.nodes}
    rows = []
    # Trials of a snapshot are sorted by name.
    for trial in sorted(snapshot.trials, key=lambda trial: ORDER[trial.phase])[:most]:
        seen, assessment = trial.progress, assessments.get(trial.id)
        judged = assessment if ORDER[trial.phase] == 0 else None
        cpu = capacity.get(trial.node) if trial.node else None
        end = None if trial.phase.ended else foreseen.get(trial.id)
        rows.append(
            TrialRow(
                id=trial.id,
                phase=trial.phase,
                gated=trial.gated,
                node=where(trial),
                cpu=trial.cpu,
                base_cpu=trial.base_cpu,
                share=min(1.0, trial.cpu * trial.nodes.count(trial.nodes[0]) / cpu) if cpu and trial.live else 0.0,
                attempt=trial.attempt,
                moves=trial.moves,
                category=judged.category if judged else None,
                growth=judged.growth if judged else None,
                step=seen.step if seen else None,
                steps_total=seen.steps_total if seen else None,
                metric=seen.latest if seen else None,
                reason=reasons.get(trial.id, ""),
                outlook=assessment.outlook if assessment and not trial.phase.ended else "",
                left=None if end is None else end.left(snapshot.now),
                diverged=trial.diverged,
                workers=trial.workers,
            )
        )
    return rows


def trial_outcome(trial: Trial) -> str:
    """Return a trial's phase in a word, or that it trained to an end that is no number."""
    return DIVERGED if trial.diverged and trial.phase is Phase.SUCCEEDED else trial.phase.value


def where(trial: Trial) -> str:
    """Return the nodes of a trial's workers in words, and where it is on its way to; empty while it has none."""
    here, there = formatting.places(trial.nodes), formatting.places(trial.destination)
    return f"{here or '?'} → {there}" if there else here


def best_so_far(snapshot: Snapshot) -> list[tuple[Trial, float]]:
    """Return by sweep of one objective the trial that has come to the best value so far, and that value.

    Trials that break a constraint, or have not told that they keep it, are left out.
    """
    best: dict[str, tuple[float, Trial, float]] = {}
    for trial in snapshot.trials:
        if trial.progress is not None and _counts(trial) and not trial.aims.further:
            loss = trial.progress.best if trial.direction is Direction.MINIMIZE else -trial.progress.best
            if trial.sweep not in best or loss < best[trial.sweep][0]:
                best[trial.sweep] = (loss, trial, trial.progress.best)
    return [(trial, value) for _, trial, value in best.values()]


def fronts_so_far(snapshot: Snapshot) -> dict[str, list[Trial]]:
    """Return by sweep of several objectives the trials that no other beats by the newest values, as far as known."""
    known: dict[str, list[tuple[tuple[float, ...], Trial]]] = {}
    for trial in snapshot.trials:
        if trial.aims.further and trial.progress is not None and _counts(trial) and not trial.diverged:
            further = trial.aims.losses(dict(trial.progress.also))
            if further is not None:
                losses = (trial.direction.loss(trial.progress.latest), *further)
                known.setdefault(trial.sweep, []).append((losses, trial))
    return {
        sweep: [of[place][1] for place in pareto_front([losses for losses, _ in of])] for sweep, of in known.items()
    }


def front_lines(snapshot: Snapshot) -> list[str]:
    """Return a line for each sweep of several objectives: how many trials are on its front, and the first few."""
    return [
        formatting.printable(
            f"on the front so far: {len(front)} trials, "
            f"{', '.join(formatting.short_id(trial.id) for trial in front[:_MOST_OF_FRONT])}"
            f"{'' if len(front) <= _MOST_OF_FRONT else ' and others'}"
        )
        for front in fronts_so_far(snapshot).values()
    ]


def _counts(trial: Trial) -> bool:
    """Return whether a trial has not failed, and keeps its constraints as far as it has come."""
    violations = None if trial.progress is None else trial.aims.violations(dict(trial.progress.also))
    return trial.phase is not Phase.FAILED and violations is not None and all(by <= 0 for by in violations)


def node_rows(snapshot: Snapshot) -> list[NodeRow]:
    """Return a row for each node."""
    rows = []
    for node in snapshot.nodes:
        trials = snapshot.on(node.name)
        given = sum(trial.cpu * trial.nodes.count(node.name) for trial in trials)
        rows.append(NodeRow(node.name, node.cpu, given, node.cpu_used, len(trials), node.ready))
    return rows


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """How many trials of a sweep stand where; ``total`` counts those not yet submitted too."""

    total: int
    running: int
    moving: int
    suspended: int
    succeeded: int
    stopped: int
    failed: int

    @property
    def ended(self) -> int:
        """Trials to which nothing more will happen."""
        return self.succeeded + self.stopped + self.failed


def tally(snapshot: Snapshot, total: int) -> TrialCounts:
    """Count the trials of ``snapshot`` by phase."""
    phases = [trial.phase for trial in snapshot.trials]
    return TrialCounts(
        total=max(total, len(phases)),
        running=phases.count(Phase.RUNNING),
        moving=phases.count(Phase.MOVING),
        suspended=phases.count(Phase.SUSPENDING) + phases.count(Phase.SUSPENDED),
        succeeded=phases.count(Phase.SUCCEEDED),
        stopped=phases.count(Phase.STOPPED),
        failed=phases.count(Phase.FAILED),
    )


@dataclass(frozen=True, slots=True)
class TrialProcesses:
    """Where a trial runs on this machine: the first process of each worker, and the working folder of its own."""

    pids: tuple[int, ...] = ()
    folder: str = ""


@dataclass(frozen=True, slots=True)
class SweepState:
    """What is known of a sweep now.

    ``name`` is what people call it, ``where`` the place it runs, ``total`` the trials it has in all. ``steered`` says
    who acts on it. ``missing`` says what could not be learnt and why, ``warnings`` what is wrong with it. ``forecast``
    is the last one of the controller that steers it. ``places`` tells where trials run, on this machine. ``cost`` is
    what it has cost so far, None where no prices are known. ``endings`` tells by the name of a sweep why it was ended
    before all of its trials had, ``promises`` what its promised risk came to. Times of ``snapshot`` and ``forecast``
    are seconds since the sweep began.
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
    forecast: Forecast | None = None
    over: bool = False
    warnings: tuple[str, ...] = ()
    places: Mapping[TrialId, TrialProcesses] = field(default_factory=dict)
    cost: float | None = None
    endings: Mapping[str, str] = field(default_factory=dict)
    promises: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def counted(self) -> TrialCounts:
        """How many trials stand where."""
        return tally(self.snapshot, self.total)

    @property
    def left(self) -> EndRange | None:
        """Seconds until its end, None while that is not foreseen."""
        if self.over or self.forecast is None or self.forecast.end is None:
            return None
        return self.forecast.end.left(self.snapshot.now)

    @property
    def rows(self) -> list[TrialRow]:
        """A line for each trial."""
        rows = trial_rows(self.snapshot, self.assessments, self.reasons, self.forecast)
        places = [self.places.get(row.id, TrialProcesses()) for row in rows]
        return [replace(row, pids=at.pids, folder=at.folder) for row, at in zip(rows, places, strict=True)]


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
        "ended": dict(state.endings),
        "promises": {sweep: dict(told) for sweep, told in state.promises.items()},
        "elapsed_s": round(state.snapshot.now, 1),
        "cost": state.cost,
        **({"left_s": 0.0, "left_low_s": 0.0, "left_high_s": 0.0} if state.over else _left(state.left)),
        "counts": {**asdict(count), "ended": count.ended},
        "best": {formatting.short_id(trial.id): value for trial, value in best_so_far(state.snapshot)},
        "front": {
            sweep: [formatting.short_id(trial.id) for trial in front]
            for sweep, front in fronts_so_far(state.snapshot).items()
        },
        "missing": list(state.missing),
        "warnings": list(state.warnings),
        "trials": [
            {
                "trial": formatting.short_id(row.id),
                "phase": row.outcome + (" (gated)" if row.gated and row.phase is Phase.PENDING else ""),
                "node": row.node,
                "workers": row.workers,
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
                "pids": list(row.pids),
                "folder": row.folder or None,
                **_left(row.left),
            }
            for row in state.rows
        ],
    }


def _left(left: EndRange | None) -> dict[str, float | None]:
    """Return when something will end as scripts read it, in seconds from now."""
    names = ("left_s", "left_low_s", "left_high_s")
    if left is None:
        return dict.fromkeys(names)
    return {name: round(at, 1) for name, at in zip(names, (left.likely, left.low, left.high), strict=True)}
