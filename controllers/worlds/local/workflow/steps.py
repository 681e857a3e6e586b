"""The values that a program hands to its world and gets back from it: steps, their retries, and how they ended."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from controllers.core.after_attempt import TrialRetries
from controllers.worlds.local.workflow.expression import (
    ExpressionError,
    Value,
    check_expression,
    parse_expression,
    truth,
)
from controllers.worlds.local.workflow.values import substitute_known

_REFERENCE: Final = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
POLICIES = ("Always", "OnFailure", "OnError")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds to wait before a retry: ``seconds * factor ** retries made``, at most ``cap_s``."""

    seconds: float
    factor: float = 1.0
    cap_s: float | None = None


@dataclass(frozen=True, slots=True)
class RetryRule:
    """A step's retryStrategy. ``limit`` is the number of retries after the first attempt, None for no limit.

    ``policy`` is ``Always``, ``OnFailure`` or ``OnError``.
    """

    limit: int | None = None
    policy: str = "OnFailure"
    expression: str | None = None
    backoff: Backoff | None = None

    def __post_init__(self) -> None:
        """Try the expression on sample values, so that its mistakes show before anything runs."""
        if self.expression is not None:
            expression = parse_expression(self.expression)
            check_expression(expression, _SAMPLE)
            truth(expression, _SAMPLE)

    def allows(
        self,
        attempts_made: int,
        exit_code: int,
        *,
        status: str = "Failed",
        duration_s: float = 0.0,
        message: str = "",
    ) -> bool:
        """Return whether another attempt follows the ``attempts_made``-th, which just failed.

        An expression that fails on these values, such as ``asInt`` of a text, allows none, as in Argo.

        Args:
            attempts_made: How many attempts there were, at least 1.
            exit_code: The last attempt's; 128 plus the number where a signal ended it, -1 where it is unknown.
            status: ``Failed`` for an exit code other than 0, ``Error`` for an attempt lost from outside.
            duration_s: Seconds that the last attempt lasted.
            message: What the last attempt said of its end.
        """
        if self.policy not in {"Always", "OnError" if status == "Error" else "OnFailure"}:
            return False
        if self.limit is not None and attempts_made > self.limit:
            return False
        names = variables(attempts_made, exit_code, status, duration_s, message)
        try:
            return self.expression is None or truth(parse_expression(self.expression), names)
        except ExpressionError:
            return False

    def wait_s(self, attempts_made: int) -> float:
        """Return the seconds to wait before the attempt that follows the ``attempts_made``-th."""
        if self.backoff is None:
            return 0.0
        wait = self.backoff.seconds * self.backoff.factor ** (attempts_made - 1)
        return wait if self.backoff.cap_s is None else min(wait, self.backoff.cap_s)


def variables(
    attempts_made: int, exit_code: int, status: str = "Failed", duration_s: float = 0.0, message: str = ""
) -> dict[str, Value]:
    """Return what an expression sees after the ``attempts_made``-th attempt; all of it is text, as in Argo."""
    return {
        "retries": str(attempts_made - 1),
        "lastRetry.exitCode": str(exit_code),
        "lastRetry.status": status,
        "lastRetry.duration": repr(duration_s).removesuffix(".0"),
        "lastRetry.message": message,
    }


_SAMPLE = variables(1, 1, "Failed", 1.5, "1")


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
    ``outputs`` are its output parameters by name.
    """

    status: StepStatus
    result: str | None = None
    exit_code: int = 0
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutputFile:
    """The file of a pod whose text is an output parameter, and what that is without the file, None for a failure."""

    path: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume that pods see as ``path``, and the folder that stands in for it on this machine.

    It is ``inside`` a folder of the run that has the volume's name; each trial has its ``own`` folder there where pods
    would not share it. Or it is ``folder``, where that is not empty.
    """

    path: str
    name: str
    inside: str = "."
    folder: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class PodStep:
    """One step that is a pod in Argo and a process here.

    ``id`` is Argo's node name of the step: unique in the workflow and the same for all attempts. It may hold any
    character, ``/`` included, so it is no file name.
    A script has ``source``: ``command`` is then called with a file that holds it, and ``args`` after that. ``cpu`` is
    in cores and ``memory`` in bytes, as requested; ``grace_s`` is the time between SIGTERM and SIGKILL, ``timeout_s``
    how long an attempt may last (None for any time).
    ``env_from`` names the annotations that further variables come from, ``secrets`` the variables that are Secrets.
    ``workers`` is how many processes it is at most, each with that ``cpu`` and ``memory``, and ``min_workers`` how many
    it needs at least. Each holds ``gpus`` GPUs alone, or ``gpu_part`` of one where that is less than 1, and may use
    ``memory_limit`` bytes (None for any number).
    ``cpu_guessed`` tells that its author named no request, so that what it uses says how many run beside it.
    ``outputs`` are the files of its output parameters.
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
    retry: TrialRetries | RetryRule | None = None
    grace_s: float = 30.0
    timeout_s: float | None = None
    workers: int = 1
    min_workers: int = 1
    env_from: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 0
    memory_limit: float | None = None
    mounts: tuple[Mount, ...] = ()
    secrets: tuple[str, ...] = ()
    cpu_guessed: bool = False
    outputs: Mapping[str, OutputFile] = field(default_factory=dict)
    gpu_part: float = 1.0

    @property
    def environment(self) -> dict[str, str]:
        """Its variables, those from annotations included: empty where there is no such annotation."""
        return {**self.env, **{name: self.annotations.get(note, "") for name, note in self.env_from.items()}}

    def words(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Return words of its command line with each ``$(NAME)`` replaced by that variable, as Kubernetes does.

        An unknown one stays, and ``$$`` stands for a dollar sign.
        """
        known = self.environment
        return tuple(_REFERENCE.sub(lambda m: "$" if m[0] == "$$" else known.get(m[1], m[0]), word) for word in given)

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
