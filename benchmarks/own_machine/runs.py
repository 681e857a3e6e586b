"""The runs that were made, in a file that a later call goes on with."""

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.own_machine.stamps import Trial
from benchmarks.own_machine.watching import Watched
from controllers.worlds.local.jobs import write_whole


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
