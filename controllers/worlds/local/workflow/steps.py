"""The values that a program hands to its world and gets back from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from controllers.worlds.local.workflow.retry import RetryRule, variables
from controllers.worlds.local.workflow.substitute import substitute_known

LATE_TAGS: Final = frozenset(variables(1, 0))
"""Tags that only an attempt has values for."""


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

    ``id`` is Argo's node name of the step: unique in the workflow and the same for all attempts. It may hold any
    character, ``/`` included, so it is no file name.
    A script has ``source``: ``command`` is then called with a file that holds it, and ``args`` after that. ``cpu`` is
    in cores and ``memory`` in bytes, as requested; ``grace_s`` is the time between SIGTERM and SIGKILL.
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

    def attempt(
        self, retries: int = 0, exit_code: int = 0, status: str = "", duration_s: float = 0.0, message: str = ""
    ) -> "PodStep":
        """Return the step as one attempt runs it: ``{{retries}}`` and ``{{lastRetry...}}`` have their values.

        Args:
            retries: How many attempts there were before; the others describe the last of them.
            exit_code: As in ``RetryRule.allows``.
            status: Likewise; empty at the first attempt.
            duration_s: Likewise.
            message: Likewise.
        """
        if self.retry is None:
            return self
        names = variables(retries + 1, exit_code, status, duration_s, message)
        fields = ("command", "args", "source", "env", "labels", "annotations")
        known = substitute_known({name: getattr(self, name) for name in fields}, {k: str(v) for k, v in names.items()})
        return replace(self, **known | {"command": tuple(known["command"]), "args": tuple(known["args"])})


@dataclass(frozen=True, slots=True)
class Delay:
    """A suspend step: the world reports its success ``seconds`` after it first saw it."""

    id: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Expansion:
    """What should exist now: every pod step and delay that is due and has no outcome, in the workflow's order.

    ``message`` says why the workflow failed, where it did.
    """

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
