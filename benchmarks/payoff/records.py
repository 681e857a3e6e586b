"""The runs that were made, in a file that a later invocation goes on with."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.forecasts_for_real import JudgedRun
from benchmarks.payoff.plan import Task
from controllers.core.results import RunResult
from controllers.worlds.local.jobs import write_whole

_PLAIN: Final = ("began", "seconds", "cpu_s", "makespan_bound_s", "mean_bound_s")
DISTURBED_CORES: Final = 0.1
"""Cores that a run's machine lost to others, from which on the run is made again."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """CPU of one run's machine, in cores on average over the run.

    ``nodes`` is what the nodes used that train; ``services`` what MLflow, controller and report did. ``others`` is what
    ran beside all these, None for both where one cannot be told from the other. ``stolen`` is what the machine's own
    host did not give it. ``probe_s`` is what a fixed piece of work cost meanwhile, in CPU seconds (``SpeedProbe``).
    """

    nodes: float
    services: float | None
    others: float | None
    stolen: float
    probe_s: float

    @property
    def lost(self) -> float:
        """Cores that went to somebody else."""
        return (self.others or 0.0) + self.stolen


@dataclass(frozen=True, slots=True)
class Run:
    """One run, what CPU its trials used, and times in seconds that no schedule of that could beat.

    ``seconds`` is how long it took to make, with all that comes before and after the sweep. ``foreseen`` is how far its
    forecasts could be trusted, None in files from before they were judged.
    """

    task: Task
    began: str
    seconds: float
    result: RunResult
    cpu_s: float
    makespan_bound_s: float
    mean_bound_s: float
    delivered: Delivered
    foreseen: JudgedRun | None = None

    @property
    def disturbed(self) -> bool:
        """Whether others took much of the machine meanwhile."""
        return self.delivered.lost > DISTURBED_CORES

    def to_dict(self) -> dict[str, Any]:
        """Return it for the file."""
        own = {name: getattr(self, name) for name in _PLAIN}
        judged = {} if self.foreseen is None else {"foreseen": asdict(self.foreseen)}
        return {
            **asdict(self.task), **own, "delivered": asdict(self.delivered), **judged, "result": self.result.to_dict()
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Run":
        """Read back what ``to_dict`` returned."""
        return cls(
            task=Task(*(data[name] for name in Task.__slots__)),
            result=RunResult.from_dict(data["result"]),
            delivered=Delivered(**data["delivered"]),
            foreseen=JudgedRun.of(data["foreseen"]) if "foreseen" in data else None,
            **{name: data[name] for name in _PLAIN},
        )


class RunFile:
    """All runs, disturbed ones too, in the order in which they were made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.runs = [Run.from_dict(run) for run in json.loads(path.read_text("utf-8"))] if path.exists() else []

    def append(self, run: Run) -> None:
        """Keep one more."""
        self.runs.append(run)
        write_whole(self._path, json.dumps([run.to_dict() for run in self.runs], indent=1).encode())

    def made(self, task: Task) -> Sequence[Run]:
        """Return how often a run was made."""
        return [run for run in self.runs if run.task == task]

    def done(self, task: Task, most_repeats: int) -> bool:
        """Return whether a run was made undisturbed, or often enough."""
        made = self.made(task)
        return len(made) > most_repeats or any(not run.disturbed for run in made)

    def chosen(self) -> list[Run]:
        """Return each task's run that lost the least to others."""
        return [min(self.made(task), key=lambda run: run.delivered.lost) for task in {run.task: 0 for run in self.runs}]
