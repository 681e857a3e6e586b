"""Threads that go on one step at a time, in an order that a seed gives, on a clock of their own.

A thread of this kind is a real one, but it holds still at each pause: before and after each call of a server, at each
lock, and wherever it waits. Between two pauses no other goes on, so that a seed gives the same run again.
"""

import math
import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_STUCK_S: Final = 60.0
"""Seconds of real time after which a thread that neither pauses nor ends is taken for stuck."""
_LAZY: Final = 0.03
"""How much more seldom than others a lazy thread goes on: many a defect needs one that sleeps for long."""
_SHOWN: Final = 120


class Killed(BaseException):
    """The process that the thread is part of was killed. Nothing catches it, and nothing is done after it."""


class StuckError(Exception):
    """A thread waits for something that the steps know nothing of."""


def _always() -> bool:
    return True


@dataclass(eq=False)
class Actor:
    """A thread at its last pause: ``what`` it is about to do, when it is ``ready`` to, and ``until`` when it waits."""

    name: str
    weight: float
    what: str = "begins"
    ready: Callable[[], bool] = _always
    until: float = math.inf
    over: bool = False
    killed: bool = False
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class Steps:
    """All threads of a run, where one goes on at a time, and the time, in seconds since the run began.

    Attributes:
        chance: the run's source of chance.
        trace: the last steps, as people may read them.
        mishaps: errors that ended a thread.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - an order of steps, no secret
        self.now = 0.0
        self.trace: deque[str] = deque(maxlen=_SHOWN)
        self.mishaps: list[str] = []
        self._actors: list[Actor] = []
        self._back = threading.Semaphore(0)
        self._here = threading.local()

    def start(self, name: str, work: Callable[[], object]) -> Actor:
        """Begin a thread that does ``work``; it waits for its first step."""
        parent: Actor | None = getattr(self._here, "actor", None)
        actor = Actor(name, _LAZY if self.chance.random() < 0.2 else 1.0)
        actor.killed = parent is not None and parent.killed
        self._actors.append(actor)
        threading.Thread(target=self._run, args=(actor, work), name=name, daemon=True).start()
        return actor

    def pause(self, what: str, ready: Callable[[], bool] = _always, until: float = math.inf) -> None:
        """Hold still until it is this thread's turn, which comes once it is ``ready`` or ``until`` has come.

        Raises:
            Killed: its process was killed meanwhile.
        """
        actor: Actor | None = getattr(self._here, "actor", None)
        if actor is None:
            if not ready():
                message = f"the test itself would never end: it waits for {what}"
                raise StuckError(message)
            return
        self._check_alive(actor)
        actor.what, actor.ready, actor.until = what, ready, until
        self._back.release()
        actor.baton.acquire()
        self._check_alive(actor)

    def ready(self) -> list[Actor]:
        """Return the threads that can go on."""
        return [actor for actor in self._actors if actor.until <= self.now or actor.ready()]

    def go(self, actor: Actor) -> None:
        """Let a thread go on until its next pause, or its end.

        Raises:
            StuckError: it comes to neither.
        """
        self.trace.append(f"{self.now:8.2f}  {actor.name}: {actor.what}")
        actor.baton.release()
        if not self._back.acquire(timeout=_STUCK_S):
            message = f"{actor.name} neither pauses nor ends after: {actor.what}"
            raise StuckError(message)
        if actor.over:
            self._actors.remove(actor)

    def pass_time(self) -> bool:
        """Let time pass until the next thread has waited long enough; return whether there is one."""
        due = min((actor.until for actor in self._actors if actor.until > self.now), default=math.inf)
        if due == math.inf:
            return False
        self.now = due
        return True

    def kill(self) -> None:
        """End all threads where they are, as a process ends that is killed."""
        for actor in self._actors:
            actor.killed = True
        while self._actors:
            self.go(self._actors[0])

    def _check_alive(self, actor: Actor) -> None:
        if actor.killed:
            raise Killed(actor.what)

    def _run(self, actor: Actor, work: Callable[[], object]) -> None:
        actor.baton.acquire()
        self._here.actor = actor
        try:
            self._check_alive(actor)
            work()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - whatever it is, the run must not wait for this thread
            self.mishaps.append(f"{actor.name}: {error!r}")
        finally:
            actor.over = True
            self._back.release()
