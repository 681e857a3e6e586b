"""A full disk under what a run keeps: its trials train on, and the run waits for room as it waits for MLflow."""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from controllers.core.errors import SpeconError, SweepInterrupted
from controllers.core.ports import StateStore
from controllers.local_run.services import RunServices

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_AGAIN_S: Final = 1.0
_Done = TypeVar("_Done")


def once_there_is_room(write: Callable[[], _Done], services: RunServices) -> _Done:
    """Do what writes to a disk and return what it returns; while the disk is full, do it again and again, and say so.

    Args:
        write: may be done any number of times.
        services: of the run, whose MLflow is kept alive meanwhile.

    Raises:
        SweepInterrupted: it was told to stop while the disk was full.
        OSError: the disk has failed in another way.
    """
    told = False
    while True:
        try:
            done = write()
        except (OSError, SpeconError) as error:
            full = full_disk(error)
            if full is None:
                raise
            if not told:
                services.screen.say(
                    f"the disk is full: {full.filename or full} cannot be written. Trials that run train on, and the "
                    "run waits: make room there, and it goes on (Ctrl-C ends it; the same command goes on)"
                )
            told = True
            services.keep_alive()
            if services.stop.wait(_AGAIN_S):
                message = "interrupted while the disk was full; make room and run the same command again to go on"
                raise SweepInterrupted(message) from error
        else:
            if told:
                services.screen.say("the disk has room again: the run goes on")
            return done


@dataclass(frozen=True, slots=True)
class PatientStore:
    """Keeps an engine's state in another store, once its disk has room."""

    store: StateStore
    services: RunServices

    def load(self) -> str | None:
        """Return the state saved last, None at the first start."""
        return self.store.load()

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep ``state``; see ``once_there_is_room``."""
        once_there_is_room(lambda: self.store.save(state, urgent=urgent), self.services)


def full_disk(error: BaseException) -> OSError | None:
    """Return the error of a full disk that ``error`` is or comes from, None where it is of another kind."""
    found = error if isinstance(error, OSError) else error.__cause__
    return found if isinstance(found, OSError) and found.errno in _FULL else None
