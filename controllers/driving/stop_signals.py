"""Signals that end a process become a request that it can meet in its own time; it is heard at once, whatever waits."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from types import FrameType
from typing import Final, TypeVar

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM)
_LOOK_S: Final = 0.1
_TELL_AFTER_S: Final = 1.0
"""Seconds after which what goes on in spite of a request is told: with a look's length, well within two."""
STILL_ENDING: Final = "interrupted: what runs is asked to save, and may take half a minute (once more ends it at once)"
"""What a person is told then."""
_Done = TypeVar("_Done")


@dataclass(slots=True)
class _Ears:
    """Hears signals in the main thread for work that goes on in another.

    Attributes:
        stop: the request, where the work can meet one now; else a signal ends the process as it does without this.
    """

    stop: threading.Event | None = None
    since: float | None = field(default=None, init=False)

    def hear(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal: the second one ends the process at once."""
        signal.signal(number, signal.SIG_DFL)
        if self.stop is not None:
            self.since = time.monotonic()
            self.stop.set()
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            os.kill(os.getpid(), number)


_EARS: ContextVar[_Ears | None] = ContextVar("_EARS", default=None)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C or SIGTERM into a request to stop; the second one ends the process at once.

    In a thread that is not the main one nothing is requested, as signals belong to the main thread and what it runs;
    unless that thread hears them for this one, see ``heard_while``.
    """
    stop, ears = threading.Event(), _EARS.get()
    if threading.current_thread() is not threading.main_thread():
        if ears is not None:
            ears.stop = stop
        try:
            yield stop
        finally:
            if ears is not None:
                ears.stop = None
        return
    with _heard_by(_Ears(stop)):
        yield stop


def heard_while(work: Callable[[], _Done], tell: Callable[[], None]) -> _Done:
    """Do ``work`` and return what it returns; Ctrl-C and SIGTERM are heard at once, whatever it waits for.

    In the main thread, work that waits for a disk or in a library keeps Python from calling what handles a signal. So
    it is done on another, and ``stop_on_signals`` in it is asked by this one.

    Args:
        work: it may enter ``stop_on_signals``; before and after, a signal ends the process as it does without this.
        tell: called once, where ``work`` has been asked to stop and still goes on a second later.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    ears, done = _Ears(), Future[_Done]()
    context = copy_context()
    context.run(_EARS.set, ears)
    thread = threading.Thread(target=in_future, args=(lambda: context.run(work), done), name="heard", daemon=True)
    with _heard_by(ears):
        thread.start()
        told = False
        while thread.is_alive():
            thread.join(_LOOK_S)
            if not told and ears.since is not None and time.monotonic() > ears.since + _TELL_AFTER_S:
                told = True
                tell()
    return done.result()


def waited(wait: Callable[[float], bool], within_s: float, stopped: Callable[[], bool]) -> bool:
    """Wait for something, and no longer once ``stopped``; return whether it came.

    Args:
        wait: waits for so many seconds, and returns whether it came.
        within_s: seconds after which it is waited for no longer.
        stopped: whether nobody waits any more.
    """
    until = time.monotonic() + within_s
    while not (came := wait(max(0.0, min(_LOOK_S, until - time.monotonic())))):
        if stopped() or time.monotonic() >= until:
            break
    return came


def in_future(work: Callable[[], _Done], done: "Future[_Done]") -> None:
    """Do ``work``, and leave what comes of it in ``done``."""
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
        done.set_exception(error)


@contextmanager
def _heard_by(ears: _Ears) -> Iterator[None]:
    kept = {number: signal.signal(number, ears.hear) for number in _NUMBERS}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
