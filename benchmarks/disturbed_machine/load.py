"""Other programs, fixed beforehand: what they do depends on the seconds since they began and on a seed alone.

    python -m benchmarks.disturbed_machine.load {busy,alternating,bursts} [--seed 1]

They run until they are told to end. A process of its own keeps each busy, at the priority of any program.
"""

import argparse
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

BUSY: Final = (20.0, 120.0)
"""From when until when two loops are busy."""
SPELL_S: Final = 15.0
BURST_S: Final = (0.1, 1.5)
PAUSE_S: Final = (0.2, 3.0)
"""A browser's tabs: bursts and pauses last so many seconds."""
TABS: Final = 3

NONE: Final = "none"
"""Nothing runs beside."""

Spells = Iterator[tuple[float, float]]
"""From when until when a process is busy, in seconds since it began."""


def busy(_: random.Random) -> Spells:
    """Yield the one spell of a loop that others run beside the sweep for a while."""
    yield BUSY


def alternating(_: random.Random) -> Spells:
    """Yield spells that last as long as the pauses between them."""
    yield from (((2 * turn + 1) * SPELL_S, (2 * turn + 2) * SPELL_S) for turn in count())


def bursts(chance: random.Random) -> Spells:
    """Yield the spells of a tab of a browser."""
    at = 0.0
    while True:
        at += chance.uniform(*PAUSE_S)
        until = at + chance.uniform(*BURST_S)
        yield at, until
        at = until


LOADS: Final[dict[str, tuple[Callable[[random.Random], Spells], int]]] = {
    "busy": (busy, 2),
    "alternating": (alternating, 2),
    "bursts": (bursts, TABS),
}
"""What each process does, and how many there are, by name."""


@contextmanager
def beside(load: str, seed: int) -> Iterator[None]:
    """Let the programs of ``load`` run meanwhile."""
    if load == NONE:
        yield
        return
    command = [sys.executable, "-m", "benchmarks.disturbed_machine.load", load, "--seed", str(seed)]
    with subprocess.Popen(command, start_new_session=True) as others:
        try:
            yield
        finally:
            os.killpg(others.pid, signal.SIGKILL)  # with its workers, which would go on without it


def _compute(name: str, seed: int, began: float) -> None:
    spells, _ = LOADS[name]
    for since, until in spells(random.Random(seed)):  # noqa: S311 - no secret
        time.sleep(max(0.0, began + since - time.monotonic()))
        while time.monotonic() < began + until:
            sum(range(10_000))


def main() -> None:
    """Be busy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=LOADS)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began, processes = time.monotonic(), LOADS[given.name][1]
    workers = [
        multiprocessing.Process(target=_compute, args=(given.name, given.seed * TABS + place, began), daemon=True)
        for place in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
