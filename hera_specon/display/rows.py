"""What the live view shows of a tick, worked out apart from how it is drawn. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.core.model import Assessment, Category, Node, NodeName, Phase, Snapshot, Trial, TrialId

ORDER = {Phase.RUNNING: 0, Phase.MOVING: 0, Phase.PENDING: 1, Phase.FAILED: 2, Phase.SUCCEEDED: 3}


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One trial's line. ``share`` and ``done`` run from 0 to 1; ``done`` is None while unknown.

    ``reason`` is what is foreseen for it or became of its goals, or where that is nothing, why it was acted on last.
    """

    id: TrialId
    phase: Phase
    category: Category | None
    node: str
    cpu: float
    share: float
    done: float | None
    step: int
    steps_total: int | None
    latest: float | None
    moves: int
    reason: str


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node's line: ``given`` cores are held by its live trials, ``used`` are busy, of ``cpu``."""

    name: NodeName
    cpu: float
    given: float
    used: float
    trials: int
    ready: bool


def trial_rows(
    snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
) -> list[TrialRow]:
    """Return a row for each trial: those at work first, those waiting next, those that ended last."""
    capacity = {node.name: node.cpu for node in snapshot.nodes}
    trials = sorted(snapshot.trials, key=lambda trial: (ORDER[trial.phase], trial.id))
    return [_row(trial, capacity, assessments.get(trial.id), reasons.get(trial.id, "")) for trial in trials]


def _row(trial: Trial, capacity: Mapping[NodeName, float], assessment: Assessment | None, reason: str) -> TrialRow:
    seen = trial.progress
    cpu = capacity.get(trial.node) if trial.node else None
    return TrialRow(
        id=trial.id,
        phase=trial.phase,
        category=assessment.category if assessment else None,
        node=f"{trial.node} → {trial.moving_to}" if trial.moving_to else trial.node or "",
        cpu=trial.cpu,
        share=min(1.0, trial.cpu / cpu) if cpu and trial.live else 0.0,
        done=_done(trial),
        step=seen.step if seen else 0,
        steps_total=seen.steps_total if seen else None,
        latest=seen.latest if seen else None,
        moves=trial.moves,
        reason=assessment.outlook if assessment and assessment.outlook and not trial.phase.ended else reason,
    )


def _done(trial: Trial) -> float | None:
    if trial.phase is Phase.SUCCEEDED:
        return 1.0
    if trial.progress is None or not trial.progress.steps_total:
        return None
    return min(1.0, trial.progress.step / trial.progress.steps_total)


def node_rows(snapshot: Snapshot) -> list[NodeRow]:
    """Return a row for each node."""
    return [_node_row(snapshot, node) for node in snapshot.nodes]


def _node_row(snapshot: Snapshot, node: Node) -> NodeRow:
    trials = snapshot.on(node.name)
    given = sum(trial.cpu * trial.nodes.count(node.name) for trial in trials)
    return NodeRow(node.name, node.cpu, given, node.cpu_used, len(trials), node.ready)


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
