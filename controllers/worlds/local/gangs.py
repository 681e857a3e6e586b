"""The workers of one attempt as one thing: where they meet, which of them still run, and what their ends mean."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controllers.core.errors import SpeconError
from controllers.worlds.local.jobs import LocalJob
from mlflow_hooks import contract
from mlflow_hooks.no_links import remove_tree

NOT_STARTED: Final = 71
"""Exit code (EX_OSERR) of a worker that this machine could not start."""
_MEETINGS: Final = "gang"


class GangNotJoinedError(SpeconError):
    """The training program of a gang does not train with the other workers."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that is over: its exit code, and the CPU seconds that its process trees used.

    ``asked`` tells that it was asked to leave, by the controller or because what started it had died. ``memory_kills``
    is how many of its processes the kernel has killed for want of memory, where it counts them. ``through`` tells that
    the hooks of its program say that the training has come to its end.
    """

    key: str
    code: int
    cpu_seconds: float
    asked: bool = False
    memory_kills: int = 0
    through: bool = False


@dataclass
class Crew:
    """The processes of one attempt, by rank in ``keys``. ``meeting`` is where those of a gang find each other.

    ``token`` is that of the attempt. ``codes`` holds the exit code of each that has ended, the first to end first,
    ``cpu_seconds`` what they used; ``asked`` tells that one of them was asked to leave. ``memory_kills`` and
    ``through``, as far as they have ended, are as in ``Ended``.
    """

    job: LocalJob
    token: str
    meeting: "Meeting | None" = None
    codes: dict[str, int] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    asked: bool = False
    memory_kills: int = 0
    through: bool = True

    @property
    def at_work(self) -> tuple[str, ...]:
        """The processes that still run."""
        return tuple(key for key in self.job.keys if key not in self.codes)

    @property
    def broken(self) -> bool:
        """Whether some worker ended other than well while others go on, which can come to nothing any more."""
        return bool(self.at_work) and not all(code in {0, contract.EXIT_MIGRATE} for code in self.codes.values())

    def end(self) -> Ended:
        """Return the end of an attempt that has no process left.

        Raises:
            GangNotJoinedError: its workers have all come to an end, and never met.
        """
        code = verdict(self.codes.values())
        if self.meeting is not None:
            if code == 0 and self.apart:
                raise GangNotJoinedError(_trained_apart(self.job, "all of them have ended"))
            self.meeting.close()
        return Ended(self.job.key, code, self.cpu_seconds, self.asked, self.memory_kills, self.through)

    @property
    def apart(self) -> bool:
        """Whether there are several workers that have not begun to meet."""
        return self.meeting is not None and self.job.size > 1 and self.meeting.empty

    def check_joined(self, now: float, within_s: float) -> None:
        """Refuse workers that run for themselves.

        Raises:
            GangNotJoinedError: none of them has begun to meet the others ``within_s`` seconds after they started.
        """
        if now > self.job.started_at + within_s and self.at_work and self.apart:
            raise GangNotJoinedError(_trained_apart(self.job, f"{within_s:g} seconds have passed"))


class Meeting:
    """The folder in which the workers of one attempt of a gang meet: ``gang/<token>`` in the folder of the trial.

    What attempts before it left is removed.

    Raises:
        OSError: the disk does not let it, or the trial's folder is a link to elsewhere.
    """

    def __init__(self, trial_folder: Path, token: str) -> None:
        self._trial = trial_folder
        self._folder = trial_folder / _MEETINGS / token
        self._remove()
        self._folder.mkdir(parents=True)
        # A worker that makes or removes anything in it sets the time of its change: seen even if nothing is left of it.
        os.utime(self._folder, (0, 0))

    @property
    def empty(self) -> bool:
        """Whether nobody has written anything in it."""
        return self._folder.exists() and self._folder.stat().st_mtime == 0

    def close(self) -> None:
        """Remove it."""
        with suppress(OSError):
            self._remove()

    def _remove(self) -> None:
        with suppress(FileNotFoundError):
            remove_tree(self._trial.parent, (self._trial.name, _MEETINGS))


def verdict(codes: Iterable[int]) -> int:
    """Return the exit code of an attempt from those of its workers, the first to end first.

    It is that of the worker that was lost first. Those that only lost it, or left when asked, decide if there is none.
    """
    kept = list(codes)
    asked_or_left = (contract.EXIT_PEERS_LOST, contract.EXIT_MIGRATE, 0)
    lost = next((code for code in kept if code not in asked_or_left), None)
    return next(code for code in asked_or_left if code in kept) if lost is None else lost


def _trained_apart(job: LocalJob, since: str) -> str:
    return (
        f"trial {job.trial or job.id}: none of its {job.size} workers began to meet the others, and {since}: each "
        f"trains for itself. Its program must join the group of RANK and WORLD_SIZE, as that of mlflow_hooks does; "
        "nothing was written where they meet."
    )
