"""What production code makes threads, locks and waits of, made of steps: stand-ins for modules and for a pool."""

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Self

import pytest

from tests.controllers.worlds.argo.objects import BEGAN
from tests.interleavings.steps import Actor, Steps

_WORLD: Final = "controllers.worlds.argo"
_TRACKING: Final = "controllers.tracking"
_CLUSTER: Final = "controllers.cluster"
_THREADING: Final = (
    f"{_WORLD}.reading.watch",
    f"{_WORLD}.meaning.view",
    f"{_WORLD}.calls.grants",
    f"{_WORLD}.calls.write_queue",
    f"{_WORLD}.writing.state_store",
    f"{_TRACKING}.tags",
    f"{_TRACKING}.background",
    f"{_TRACKING}.mlflow_source",
    f"{_CLUSTER}.sweep_record",
    f"{_CLUSTER}.campaigns",
)
_TIME: Final = (
    f"{_WORLD}.reading.watch",
    f"{_WORLD}.meaning.view",
    f"{_WORLD}.writing.executor",
    f"{_WORLD}.calls.write_queue",
    f"{_WORLD}.writing.writer",
    f"{_WORLD}.world",
    f"{_WORLD}.meaning.looks",
    f"{_WORLD}.meaning.snapshot",
    f"{_WORLD}.reading.workflows",
    f"{_TRACKING}.tag_boards",
    f"{_TRACKING}.tags",
    f"{_TRACKING}.background",
    f"{_CLUSTER}.sweep_record",
    "controllers.driving.clock",
)
_POOL: Final = f"{_WORLD}.calls.write_queue.ThreadPoolExecutor"


def put_in(steps: Steps, patch: pytest.MonkeyPatch) -> None:
    """Have the controller's modules make their threads, locks, waits and times of ``steps``."""
    for module in _THREADING:
        patch.setattr(f"{module}.threading", SteppedThreading(steps))
    for module in _TIME:
        patch.setattr(f"{module}.time", SteppedTime(steps))
    patch.setattr(_POOL, partial(SteppedPool, steps))
    # It spreads the watches over time.
    patch.setattr(f"{_WORLD}.reading.watch.random", steps.chance)


class SteppedThreading:
    """Stands in for the module ``threading``."""

    def __init__(self, steps: Steps) -> None:
        self.Thread = partial(SteppedThread, steps)
        self.Event = partial(SteppedEvent, steps)
        self.Lock = partial(SteppedLock, steps)


class SteppedTime:
    """Stands in for the module ``time``."""

    CLOCK_MONOTONIC = CLOCK_BOOTTIME = 1
    """No machine sleeps here, so that all clocks are the same."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def clock_gettime(self, _: int) -> float:
        """Return seconds that never go back, by any clock."""
        return self._steps.now

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self._steps.now

    def time(self) -> float:
        """Return Unix seconds."""
        return BEGAN + self._steps.now

    def time_ns(self) -> int:
        """Return Unix nanoseconds."""
        return int(self.time() * 1e9)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._steps.pause("sleeps", _never, self._steps.now + seconds)


class SteppedThread:
    """Stands in for ``threading.Thread``."""

    def __init__(
        self, steps: Steps, *, target: Callable[[], object], name: str = "thread", daemon: bool = False
    ) -> None:
        del daemon
        self._steps = steps
        self._target = target
        self._name = name
        self._actor: Actor | None = None

    def start(self) -> None:
        """Begin."""
        self._actor = self._steps.start(self._name, self._target)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end."""
        self._steps.pause(f"waits for {self._name}", self._is_over, _deadline(self._steps, timeout))

    def is_alive(self) -> bool:
        """Return whether it has begun, and not ended."""
        return self._actor is not None and not self._actor.over

    def _is_over(self) -> bool:
        return not self.is_alive()


class SteppedEvent:
    """Stands in for ``threading.Event``."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._is_set = False

    def set(self) -> None:
        """Set it."""
        self._is_set = True

    def clear(self) -> None:
        """Take that back."""
        self._is_set = False

    def is_set(self) -> bool:
        """Return whether it is set."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; return whether it is."""
        self._steps.pause("waits for an event", self.is_set, _deadline(self._steps, timeout))
        return self._is_set


class SteppedLock:
    """Stands in for ``threading.Lock``. To take it is a step: another thread may be first."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._held = False

    def __enter__(self) -> Self:
        self._steps.pause("takes a lock", self._is_free)
        self._held = True
        return self

    def __exit__(self, *_: object) -> None:
        self._held = False

    def _is_free(self) -> bool:
        return not self._held


class Task:
    """Stands in for a ``Future``: work that waits in a pool, is under way, or over."""

    def __init__(self, work: Callable[[], object], waiting: "deque[Task]") -> None:
        self.work = work
        self.begun = self.over = False
        self._waiting = waiting

    def cancel(self) -> bool:
        """Drop it, if it has not begun; return whether it is dropped."""
        if self.begun:
            return False
        if not self.over:
            self.over = True
            self._waiting.remove(self)
        return True


class SteppedPool:
    """Stands in for ``ThreadPoolExecutor``: what came first begins first, so many at a time."""

    def __init__(self, steps: Steps, max_workers: int, thread_name_prefix: str = "pool") -> None:
        self._steps = steps
        self._most = max_workers
        self._name = thread_name_prefix
        self._waiting: deque[Task] = deque()
        self._running = 0

    def submit(self, work: Callable[..., object], *arguments: object) -> Task:
        """Have ``work`` done soon."""
        task = Task(partial(work, *arguments), self._waiting)
        self._waiting.append(task)
        self._steps.start(self._name, partial(self._work_on, task))
        return task

    def shutdown(self, *, cancel_futures: bool = False) -> None:
        """Wait for what is under way."""
        for task in list(self._waiting) if cancel_futures else ():
            task.cancel()
        self._steps.pause(f"waits for {self._name} to end", lambda: not self._running and not self._waiting)

    def _work_on(self, task: Task) -> None:
        self._steps.pause("waits for its turn", lambda: task.over or self._is_next(task))
        if task.over:
            return
        self._waiting.popleft()
        task.begun = True
        self._running += 1
        try:
            task.work()
        finally:
            self._running -= 1
            task.over = True

    def _is_next(self, task: Task) -> bool:
        return self._running < self._most and self._waiting[0] is task


def _deadline(steps: Steps, timeout: float | None) -> float:
    return math.inf if timeout is None else steps.now + timeout


def _never() -> bool:
    return False
