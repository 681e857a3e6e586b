"""Attempts as processes of this machine: started within their share, asked to leave, measured, reaped."""

import sys
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from controllers.worlds.local.jobs import LocalJob, file_name
from controllers.worlds.local.last_words import last_line
from controllers.worlds.local.processes import Launcher, ProcessSpec
from controllers.worlds.local.shares import Shares
from controllers.worlds.local.stand_ins import stood_in
from controllers.worlds.local.workflow import PodStep
from mlflow_hooks import contract

FLUSH_S = "10"
"""Seconds for which a trial that has ended waits for MLflow: the run sends what is left then."""


@dataclass(frozen=True)
class Surroundings:
    """What every attempt of a run finds around it.

    ``inherited`` is the environment that a step's own comes on top of, ``imposed`` what comes on top
    of both; ``parents`` names the MLflow run of each sweep id. ``run_of`` gives that of a trial which is about to
    start, empty where there is none. With ``gives_gpus`` each attempt sees the GPUs that it was given, and no others.
    """

    folder: Path
    cwd: Path
    inherited: Mapping[str, str]
    imposed: Mapping[str, str]
    node_cpu: Mapping[str, float]
    parents: Mapping[str, str]
    run_of: Callable[[PodStep], str] = lambda _: ""
    gives_gpus: bool = False

    @property
    def state_root(self) -> Path:
        """Where trials keep checkpoints and unsent metrics."""
        return self.folder / "state"

    def log_of(self, job: LocalJob) -> Path:
        """File that takes what the attempts of ``job`` print."""
        return self.folder / "logs" / f"{file_name(job.trial or job.id)}.log"

    def env_of(self, step: PodStep, node: str) -> dict[str, str]:
        """Return the environment of a new attempt of ``step`` on ``node``."""
        cpus = min(self.node_cpu[node], step.cpu_limit or self.node_cpu[node])
        ours = {
            contract.ENV_STATE_ROOT: str(self.state_root),
            # Fences: an attempt that finds another's token in its run writes no checkpoint.
            contract.ENV_ATTEMPT: uuid.uuid4().hex,
            contract.ENV_NODE: node,
            contract.ENV_CPUS: f"{cpus:g}",
            contract.ENV_FLUSH: FLUSH_S,
        }
        parent = self.parents.get(step.env.get(contract.ENV_SWEEP_ID, ""))
        if parent:
            ours[contract.ENV_PARENT_RUN_ID] = parent
        if run := self.run_of(step):
            ours[contract.ENV_RUN] = run
        return {**self.inherited, **step.environment, **self.imposed, **ours}


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that is over: its exit code, and the CPU seconds that its process tree used."""

    key: str
    code: int
    cpu_seconds: float


class Attempts:
    """The running attempts of one run."""

    def __init__(self, shares: Shares, launcher: Launcher, around: Surroundings) -> None:
        self._shares = shares
        self._launcher = launcher
        self._around = around
        self._meters: dict[str, RateMeter] = {}
        (around.folder / "logs").mkdir(parents=True, exist_ok=True)
        around.state_root.mkdir(parents=True, exist_ok=True)
        for node, cpu in around.node_cpu.items():
            shares.add_node(node, cpu)

    def start(self, job: LocalJob) -> int:
        """Start the attempt that ``job`` describes, on ``job.node`` with ``job.cpu`` cores; return its pid."""
        # The share is there before the process is, so that not even its imports run outside it.
        join = self._shares.add(job.key, job.node, job.cpu)
        if job.step.memory_limit is not None:
            self._shares.limit_memory(job.key, job.step.memory_limit)
        # None where the machine's GPUs are nobody's to give: then a program finds those that it finds.
        gpus = job.gpus if self._around.gives_gpus else None
        name = file_name(job.trial or job.id)
        step = stood_in(job.step.attempt(job.attempt - 1, job.exit_code), self._around.folder, name, gpus)
        spec = ProcessSpec(
            job.key,
            self._command(job, step),
            self._around.env_of(step, job.node),
            self._around.cwd,
            self._around.log_of(job),
            join,
        )
        pid = self._launcher.start(spec)
        self._shares.adopt(job.key, pid)
        return pid

    def ended(self) -> list[Ended]:
        """Return the attempts that have ended since the last call; nothing of their process trees is left."""
        over: list[Ended] = []
        for end in self._launcher.exits():
            # Read before the share goes, and with it the counter.
            over.append(Ended(end.key, end.code, self._shares.used(end.key)))
            self._shares.remove(end.key)
            self._meters.pop(end.key, None)
        return over

    def ask_to_leave(self, job: LocalJob) -> None:
        """Send SIGTERM: save a checkpoint and exit 75."""
        self._launcher.terminate(job.key)

    def kill(self, job: LocalJob) -> None:
        """End an attempt that did not leave when asked."""
        self._shares.kill(job.key)
        self._launcher.kill(job.key)

    def resize(self, job: LocalJob, cpu: float) -> None:
        """Change the running attempt's share to ``cpu`` cores requested."""
        self._shares.resize(job.key, cpu)

    def cores_used(self, job: LocalJob, now: float) -> float:
        """Return the cores that the attempt used of late."""
        return self._meters.setdefault(job.key, RateMeter()).read(now, self._shares.used(job.key))

    def node_cores_used(self, node: str, now: float) -> float:
        """Return the cores that were busy on ``node`` of late."""
        return self._meters.setdefault(f"/{node}", RateMeter()).read(now, self._shares.node_used(node))

    def output(self, job: LocalJob) -> str:
        """Return what a step that is no trial printed, as its ``outputs.result``."""
        log = self._around.log_of(job)
        return log.read_text(encoding="utf-8", errors="replace").rstrip("\n") if log.exists() else ""

    def last_words(self, job: LocalJob) -> str:
        """Return the last line that the attempts of ``job`` printed."""
        return last_line(self._around.log_of(job))

    def _command(self, job: LocalJob, step: PodStep) -> tuple[str, ...]:
        command, args = step.words(step.command), step.words(step.args)
        if step.source is None:
            return command + args
        script = self._around.folder / "scripts" / f"{file_name(step.template)}-{file_name(job.trial or job.id)}.py"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(step.source, encoding="utf-8")
        return (*(command or (sys.executable,)), str(script), *args)


def kill_leftover(pid: int, started_before: float) -> None:
    """End the process group of an attempt that a killed controller left behind.

    Args:
        pid: the group's leader.
        started_before: Unix seconds; a younger process only has the same number and is spared.
    """
    try:
        leader = psutil.Process(pid)
        if leader.create_time() > started_before:
            return
        for process in [*leader.children(recursive=True), leader]:
            process.kill()
        leader.wait(timeout=5)
    except psutil.Error:
        return


class RateMeter:
    """Turns a growing counter of CPU seconds into cores used, averaged over the last ``window_s`` seconds."""

    def __init__(self, window_s: float = 5.0) -> None:
        self._window_s = window_s
        self._readings: deque[tuple[float, float]] = deque()

    def read(self, now: float, total: float) -> float:
        """Take a reading; return the mean number of cores used over the window, 0 at the first one."""
        self._readings.append((now, total))
        while len(self._readings) > 2 and self._readings[1][0] <= now - self._window_s:  # noqa: PLR2004 - a pair spans the window
            self._readings.popleft()
        since, before = self._readings[0]
        return max(0.0, total - before) / (now - since) if now > since else 0.0
