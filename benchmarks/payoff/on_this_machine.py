"""A run on this machine: ``specon run`` with real training, a real MLflow, and control groups for nodes."""

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.forecasts_for_real import judge
from benchmarks.payoff.bounds import bounds, cpu_used
from benchmarks.payoff.cpu import CpuReading, SpeedProbe
from benchmarks.payoff.plan import Plan, Task
from benchmarks.payoff.records import Delivered, Run
from controllers.core.errors import SpeconError
from hera_specon.records.run_folder import find_run, load_run
from hera_specon.replay.past_sweeps import KnownObjective
from hera_specon.replay.sources import Where, find_past


class ThisMachine:
    """Makes runs of ``plan``; each keeps its record in a folder of its own under ``folder``."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan, self._folder = plan, folder

    def make(self, task: Task) -> Run:
        """Run a sweep once under one policy, with a fresh MLflow.

        Raises:
            SpeconError: it failed, or a trial of it.
        """
        began, moment = time.monotonic(), datetime.now(UTC)
        name = f"{task.sweep}-{task.seed}-{task.policy.partition(':')[0]}-{moment:%m%dT%H%M%S}"
        state_dir = self._folder / name.replace(" ", "-")
        before = CpuReading.now()
        with SpeedProbe() as probe:
            self._specon(task, state_dir)
        seconds, used = time.monotonic() - began, CpuReading.now().since(before)
        folder = find_run(None, state_dir)
        (of_policy,) = load_run(folder).runs
        if (result := of_policy.result) is None:
            message = f"{folder} has ended without a result"
            raise SpeconError(message)
        (past,) = find_past(str(folder), Where(state_dir, None, None, KnownObjective())).sweeps
        cpu_s = sum(map(cpu_used, past.trials))
        rest = (max(0.0, used.ours - cpu_s) / seconds, used.others / seconds, used.stolen / seconds)
        delivered = Delivered(cpu_s / result.makespan_s, *rest, probe.seconds)
        bound, foreseen = bounds(past, self._plan.workers), judge(result, of_policy.forecasts)
        return Run(task, f"{moment:%F %T}", seconds, result, cpu_s, *bound, delivered, foreseen)

    def _specon(self, task: Task, state_dir: Path) -> None:
        state_dir.mkdir(parents=True)
        command = [sys.executable, "-m", "hera_specon.cli", "run", str(self._plan.sweeps[task.sweep]), "--plain"]
        command += ["--policy", task.policy, "--seed", str(task.seed), "--state-dir", str(state_dir)]
        command += ["--nodes", str(self._plan.nodes), "--cpus-per-node", str(self._plan.cores)]
        env = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
        log = state_dir / "specon.log"
        with log.open("w") as out:
            done = subprocess.run(
                command, env={**env, "SWEEP_SEED": str(task.seed)}, stdout=out, stderr=subprocess.STDOUT, check=False
            )
        if done.returncode:
            message = f"specon run ended with {done.returncode}; {log} tells why:\n{log.read_text()[-2000:]}"
            raise SpeconError(message)
