"""Sweeps of small real processes, run by the real command line against a real MLflow server."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

JOB = Path(__file__).with_name("descending_job.py")
ROOT = Path(__file__).resolve().parents[2]

SWEEP = """
from hera.workflows import Resources, Workflow
from hera_specon import Sweep, choice, every, minimize

with Workflow(generate_name="descent-", entrypoint="descent") as w:
    Sweep(
        name="descent",
        image="python:3.11",
        command=["python", {job!r}, "--cpu-ms={cpu_ms}", "--metric={metric}"],
        space={{"lr": choice(*{rates!r}), "steps": choice(*{steps!r})}},
        search="grid",
        objective=minimize("loss"),
        resources=Resources(cpu_request="50m", memory_request="16Mi"),
        arrivals=every(0.5),
        grace=10,
        {wishes}
    )
"""


@dataclass
class Workbench:
    """A folder of a user, with a sweep in it and the ``specon`` command at hand, and an MLflow where there is one."""

    folder: Path
    tracking_uri: str = ""

    def write(
        self,
        *,
        steps: tuple[int, ...] = (60, 150),
        rates: tuple[float, ...] = (0.01, 0.02, 0.03),
        cpu_ms: float = 8,
        metric: str = "loss",
        wishes: str = "",
    ) -> None:
        """Write ``sweep.py``: a grid of learning rates by ``steps``, a trial every half second."""
        text = SWEEP.format(job=str(JOB), steps=steps, rates=rates, cpu_ms=cpu_ms, metric=metric, wishes=wishes)
        (self.folder / "sweep.py").write_text(text)

    def start(self, *args: str) -> "subprocess.Popen[str]":
        """Start ``specon`` with ``args``, as a user does."""
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        env.pop("MLFLOW_TRACKING_URI", None)
        if self.tracking_uri:
            env["MLFLOW_TRACKING_URI"] = self.tracking_uri
        command = [sys.executable, "-m", "hera_specon.cli", *args]
        return subprocess.Popen(
            command, cwd=self.folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, *args: str, within_s: float = 240) -> "Finished":
        """Run ``specon`` with ``args`` to its end."""
        process = self.start(*args)
        try:
            output, _ = process.communicate(timeout=within_s)
        finally:
            process.kill()
        return Finished(process.returncode, output)

    @property
    def newest_run(self) -> Path:
        """Folder of the newest run."""
        return max((self.folder / ".specon" / "runs").iterdir(), key=lambda path: path.stat().st_mtime)

    @property
    def uid(self) -> str:
        """What stands for the workflow's uid in the newest run, under its first policy."""
        about = json.loads((self.newest_run / "run.json").read_text())
        return f"{about['name']}-{about['uid_suffix']}-00"

    def wait_for(self, condition: Callable[[], bool], within_s: float = 200) -> None:
        """Wait until ``condition`` holds; long where the machine is busy, as a sweep imports much before it trains."""
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.1)

    def steps_journalled(self) -> int:
        """Return how many points all trials have logged so far."""
        return sum(
            len(path.read_bytes().splitlines()) for path in self.folder.glob(".specon/runs/*/*/state/*/points.jsonl")
        )

    def histories(self) -> Mapping[str, list[int]]:
        """Return the steps of the objective in MLflow's own database, by the trial's id, in order of step."""
        with sqlite3.connect(self.folder / ".specon" / "mlflow" / "mlflow.db") as database:
            rows = database.execute(
                "SELECT t.value, m.step FROM metrics m JOIN tags t ON t.run_uuid = m.run_uuid "
                "WHERE t.key = 'specon.trial_id' AND m.key = 'loss' ORDER BY t.value, m.step"
            ).fetchall()
        histories: dict[str, list[int]] = {}
        for trial, step in rows:
            histories.setdefault(trial, []).append(step)
        return histories

    def run_tags(self) -> Mapping[str, Mapping[str, str]]:
        """Return the tags of each trial's run in MLflow's own database."""
        with sqlite3.connect(self.folder / ".specon" / "mlflow" / "mlflow.db") as database:
            rows = database.execute("SELECT run_uuid, key, value FROM tags").fetchall()
        tags: dict[str, dict[str, str]] = {}
        for run, key, value in rows:
            tags.setdefault(run, {})[key] = value
        return {found["specon.trial_id"]: found for found in tags.values() if "specon.trial_id" in found}

    def processes(self) -> list[psutil.Process]:
        """Return every process that has this workbench in its command line, environment or working folder."""
        return [process for process in psutil.process_iter() if _belongs(process, str(self.folder))]


@contextmanager
def opened(folder: Path) -> Iterator[Workbench]:
    """A user's empty folder; whatever still runs there afterwards is ended."""
    bench = Workbench(folder)
    yield bench
    for process in bench.processes():
        if process.pid != os.getpid():
            os.kill(process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Finished:
    """A command that ended."""

    code: int
    output: str


def results(output: Path) -> list[dict[str, Any]]:
    """Return the runs in what ``--json`` wrote."""
    runs: list[dict[str, Any]] = json.loads(output.read_text())["runs"]
    return runs


def assert_whole(histories: Mapping[str, list[int]], lengths: Mapping[int, int]) -> None:
    """Check that each history is 0, 1, 2 … to its end, and that there are as many of each length as there should be."""
    for trial, steps in histories.items():
        assert steps == list(range(len(steps))), f"{trial}: steps missing or doubled"
    assert Counter(len(steps) for steps in histories.values()) == lengths


def _belongs(process: psutil.Process, folder: str) -> bool:
    try:
        return process.cwd().startswith(folder) or any(folder in word for word in process.cmdline())
    except psutil.Error:
        return False
