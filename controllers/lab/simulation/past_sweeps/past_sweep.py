"""A sweep that already ran, as far as its record tells. Pure values; the code that reads a record checks them."""

from collections.abc import Sequence
from dataclasses import dataclass

from controllers.core.errors import SpeconError
from controllers.core.model import Direction, NodeName, Parameters, TrialId
from controllers.worlds.simulated.workload import NodeSpec


class PastSweepError(SpeconError):
    """A past sweep cannot be rebuilt from its record."""


@dataclass(frozen=True, slots=True)
class Logged:
    """One finite point of a metric; ``at`` is in Unix seconds."""

    step: int
    value: float
    at: float


@dataclass(frozen=True, slots=True)
class Stay:
    """A time that a trial spent on a node, in seconds since the sweep began."""

    node: NodeName
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class PastTrial:
    """A trial that ran to its end.

    Times are in seconds since the sweep began; ``began_epoch_s`` is its submission in Unix seconds, where known.
    ``objective`` is not empty, and rises in ``step`` as ``cpu_seconds`` does, which is empty where nobody counted;
    ``total_cpu_s`` is what its world counted over all attempts from start to end. ``cpu`` is the cores it requested,
    ``stays`` where it was when, as far as that is known. ``parameters`` are its hyperparameters. ``workers`` are the
    least and the most that trained it at a time; ``cpu`` is each one's, and CPU seconds are those of all.
    """

    id: TrialId
    submitted_at: float
    completed_at: float
    objective: tuple[Logged, ...]
    cpu_seconds: tuple[Logged, ...] = ()
    total_cpu_s: float | None = None
    attempts: int = 1
    first_node: NodeName | None = None
    cpu: float | None = None
    began_epoch_s: float = 0.0
    stays: tuple[Stay, ...] = ()
    parameters: Parameters = ()
    workers: tuple[int, int] = (1, 1)

    @property
    def completion_s(self) -> float:
        """Seconds from its submission to its end."""
        return self.completed_at - self.submitted_at


@dataclass(frozen=True, slots=True)
class MoveTimes:
    """How long a move took, in seconds: until the attempt had gone, and from then to the next one's start."""

    leave_s: float
    next_attempt_s: float


@dataclass(frozen=True, slots=True)
class PastSweep:
    """A sweep under one policy.

    ``policy`` is the line that names it, None where nobody steered. ``trials`` are those that ended well, at least
    one; ``left_out`` tells of the others. ``nodes`` are those that it ran on, empty where nobody knows.
    ``began_epoch_s`` is when its clock began in Unix seconds, None where that is unknown or the clock stood still.
    """

    name: str
    policy: str | None
    direction: Direction
    trials: tuple[PastTrial, ...]
    nodes: tuple[NodeSpec, ...] = ()
    moves: tuple[MoveTimes, ...] = ()
    left_out: tuple[str, ...] = ()
    began_epoch_s: float | None = None

    def __post_init__(self) -> None:
        if not self.trials:
            reasons = "; ".join(self.left_out[:3]) or "it has none"
            message = f"sweep {self.name} has no trial that ran to its end and logged its objective: {reasons}"
            raise PastSweepError(message)

    @property
    def makespan_s(self) -> float:
        """Last completion minus first submission."""
        return max(t.completed_at for t in self.trials) - min(t.submitted_at for t in self.trials)

    @property
    def counted(self) -> bool:
        """Whether every trial counted its CPU seconds."""
        return all(trial.cpu_seconds for trial in self.trials)


def common_trials(sweeps: Sequence[PastSweep]) -> frozenset[TrialId]:
    """Return the trials that all of ``sweeps`` have."""
    return frozenset.intersection(*(frozenset(trial.id for trial in sweep.trials) for sweep in sweeps))
