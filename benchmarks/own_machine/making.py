"""How a run is made: the trials of a task, in one tool."""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.disturbed_machine.load import beside
from benchmarks.own_machine.bounds import MemoryBound
from benchmarks.own_machine.runs import Run, Task
from benchmarks.own_machine.stamps import read_stamps
from benchmarks.own_machine.tools import STAMPS, TOOLS, Order
from benchmarks.own_machine.watching import watched
from benchmarks.own_machine.workloads import WORKLOADS
from hera_specon.space import Point, value_text

_ROOT: Final = Path(__file__).parents[2]
_LEAST_S: Final = 600.0
_PATIENCE: Final = 4.0
_ONE_THREAD: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def make(task: Task, folder: Path) -> Run:
    """Run the trials of ``task`` once, in an empty folder below ``folder`` that keeps what came of it.

    A tool that fails, or whose trials do, makes a run that is not complete; its output is in that folder.

    Raises:
        BoundError: The workload needs a bound of memory, and there can be none here.
    """
    workload, cores = WORKLOADS[task.workload].sized(task.sizes), len(os.sched_getaffinity(0))
    place = (folder / f"{task.workload}-{task.seed}-{task.tool}-{datetime.now(UTC):%m%dT%H%M%S%f}").resolve()
    (stamps := place / STAMPS).mkdir(parents=True)
    points = workload.points(task.seed)
    lists = tuple(tuple(f"--{name}={value_text(value)}" for name, value in point.items()) for point in points)
    order = Order(
        *(task.workload, task.sizes, task.seed, cores), lists, (f"--memory={workload.memory}", f"--stamps={stamps}")
    )
    order.write(place)
    command, most, log = list(TOOLS[task.tool].command(order)), workload.bound(cores), place / "output.txt"
    with nullcontext() if most is None else MemoryBound(f"own-machine-{os.getpid()}", most) as bound:
        told = command if bound is None else bound.joined(command)
        with beside(task.beside, task.seed):
            found = watched(told, place, environment(), log, _most_s(points, cores))
    return Run(task, cores, len(points), found, tuple(read_stamps(stamps, found.began)))


def _most_s(points: Sequence[Point], cores: int) -> float:
    """Return after how many seconds a tool has failed: some hang where memory is short, and neither train nor end."""
    return max(_LEAST_S, _PATIENCE * sum(float(point["work"]) for point in points) / cores)


def environment() -> dict[str, str]:
    """Return the environment of every tool: the user's, with one thread for each trial and no MLflow server."""
    unwanted = ("MLFLOW_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    # Trials call `python`: that is the one that runs this, also where its environment is not activated.
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return {**kept, **dict.fromkeys(_ONE_THREAD, "1"), "PATH": path, "PYTHONPATH": str(_ROOT)}
