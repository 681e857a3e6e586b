"""Simulations side by side, and what they cost.

They have a module of their own: a process that is spawned does not import the ``__main__`` of a package, and would not
find there what it shall run.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from benchmarks.train_kais.episodes import Episode


@dataclass
class Simulations:
    """Simulates in the processes of ``pool``, and counts the CPU seconds that they take."""

    pool: Executor
    cpu_s: float = 0.0

    def __call__(self, function: Callable[..., Episode], arguments: Iterable[tuple[Any, ...]]) -> list[Episode]:
        """Return the result of ``function`` for each of ``arguments``."""
        found = [one.result() for one in [self.pool.submit(_timed, function, *given) for given in arguments]]
        self.cpu_s += sum(seconds for _, seconds in found)
        return [episode for episode, _ in found]


def _timed(function: Callable[..., Episode], *given: Any) -> tuple[Episode, float]:  # noqa: ANN401 - whatever it takes
    began = time.process_time()
    return function(*given), time.process_time() - began
