"""The runs that were made, in a file that a later call goes on with, and how one is made."""

import json
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.disturbed_machine.load import beside
from benchmarks.own_machine.bounds import MemoryBound
from benchmarks.own_machine.stamps import Trial, read_stamps
from benchmarks.own_machine.tools import OWN, STAMPS, TOOLS, Order
from benchmarks.own_machine.watching import Watched, watched
from benchmarks.own_machine.workloads import WORKLOADS
from controllers.core.errors import SpeconError
from controllers.worlds.local.jobs import write_whole
from hera_specon.space import value_text

_ROOT: Final = Path(__file__).parents[2]
_ONE_THREAD: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Task:
    """One run to make: a workload's trials of ``seed`` in one tool, with the load ``beside`` it."""

    workload: str
    sizes: str
    beside: str
    seed: int
    tool: str


@dataclass(frozen=True, slots=True)
class Run:
    """One run: on how many ``cores``, of how many trials (``wanted``), what was watched, and what the trials noted.

    Times are in seconds since the command began; those of trials are None where none came so far.
    """

    task: Task
    cores: int
    wanted: int
    watched: Watched
    trials: tuple[Trial, ...]

    @property
    def ends(self) -> list[float]:
        """When each trial ended that did."""
        return [trial.ended for trial in self.trials if trial.ended is not None]

    @property
    def complete(self) -> bool:
        """Whether all trials came to their end, and the tool says the same."""
        return len(self.ends) == self.wanted and not self.watched.exit_code

    @property
    def whole(self) -> float:
        """From the command's start to its exit."""
        return self.watched.seconds

    @property
    def makespan(self) -> float | None:
        """From the first trial's start to the last one's end."""
        return max(self.ends) - min(trial.began for trial in self.trials) if self.ends else None

    @property
    def mean_completion(self) -> float | None:
        """When a trial ended in the mean."""
        return statistics.fmean(self.ends) if self.ends else None

    @property
    def first_step(self) -> float | None:
        """When the first step of any trial was made."""
        return min((trial.stepped for trial in self.trials if trial.stepped is not None), default=None)

    @property
    def after_last(self) -> float | None:
        """From the last trial's end to the command's exit."""
        return self.whole - max(self.ends) if self.ends else None

    @property
    def killed(self) -> int:
        """How many attempts of trials were killed."""
        return sum(trial.killed for trial in self.trials)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all attempts that were not killed."""
        return sum(trial.cpu_s for trial in self.trials)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Run":
        """Read back what ``dataclasses.asdict`` made of one."""
        trials = tuple(Trial(**one) for one in data["trials"])
        return cls(Task(**data["task"]), data["cores"], data["wanted"], Watched(**data["watched"]), trials)


class RunFile:
    """All runs, in the order in which they were made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.runs = [Run.from_dict(run) for run in json.loads(path.read_text("utf-8"))] if path.exists() else []

    def append(self, run: Run) -> None:
        """Keep one more."""
        self.runs.append(run)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, json.dumps([asdict(run) for run in self.runs], indent=1).encode())

    def has(self, task: Task) -> bool:
        """Return whether ``task`` was run."""
        return any(run.task == task for run in self.runs)


def tasks(workloads: Sequence[str], tools: Sequence[str], rounds: int, sizes: str, load: str) -> Iterator[Task]:
    """Yield the runs to make, in order.

    In each round of a workload every tool runs once, one after another, and another one begins: what changes on the
    machine meanwhile falls on all of them alike.
    """
    for seed in range(1, rounds + 1):
        for workload in workloads:
            first = seed % len(tools)
            for tool in (*tools[first:], *tools[:first]):
                yield Task(workload, sizes, load, seed, tool)


def make(task: Task, folder: Path) -> Run:
    """Run the trials of ``task`` once, in an empty folder below ``folder`` that keeps what came of it.

    Raises:
        BoundError: The workload needs a bound of memory, and there can be none here.
        SpeconError: No trial noted anything; the message has the end of the command's output.
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
            found = watched(told, place, environment(), log)
    trials = tuple(read_stamps(stamps, found.began))
    if not trials:
        message = f"{task.tool} ended with {found.exit_code} and began no trial of {task.workload}; {log} ends with:\n"
        raise SpeconError(message + log.read_text("utf-8", errors="replace")[-2000:])
    return Run(task, cores, len(points), found, trials)


def environment() -> dict[str, str]:
    """Return the environment of every tool: the user's, with one thread for each trial and no MLflow server."""
    unwanted = ("MLFLOW_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    # Trials call `python`: that is the one that runs this, also where its environment is not activated.
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return {**kept, **dict.fromkeys(_ONE_THREAD, "1"), "PATH": path, "PYTHONPATH": str(_ROOT)}
