"""What it costs to start an attempt that imports PyTorch and MLflow: forked, and in a fresh interpreter.

    python -m benchmarks.start_of_an_attempt [--attempts 5]

CPU seconds are those of the whole start: the attempt's own and, where it is forked, the fork server's.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from controllers.worlds.local.processes import Launcher, ProcessSpec, proctree
from controllers.worlds.local.processes.warmth import Warmth

_PRELOAD: Final = ("torch", "mlflow")
_PROGRAM: Final = "import torch, mlflow\n"
_Cost = tuple[float, float]


def fresh(folder: Path) -> _Cost:
    """Return CPU and wall-clock seconds of one start in a fresh interpreter."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "program.py"], cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.monotonic() - began


def forked(launcher: Launcher, folder: Path) -> _Cost:
    """Return CPU and wall-clock seconds of one start out of the fork server."""
    server = proctree.children(os.getpid())
    began, before = time.monotonic(), proctree.cpu_seconds(server)
    launcher.start(_spec(folder))
    while not launcher.exits():
        launcher.wait()
    return proctree.cpu_seconds(server) - before, time.monotonic() - began


def _spec(folder: Path) -> ProcessSpec:
    return ProcessSpec("attempt", ("python", "program.py"), dict(os.environ), folder, folder / "log")


def measured(start: Callable[[], _Cost], attempts: int) -> _Cost:
    """Return the means over ``attempts`` starts, after one that warms the file cache."""
    start()
    costs = [start() for _ in range(attempts)]
    return statistics.mean(cpu for cpu, _ in costs), statistics.mean(wall for _, wall in costs)


def main() -> None:
    """Measure both ways and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=5)
    attempts = parser.parse_args().attempts
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(_PROGRAM)
        slow = measured(lambda: fresh(folder), attempts)
        launcher = Launcher([Warmth(dict(os.environ), _PRELOAD)], 1.0, folder / "server.log")
        quick = measured(lambda: forked(launcher, folder), attempts)
        launcher.close(1.0)
    table = Table("start", "CPU s", "wall s", title=f"import torch, mlflow: mean of {attempts}")
    for label, (cpu, wall) in {"fresh interpreter": slow, "forked": quick}.items():
        table.add_row(label, f"{cpu:.3f}", f"{wall:.3f}")
    table.add_row("ratio", f"{slow[0] / quick[0]:.0f}", f"{slow[1] / quick[1]:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
