"""The same configurations in a study of Optuna's own, with its ASHA: as many processes, on as much CPU, as ours.

Nothing of ours runs beside them: no MLflow, no checkpoints, no controller. Each process asks the study for a
configuration, trains it, reports each step, and ends where Optuna prunes.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from benchmarks.best_model.curves import Curve
from benchmarks.payoff.cpu import CpuReading, SpeedProbe
from benchmarks.payoff.plan import Task
from benchmarks.payoff.records import Delivered, Run
from controllers.core.errors import SpeconError
from controllers.core.results import RunResult, TrialResult
from controllers.worlds.local.shares import choose_shares
from hera_specon.workflow_file import load_workflow

PRUNERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Optuna's ASHA": {},
    "Optuna's ASHA, eta 2, first rung 16 %": {"min_resource": 10, "reduction_factor": 2},
}
"""Settings of its ``SuccessiveHalvingPruner`` by the name of the row; ten steps are a sixth of a training."""
_NAME: Final = "best-model"


@dataclass(frozen=True)
class OptunaStudy:
    """Makes runs in a study of Optuna's: ``workers`` at a time on ``cores`` cores, kept under ``folder``."""

    sweep: Path
    workers: int
    cores: float
    folder: Path

    def make(self, task: Task) -> tuple[Run, dict[str, Curve]]:
        """Run a study once; return it, and the reports of each trial.

        Raises:
            SpeconError: a process failed.
        """
        began, moment = time.monotonic(), datetime.now(UTC)
        state = self.folder / f"optuna-{task.seed}-{moment:%m%dT%H%M%S}"
        state.mkdir(parents=True)
        args, points = _configurations(self.sweep, task.seed)
        optuna.create_study(study_name=_NAME, storage=JournalStorage(JournalFileBackend(str(state / "journal"))))
        before = CpuReading.now()
        shares = choose_shares(f"optuna-{os.getpid()}")
        try:
            shares.add_node("all", self.cores)
            with SpeedProbe() as probe:
                started = time.time()
                order = json.dumps({"args": args, "points": points, "pruner": PRUNERS[task.policy]})
                command = [sys.executable, "-m", "benchmarks.best_model.optuna_worker", str(state), order]
                workers = []
                for number in range(self.workers):
                    join = shares.add(f"worker-{number}", "all", self.cores / self.workers)
                    workers.append(subprocess.Popen(command, env={**os.environ, "JOIN": json.dumps(join)}))
                    shares.adopt(f"worker-{number}", workers[-1].pid)
                if failed := [code for worker in workers if (code := worker.wait())]:
                    message = f"a process of the study ended with {failed[0]}"
                    raise SpeconError(message)
            cpu_s = shares.node_used("all")
        finally:
            shares.close()
        seconds, used = time.monotonic() - began, CpuReading.now().since(before)
        trials, curves = _read(state, started)
        result = RunResult(task.policy, trials)
        rest = (max(0.0, used.ours - cpu_s) / seconds, used.others / seconds, used.stolen / seconds)
        delivered = Delivered(cpu_s / result.makespan_s, *rest, probe.seconds)
        return Run(task, f"{moment:%F %T}", seconds, result, cpu_s, 1.0, 1.0, delivered), curves


def _configurations(sweep: Path, seed: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the fixed arguments of a sweep's trials, and the hyperparameters of each."""
    os.environ["SWEEP_SEED"] = str(seed)
    manifest = load_workflow(sweep).manifest
    templates = {template["name"]: template for template in manifest["spec"]["templates"]}
    ((step,),) = templates[_NAME]["steps"]
    args = templates[f"{_NAME}-trial"]["container"]["args"]
    return [word for word in args if "{{" not in word], [item["params"] for item in step["withItems"]]


def _read(folder: Path, started: float) -> tuple[tuple[TrialResult, ...], dict[str, Curve]]:
    """Return how the trials went, and their reports; seconds since ``started``."""
    curves: dict[str, Curve] = {}
    results = []
    for path in sorted(folder.glob("trial-*.jsonl")):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        name = f"{_NAME}.t{lines[0]['number']:03}"
        reports = [(line["at"] - started, line["value"]) for line in lines if "value" in line]
        curves[name] = reports
        ended = lines[-1]
        results.append(
            TrialResult(
                *(name, 0.0, ended["at"] - started, "all", 0, 1),
                final_metric=reports[-1][1] if reports else None,
                stopped="pruned" if ended["pruned"] else "",
            )
        )
    return tuple(sorted(results, key=lambda one: one.id)), curves
