"""Gangs of real workers, forked from a process that has imported their framework, so that they start at once."""

import json
import multiprocessing
import os
import runpy
import sys
import time
import uuid
from dataclasses import dataclass, field
from multiprocessing import forkserver
from pathlib import Path

from tests.mlflow_hooks.hook_jobs import JOBS, job_environment

_FORKING = multiprocessing.get_context("forkserver")
_IMPORTS = {
    "gang": ["torch", "torch._dynamo", "torch.optim", "torch.nn.parallel", "tests.mlflow_hooks.gang_runs"],
    "tensorflow_gang": ["tensorflow", "keras", "tests.mlflow_hooks.gang_runs"],
}
_imported: list[str] = []


@dataclass(frozen=True)
class GangEnded:
    """How the workers of one attempt ended, in the order of their ranks."""

    codes: list[int | None]
    out: list[dict[str, str]]
    err: list[str]


@dataclass
class GangTrial:
    """A trial that attempts of any size train: ``jobs/<job>_job.py``.

    Workers whose rank is in ``absent`` never start; those that are still there after ``within_s`` seconds are killed.
    With ``own_disks`` no worker of any attempt sees what another one has on its disk.
    """

    root: Path
    job: str = "gang"
    trial_id: str = "s.gang"
    max_workers: int = 3
    absent: tuple[int, ...] = ()
    within_s: float = 120.0
    own_disks: bool = False
    more: dict[str, str] = field(default_factory=dict)
    _newest: str = ""

    @property
    def folder(self) -> Path:
        """The trial's folder, as rank 0 of the newest attempt sees it."""
        return self._disk(self._newest, 0) / self.trial_id

    def _disk(self, token: str, rank: int) -> Path:
        return self.root / f"disk-{token}-{rank}" if self.own_disks else self.root

    def attempt(self, workers: int, **more: str) -> GangEnded:
        """Run all workers of an attempt to their end, however it comes."""
        token = self._newest = uuid.uuid4().hex
        logs = {rank: self.root / f"{token}-{rank}" for rank in range(workers) if rank not in self.absent}
        self.root.mkdir(exist_ok=True)
        started = []
        _import_for(self.job)
        for rank, log in logs.items():
            own = {"RANK": str(rank), "WORLD_SIZE": str(workers), "SPECON_WORKERS_MAX": str(self.max_workers)}
            given = {"SPECON_ATTEMPT": token, **own, **self.more, **more}
            environment = job_environment(self.trial_id, self._disk(token, rank), given)
            started.append(_FORKING.Process(target=_work, args=(self.job, environment, str(log))))
        for process in started:
            process.start()
        give_up = time.monotonic() + self.within_s
        for process in started:
            process.join(max(0.0, give_up - time.monotonic()))
            process.kill()
            process.join()
        return GangEnded(
            [process.exitcode for process in started],
            [dict(line.split(" ", 1) for line in _text(log, ".out").splitlines()) for log in logs.values()],
            [_text(log, ".err") for log in logs.values()],
        )

    def history(self, key: str) -> list[tuple[int, float]]:
        lines = [json.loads(line) for line in (self.folder / "points.jsonl").read_text().splitlines()]
        return [(line["step"], line["value"]) for line in lines if line["key"] == key]


def _text(log: Path, end: str) -> str:
    return log.with_suffix(end).read_text()


def _import_for(job: str) -> None:
    if _imported != _IMPORTS[job]:
        forkserver._forkserver._stop()  # type: ignore[attr-defined]  # there is one for all contexts
        _FORKING.set_forkserver_preload(_IMPORTS[job])
        _imported[:] = _IMPORTS[job]


def _work(job: str, environment: dict[str, str], log: str) -> None:
    for number, end in ((1, ".out"), (2, ".err")):
        handle = os.open(log + end, os.O_WRONLY | os.O_CREAT)
        os.dup2(handle, number)
    # Those of the fork server are pipes that nobody reads.
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [f"{job}_job.py"]
    runpy.run_path(str(JOBS / f"{job}_job.py"), run_name="__main__")
    sys.stdout.flush()
