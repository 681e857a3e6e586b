"""Small sweeps for the tests of forecasts: trials that need known CPU work, as their reports tell it."""

from collections.abc import Sequence
from dataclasses import replace

from controllers.core.model import Direction, Node, NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.policies.kit.work_left import SweepMeasurements, measure_sweep

N1, N2 = NodeName("n1"), NodeName("n2")
STEPS = 100


def trial(name: str, node: NodeName | None = N1, *, submitted_at: float = 0.0, cpu: float = 1.0) -> Trial:
    phase = Phase.PENDING if node is None else Phase.RUNNING
    nodes = () if node is None else (node,)
    attempt = 0 if node is None else 1
    return Trial(
        TrialId(f"uid.sweep.{name}"), phase, cpu, cpu, 0.0, Direction.MINIMIZE, submitted_at, nodes, attempt=attempt
    )


def at_step(trial: Trial, step: int, now: float, cost: float, steps: int | None = STEPS) -> Trial:
    """Return ``trial`` with a report of ``now``; each step has cost ``cost`` core seconds."""
    return replace(trial, progress=Progress(1.0, 0.5, 0.5, step, now, cpu_seconds=cost * step, steps_total=steps))


def ended(trial: Trial) -> Trial:
    return replace(trial, phase=Phase.SUCCEEDED, nodes=())


def seen(*looks: tuple[float, Sequence[Trial]], cores: float = 2.0) -> tuple[Snapshot, SweepMeasurements]:
    """Return the last of several looks at a sweep on two nodes, and what all of them told."""
    known = SweepMeasurements()
    for now, trials in looks:
        snapshot = Snapshot(now, tuple(trials), (Node(N1, cores), Node(N2, cores)))
        known = measure_sweep(snapshot, known)
    return snapshot, known
