"""The values that a program hands to its world and gets back from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from controllers.worlds.local.workflow.retry import RetryRule


class StepStatus(StrEnum):
    """How a step ended, after all its attempts. Values are Argo's phases."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The end of a pod step (after its last attempt) or of a delay.

    ``result`` is what the step wrote to standard output, without the last line break, where the world kept it.
    """

    status: StepStatus
    result: str | None = None
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class PodStep:
    """One step that is a pod in Argo and a process here.

    ``id`` is Argo's node name of the step: unique in the workflow and the same for all attempts.
    A script has ``source``: ``command`` is then called with a file that holds it. ``cpu`` is in cores and ``memory`` in
    bytes, as requested; ``grace_s`` is the time between SIGTERM and SIGKILL.
    """

    id: str
    template: str
    command: tuple[str, ...]
    args: tuple[str, ...] = ()
    source: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    cpu: float = 0.1
    memory: float = 0.0
    cpu_limit: float | None = None
    retry: RetryRule | None = None
    grace_s: float = 30.0
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Delay:
    """A suspend step: the world reports its success ``seconds`` after it first saw it."""

    id: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Expansion:
    """What should exist now: every pod step and delay that is due and has no outcome, in the workflow's order."""

    pods: tuple[PodStep, ...]
    delays: tuple[Delay, ...]
    finished: bool
    failed: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial that is known before anything runs, ``delay`` seconds of suspending after the start."""

    step: PodStep
    delay: float
