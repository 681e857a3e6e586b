"""What the local world remembers of each step over all its attempts, and the file that keeps it."""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, TypeAdapter, ValidationError

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.core.model import Phase
from controllers.worlds.local.processes import ProcessMark
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract
from mlflow_hooks.foreign_json import parsed

_LONGEST_NAME = 100
_DIGEST = 12
_ON_NODES = frozenset({Phase.RUNNING, Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})


def _several(kept: Any) -> Any:  # noqa: ANN401 - what a file holds
    """Return as several what an older version kept of a job's only worker."""
    return kept if isinstance(kept, list | tuple) else (kept,) if kept else ()


_Nodes = Annotated[tuple[str, ...], BeforeValidator(_several), Field(validation_alias=AliasChoices("nodes", "node"))]
_Targets = Annotated[
    tuple[str, ...], BeforeValidator(_several), Field(validation_alias=AliasChoices("targets", "target"))
]
_Pids = Annotated[tuple[int, ...], BeforeValidator(_several), Field(validation_alias=AliasChoices("pids", "pid"))]
_FirstNodes = Annotated[
    tuple[str, ...], BeforeValidator(_several), Field(validation_alias=AliasChoices("first_nodes", "first_node"))
]


@dataclass(frozen=True, slots=True)
class LocalJob:
    """A pod step as a job of this machine: one process, or one for each worker of a gang.

    ``nodes`` are those of its workers by rank, of the last attempt where none runs; ``pids`` and ``first_nodes``
    likewise. ``targets`` are the nodes that the next attempt must start on: a move's destination, or where it was when
    the sweep was interrupted. ``workers`` is how many it has, 0 where nobody has said otherwise than its step.
    ``cpu`` is the share of each. ``released`` tells that its first attempt need not wait for a ``Place``
    any more. ``asked_at`` is when it was asked to save and leave, ``stop`` why if that was to stop. ``gpus`` are
    those of its newest attempt, of rank 0 first. ``cpu_seconds`` counts its attempts that are over, ``failures`` those
    that failed, ``scales`` how often it went on with another number of workers. ``failure`` is how the attempt before
    failed, where it did at once; ``given_up`` tells that no other followed although its rule allowed one, since two
    failed so alike. ``gained`` is how many steps it had come to when it last left, ``barren`` how often since it left
    although nobody had asked it to, and had come no further. ``left`` tells that its last attempt said that it saved
    and left. ``memory_kills`` counts its attempts that were killed because the machine had no memory left. The last one
    held ``memory_peak`` bytes; ``alone`` tells that its next attempt, or the one that runs, has the machine to
    itself for that. ``begun_again`` counts its attempts that began from nothing although one before had trained.
    ``processes`` tells those of ``pids`` from any others. ``threads`` is with how many each worker was told to compute,
    0 where the user chose. ``outputs`` are its output parameters, once it is over.
    Times are seconds of the sweep's clock.
    """

    step: PodStep
    submitted_at: float
    cpu: float
    phase: Phase = Phase.PENDING
    nodes: _Nodes = ()
    first_nodes: _FirstNodes = ()
    targets: _Targets = ()
    workers: int = 0
    attempt: int = 0
    moves: int = 0
    resizes: int = 0
    scales: int = 0
    failures: int = 0
    pids: _Pids = ()
    started_at: float = 0.0
    asked_at: float | None = None
    not_before: float = 0.0
    ended_at: float | None = None
    exit_code: int = 0
    cpu_seconds: float = 0.0
    result: str | None = None
    released: bool = False
    suspensions: int = 0
    stop: str = ""
    gpus: tuple[str, ...] = ()
    failure: str = ""
    given_up: bool = False
    gained: int = 0
    barren: int = 0
    left: bool = False
    begun_again: int = 0
    processes: tuple[ProcessMark, ...] = ()
    memory_kills: int = 0
    memory_peak: float = 0.0
    alone: bool = False
    threads: int = 0
    outputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Argo's name of the step, the same for all attempts."""
        return self.step.id

    @property
    def trial(self) -> str:
        """Id of the trial, empty for a step that is no trial."""
        return self.step.env.get(contract.ENV_TRIAL_ID, "") if labels.LABEL_SWEEP in self.step.labels else ""

    @property
    def params(self) -> dict[str, Any]:
        """Its hyperparameters; none where its environment has no JSON object of them."""
        try:
            params = parsed(self.step.environment.get(contract.ENV_PARAMS) or "{}")
        except ValueError:
            return {}
        return params if isinstance(params, dict) else {}

    @property
    def placed(self) -> bool:
        """Whether an attempt of it is running."""
        return self.phase in _ON_NODES

    @property
    def size(self) -> int:
        """How many workers it has, or starts with."""
        return self.workers or self.step.workers

    @property
    def gang(self) -> bool:
        """Whether it may have more than one worker."""
        return self.step.workers > 1

    @property
    def key(self) -> str:
        """Name of its present attempt, safe as a file name."""
        return f"{file_name(self.trial or self.id)}.{self.attempt}"

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the process groups of its present attempt, by rank."""
        return tuple(f"{self.key}.{rank}" for rank in range(self.size)) if self.gang else (self.key,)

    @property
    def after_controller_died(self) -> "LocalJob":
        """The job as the next controller takes it up: what ran starts again, on the nodes where it belongs."""
        if not self.placed:
            return self
        return replace(self, phase=Phase.PENDING, targets=self.targets or self.nodes, asked_at=None)

    def overdue(self, now: float) -> bool:
        """Whether its attempt did not leave when asked to, or lasts longer than it may: it may hang, and is killed."""
        asked, longest = self.asked_at, self.step.timeout_s
        return (asked is not None and now > asked + self.step.grace_s) or (
            longest is not None and now > self.started_at + longest
        )


@dataclass(frozen=True)
class JobLedger:
    """All jobs, and when each suspended step began to wait."""

    jobs: Mapping[str, LocalJob] = field(default_factory=dict)
    delays: Mapping[str, float] = field(default_factory=dict)


# The names of the fields are the file format: a run that was cut short by an older version goes on from it.
_LEDGER = TypeAdapter(JobLedger)
_JOB = TypeAdapter(LocalJob)


def load_ledger(path: Path) -> JobLedger:
    """Return the ledger kept in ``path``, empty where there is none yet.

    Raises:
        SpeconError: it makes no sense, as where a newer version wrote it.
    """
    try:
        return _LEDGER.validate_json(path.read_bytes()) if path.exists() else JobLedger()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        message = (
            f"{path} is not a ledger of this version ({where}: {first['msg']}): go on with the version that wrote it"
        )
        raise SpeconError(message) from error


class LedgerFile:
    """Keeps a ledger in ``path``, whole or not at all, again and again: only jobs that changed are packed again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._packed: dict[str, tuple[LocalJob, bytes]] = {}

    def save(self, ledger: JobLedger) -> None:
        """Keep ``ledger``.

        Raises:
            OSError: the disk does not take it, and what was there stays.
        """
        jobs = b",\n".join(self._line(name, job) for name, job in ledger.jobs.items())
        delays = json.dumps(dict(ledger.delays)).encode()
        write_whole(self._path, b'{"jobs": {\n' + jobs + b'\n},\n"delays": ' + delays + b"}\n")

    def _line(self, name: str, job: LocalJob) -> bytes:
        known, line = self._packed.get(name, (None, b""))
        if known is not job:
            line = json.dumps(name).encode() + b": " + _JOB.dump_json(job)
            self._packed[name] = job, line
        return line


def save_ledger(path: Path, ledger: JobLedger) -> None:
    """Keep ``ledger`` in ``path`` once, whole or not at all."""
    LedgerFile(path).save(ledger)


def write_whole(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace ``path`` by ``content`` so that no reader ever sees half of it, and nobody but its owner any of it.

    What a run keeps holds the environment of its trials, and with it what they log in with. What is not ``durable`` may
    be lost with the machine's power.

    Raises:
        OSError: the disk does not take it, and what was there stays; it names ``path``.
    """
    beside = path.with_name(f"{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())  # otherwise a loss of power may leave the new name with nothing in it
        os.replace(beside, path)  # noqa: PTH105 - atomic on every platform, which Path.rename is not
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        # A write that fails does not tell where.
        raise OSError(error.errno, f"{error.strerror}; what was there stays", str(path)) from error


def file_name(text: str) -> str:
    """Return ``text`` as a name of a file or a control group: ASCII letters, digits and ``._-``, up to a hundred.

    What is not ASCII, or too long, is told apart by a digest.
    """
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in text)
    if text.isascii() and len(safe) <= _LONGEST_NAME:
        return safe
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"_{safe[: _LONGEST_NAME - _DIGEST - 2]}-{digest}"
