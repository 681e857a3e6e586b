"""The same configurations in studies of Optuna and of Ray Tune, with their ASHA: as many at a time, on as much CPU.

Nothing of ours runs beside them: no MLflow, no checkpoints, no controller. Each trial reports each step, and ends where
its tool ends it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from benchmarks.best_model.curves import Curve
from benchmarks.best_model.joining import ENV_JOIN
from benchmarks.best_model.notes import SWEEP, read_notes
from benchmarks.payoff.cpu import CpuReading, SpeedProbe
from benchmarks.payoff.plan import Task
from benchmarks.payoff.records import Delivered, Run
from controllers.core.errors import SpeconError
from controllers.core.results import RunResult
from controllers.worlds.local.shares import Shares, choose_shares
from hera_specon.workflow_file import load_workflow


@dataclass(frozen=True)
class Tool:
    """Another tool's ASHA: the module that is its process, and its ``settings``.

    ``processes`` tells whether each trial at a time has a process of its own from us, or the tool starts them itself.
    """

    package: str
    module: str
    processes: bool
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def installed(self) -> bool:
        """Whether it can be run here."""
        return find_spec(self.package) is not None


TOOLS: Final[Mapping[str, Tool]] = {
    "Optuna's ASHA": Tool("optuna", "optuna_process", processes=True),
    "Optuna's ASHA, eta 2, first rung 16 %": Tool(
        "optuna", "optuna_process", processes=True, settings={"min_resource": 10, "reduction_factor": 2}
    ),
    "Optuna's ASHA, eta 2, first rung 8 %": Tool(
        "optuna", "optuna_process", processes=True, settings={"min_resource": 5, "reduction_factor": 2}
    ),
    "Ray Tune's ASHA": Tool("ray", "ray_process", processes=False),
    "Ray Tune's ASHA, eta 2, first rung 16 %": Tool(
        "ray", "ray_process", processes=False, settings={"grace_period": 10, "reduction_factor": 2}
    ),
}
"""By the name of the row; ten steps of sixty are a sixth of a training, five a twelfth."""


@dataclass(frozen=True)
class OtherTools:
    """Makes runs in other tools: ``workers`` trials at a time on ``cores`` cores, kept under ``folder``."""

    sweeps: Mapping[str, Path]
    workers: int
    cores: float
    folder: Path

    def make(self, task: Task) -> tuple[Run, dict[str, Curve]]:
        """Run a study once; return it, and the reports of each trial.

        Raises:
            SpeconError: a process failed.
        """
        began, moment, tool = time.monotonic(), datetime.now(UTC), TOOLS[task.policy]
        state = self.folder / f"{tool.package}-{task.sweep.replace(' ', '-')}-{task.seed}-{moment:%m%dT%H%M%S}"
        state.mkdir(parents=True)
        order = self._order(tool, task)
        if tool.processes:
            optuna.create_study(study_name=SWEEP, storage=JournalStorage(JournalFileBackend(str(state / "journal"))))
        before = CpuReading.now()
        with self._cores() as shares, SpeedProbe() as probe:
            started = time.time()
            self._run(tool, state, order, shares)
            cpu_s = shares.node_used("all")
        seconds, used = time.monotonic() - began, CpuReading.now().since(before)
        trials, curves = read_notes(state, started, order["steps"])
        result = RunResult(task.policy, trials)
        # Ray's processes are no children of ours: the kernel counts what they trained for among the others.
        not_ours = max(0.0, cpu_s - used.ours)
        others = max(0.0, used.others - not_ours)
        rest = (max(0.0, used.ours - cpu_s) / seconds, others / seconds, used.stolen / seconds)
        delivered = Delivered(cpu_s / result.makespan_s, *rest, probe.seconds)
        return Run(task, f"{moment:%F %T}", seconds, result, cpu_s, 1.0, 1.0, delivered), curves

    def _order(self, tool: Tool, task: Task) -> dict[str, Any]:
        """Return what the tool's process is told: the module of the sweep's trials, arguments, hyperparameters."""
        os.environ["SWEEP_SEED"] = str(task.seed)
        manifest = load_workflow(self.sweeps[task.sweep]).manifest
        templates = {template["name"]: template for template in manifest["spec"]["templates"]}
        ((step,),) = templates[SWEEP]["steps"]
        container = templates[f"{SWEEP}-trial"]["container"]
        args = [word for word in container["args"] if "{{" not in word]
        (steps,) = [int(word.removeprefix("--steps=")) for word in args if word.startswith("--steps=")]
        return {
            "job": container["command"][-1],
            "args": args,
            "points": [{name: item[name] for name in item if name != "trial"} for item in step["withItems"]],
            "steps": steps,
            "settings": dict(tool.settings),
            "study": SWEEP,
            "workers": self.workers,
        }

    @contextmanager
    def _cores(self) -> Iterator[Shares]:
        shares = choose_shares(f"best-model-{os.getpid()}")
        try:
            shares.add_node("all", self.cores)
            yield shares
        finally:
            shares.close()

    def _run(self, tool: Tool, state: Path, order: dict[str, Any], shares: Shares) -> None:
        number = self.workers if tool.processes else 1
        command = [sys.executable, "-m", f"benchmarks.best_model.{tool.module}", str(state), json.dumps(order)]
        processes = []
        for name in (f"process-{one}" for one in range(number)):
            join = shares.add(name, "all", self.cores / number)
            processes.append(subprocess.Popen(command, env={**os.environ, ENV_JOIN: json.dumps(join)}))
            shares.adopt(name, processes[-1].pid)
        if failed := [code for one in processes if (code := one.wait())]:
            message = f"a process of {tool.package} ended with {failed[0]}"
            raise SpeconError(message)
