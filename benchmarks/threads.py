"""What a trial's threads win and cost, by its share of the machine and by how many trials train beside it.

    python -m benchmarks.threads [--job vae-pytorch ...] [--seconds 0.4] [--json FILE]

Trials of the thesis's jobs run on nodes cut out of this machine: 1, 2 or 4 of them on a node, with equal shares. In
every cell they run with 1, 2 and 4 threads in turn, and then in the opposite order, so that whatever else the machine
does falls on all alike. The table shows the seconds and CPU seconds of a step with more threads as multiples of those
with one thread; "noise" is how far the two turns with one thread lay apart. It needs control groups that it may write.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from controllers.worlds.local.processes import Launcher, ProcessSpec
from controllers.worlds.local.processes.preload import Plans
from controllers.worlds.local.processes.warmth import Warmth, most_wanted, warmth_of
from controllers.worlds.local.shares import choose_shares
from mlflow_hooks import contract
from mlflow_hooks.system import cores_here
from workflows.jobs.train import MODELS

_SHORT_STEP: Final = ("--work=4",)
"""A trial with a tenth of a core must make some steps in a turn."""
JOBS: Final = {
    "mnist-pytorch": _SHORT_STEP,
    "vae-pytorch": _SHORT_STEP,
    "gru-pytorch": _SHORT_STEP,
    "mnist-keras": _SHORT_STEP,
    "wide vae-pytorch": ("--work=1", "--hidden=2048", "--batch-size=128"),
}
"""Arguments of each job; the last word of its name is the model."""
THREADS: Final = (1, 2, 4)
_SETTINGS: Final = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
_PARKED: Final = "parked"
_FIRST_STEPS: Final = 3
"""They warm caches, and Keras compiles in them."""
_STARTING_S: Final = 120.0
_SLOW_CORES: Final = 0.3
_SLOW_S: Final = 2.0
"""A node of fewer cores gets its quota once a second: a turn takes two of them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``beside`` trials on one node, each entitled to ``share`` cores."""

    share: float
    beside: int

    @property
    def cores(self) -> float:
        """Cores of the node."""
        return self.share * self.beside

    def key(self, place: int) -> str:
        """Return the name of a trial's share; the first one's is that of the node too."""
        return f"{self.share:g}-by-{self.beside}-{place}"


CELLS: Final = tuple(
    Cell(share, beside)
    for share, counts in {0.1: (1, 4), 0.25: (1, 2, 4), 0.5: (1, 2, 4), 1.0: (1, 2, 4), 2.0: (1, 2)}.items()
    for beside in counts
)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the trials of a cell did together: steps, and the seconds and CPU seconds that these took."""

    steps: int
    seconds: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Row:
    """A job in a cell: seconds and CPU seconds of a step in each turn, by the number of threads."""

    job: str
    share: float
    beside: int
    seconds: dict[int, list[float]]
    cpu_s: dict[int, list[float]]


class Trial:
    """A training process that runs only when it is told to."""

    def __init__(self, launcher: Launcher, folder: Path, job: str, threads: int, place: int) -> None:
        self.name = f"{job.replace(' ', '-')}-{threads}-{place}"
        self._points = folder / self.name / "points.jsonl"
        self._read = self._steps = 0
        own = {contract.ENV_TRIAL_ID: self.name, contract.ENV_STATE_ROOT: str(folder), contract.ENV_OBJECTIVE: "loss"}
        env = {**os.environ, **own, **dict.fromkeys(_SETTINGS, str(threads))}
        command = (*_program(job), "--steps=1000000", *JOBS[job])
        self.log = folder / f"{self.name}.log"
        self.pid = launcher.start(ProcessSpec(self.name, command, env, Path.cwd(), self.log))

    def steps(self) -> int:
        """Return how many steps it has made."""
        if self._points.exists():
            with self._points.open("rb") as points:
                points.seek(self._read)
                data = points.read()
            data = data[: data.rfind(b"\n") + 1]
            self._read += len(data)
            self._steps += data.count(b'"key": "loss"')
        return self._steps

    def signal(self, number: signal.Signals) -> None:
        """Stop it where it is, or let it go on."""
        os.killpg(self.pid, number)


class Stage:
    """The nodes, and a place beside them where trials wait for their turn."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._shares = choose_shares(f"threads-{os.getpid()}")
        self._joins: dict[str, tuple[str, ...]] = {}
        self._shares.add_node(_PARKED, 1.0)
        self._add(_PARKED, _PARKED, 1.0)
        for cell in cells:
            node = cell.key(0)
            self._shares.add_node(node, cell.cores)
            for place in range(cell.beside):
                self._add(cell.key(place), node, cell.share)
        if not self._joins[_PARKED]:
            sys.exit("this needs control groups that it may write")

    def _add(self, key: str, node: str, share: float) -> None:
        self._joins[key] = self._shares.add(key, node, share)

    def close(self) -> None:
        """End what is on it."""
        self._shares.close()

    def turn(self, cell: Cell, trials: Sequence[Trial], seconds: float) -> Turn:
        """Let ``trials`` run on the cell's node for some seconds."""
        keys = [cell.key(place) for place in range(cell.beside)]
        for trial, key in zip(trials, keys, strict=True):
            self._move(trial, key)
            trial.signal(signal.SIGCONT)
        time.sleep(0.1)
        began, steps, cpu = self._reading(trials, keys)
        time.sleep(_SLOW_S if cell.cores < _SLOW_CORES else seconds)
        ended, more_steps, more_cpu = self._reading(trials, keys)
        for trial in trials:
            trial.signal(signal.SIGSTOP)
            self._move(trial, _PARKED)
        return Turn(more_steps - steps, (ended - began) * cell.beside, more_cpu - cpu)

    def _reading(self, trials: Sequence[Trial], keys: Sequence[str]) -> tuple[float, int, float]:
        return time.monotonic(), sum(trial.steps() for trial in trials), sum(map(self._shares.used, keys))

    def _move(self, trial: Trial, key: str) -> None:
        for file in self._joins[key]:
            Path(file).write_text(str(trial.pid), encoding="ascii")
        self._shares.adopt(key, trial.pid)


def _warmth(job: str) -> Warmth | None:
    return warmth_of(Plans(), _program(job), {**os.environ, **dict.fromkeys(_SETTINGS, "1")}, Path.cwd())


def _program(job: str) -> tuple[str, ...]:
    return (sys.executable, "-m", MODELS[job.rsplit(maxsplit=1)[-1]])


def started(launcher: Launcher, folder: Path, job: str) -> dict[int, list[Trial]]:
    """Start trials for the largest cell, with each number of threads; return them stopped in training."""
    trials = {}
    places = range(max(cell.beside for cell in CELLS))
    for threads in THREADS:
        trials[threads] = [Trial(launcher, folder, job, threads, place) for place in places]
        until = time.monotonic() + _STARTING_S
        while any(trial.steps() < _FIRST_STEPS for trial in trials[threads]):
            if time.monotonic() > until or launcher.exits():
                sys.exit(f"{job} does not train:\n{trials[threads][0].log.read_text()[-2000:]}")
            time.sleep(0.02)
        for trial in trials[threads]:
            trial.signal(signal.SIGSTOP)
    return trials


def measured(stage: Stage, cell: Cell, job: str, trials: dict[int, list[Trial]], seconds: float) -> Row:
    """Give the trials of each number of threads two turns in a cell."""
    row = Row(job, cell.share, cell.beside, {count: [] for count in THREADS}, {count: [] for count in THREADS})
    for count in (*THREADS, *reversed(THREADS)):
        turn = stage.turn(cell, trials[count][: cell.beside], seconds)
        row.seconds[count].append(turn.seconds / max(1, turn.steps))
        row.cpu_s[count].append(turn.cpu_s / max(1, turn.steps))
    return row


def table(rows: Sequence[Row]) -> Table:
    """Return a row for each job and cell."""
    more = [count for count in THREADS if count > 1]
    columns = [f"{what}, {count} threads" for what in ("time", "CPU") for count in more]
    drawn = Table("job", "share", "trials", "ms a step", "CPU ms", *columns, "noise")
    for row in rows:
        ratios = [sum(of[count]) / sum(of[1]) for of in (row.seconds, row.cpu_s) for count in more]
        noise = max(max(of[1]) / min(of[1]) - 1 for of in (row.seconds, row.cpu_s))
        one = [f"{sum(of[1]) / len(of[1]) * 1e3:.1f}" for of in (row.seconds, row.cpu_s)]
        drawn.add_row(
            row.job, f"{row.share:g}", str(row.beside), *one, *(f"{ratio:.2f}" for ratio in ratios), f"{noise:.0%}"
        )
    return drawn


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", action="append", choices=JOBS, help="may be repeated")
    parser.add_argument("--seconds", type=float, default=0.4, help="of a turn")
    parser.add_argument("--json", type=Path, help="file for the figures")
    given = parser.parse_args()
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    jobs = given.job or JOBS
    cells = [cell for cell in CELLS if cell.cores <= cores_here()]
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="threads-")))
        progress = stack.enter_context(Progress(transient=True))
        task = progress.add_task("cells", total=len(jobs) * len(cells))
        for job in jobs:
            # One fork server at a time: PyTorch's threads and TensorFlow's do not share a process.
            with ExitStack() as own:
                launcher = Launcher(most_wanted([_warmth(job)]), 1.0, folder / "log")
                own.callback(launcher.close, 0.0)
                stage = Stage(cells)
                own.callback(stage.close)
                trials = started(launcher, folder, job)
                for cell in cells:
                    rows.append(measured(stage, cell, job, trials, given.seconds))
                    progress.advance(task)
    Console(width=150).print(table(rows))
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
