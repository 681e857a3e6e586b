"""Attempts as processes of this machine: started within their share, asked to leave, measured, reaped."""

import math
import os
import re
import sys
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.worlds.local.beginnings import note_beginning
from controllers.worlds.local.endings import is_hooked, owned_by, saved_steps, steps_gained, true_code
from controllers.worlds.local.environment import compose_environment, threads_told
from controllers.worlds.local.gangs import NOT_STARTED, Crew, Ended, Meeting
from controllers.worlds.local.jobs import LocalJob, file_name, write_whole
from controllers.worlds.local.last_words import last_line
from controllers.worlds.local.processes import Exit, Launcher, LaunchError, ProcessMark, ProcessSpec, proctree
from controllers.worlds.local.processes.attempt_tree import AttemptId
from controllers.worlds.local.processes.trees import end_others
from controllers.worlds.local.rates import RateMeter
from controllers.worlds.local.read_programs import local_command
from controllers.worlds.local.shares import Shares, SharesError
from controllers.worlds.local.stand_ins import WORK, output_files, stood_in
from controllers.worlds.local.standing import Standing, standing_of
from controllers.worlds.local.trusted_folders import make_private
from controllers.worlds.local.workflow import PodStep
from controllers.worlds.local.working_folders import Project, read_own, working_folder
from mlflow_hooks import contract
from mlflow_hooks.foreign_files import first_bytes, open_to_append
from mlflow_hooks.no_links import link_in
from mlflow_hooks.presence import presences
from mlflow_hooks.printed.attempt import is_read

_PYTHON: Final = re.compile(r"python[0-9.]*$")
_MOST_OUTPUT: Final = 2**20
"""Bytes of an output parameter, and of what a step printed: a workflow on a cluster takes no more."""
FLUSH_S = "10"
"""Seconds for which a trial that has ended waits for MLflow: the run sends what is left then."""


class Tracking(Protocol):
    """What is known of where trials log to."""

    def environment(self, step: PodStep, attempt: str, *, left: bool) -> Mapping[str, str]:
        """Return the variables that tell an attempt so; ``left`` tells that the one before left with exit code 75."""
        ...

    def hid_a_failure(self, step: PodStep, attempt: str) -> bool:
        """Return whether an attempt that is over is known to have failed, whatever its exit code."""
        ...


@dataclass(frozen=True)
class Surroundings:
    """What every attempt of a run finds around it.

    ``inherited`` is the environment that a step's own comes on top of, ``imposed`` what comes on top
    of both. ``tracking`` knows where trials log to. With ``gives_gpus`` each attempt sees the GPUs that it was given,
    and no others. ``leave_out`` is what no working folder of a trial's own gets: where runs are kept.
    """

    folder: Path
    cwd: Path
    inherited: Mapping[str, str]
    imposed: Mapping[str, str]
    node_cpu: Mapping[str, float]
    tracking: Tracking | None = None
    gives_gpus: bool = False
    leave_out: Path = Path(".specon")

    def working_folder(self, job: LocalJob) -> Path:
        """Return where ``job`` runs: in the user's folder, or in a copy of it that the trial has for all its attempts.

        Raises:
            WorkingFolderError: such a copy cannot be made.
        """
        own = read_own(job.step.annotations.get(labels.ANNOTATION_OWN_FOLDER, "")) if job.trial else None
        if own is None:
            return self.cwd
        return working_folder(Project(self.cwd, self.leave_out, own), self.folder / WORK / file_name(job.trial))

    @property
    def state_root(self) -> Path:
        """Where trials keep checkpoints and unsent metrics."""
        return self.folder / "state"

    def log_of(self, job: LocalJob, rank: int = 0) -> Path:
        """File that takes what the attempts of ``job`` print; each worker of a gang but the first has its own."""
        worker = f".worker-{rank}" if rank else ""
        return self.folder / "logs" / f"{file_name(job.trial or job.id)}{worker}.log"

    def part_of(self, job: LocalJob) -> Path:
        """File that tells the hooks of ``job`` its fair part of the cores."""
        return self.folder / "cpus" / file_name(job.trial or job.id)

    def env_of(  # noqa: PLR0913 - what tells a worker from the others, each named
        self,
        step: PodStep,
        node: str,
        token: str,
        rank: int = 0,
        workers: int = 1,
        *,
        left: bool = False,
        part: float = math.inf,
    ) -> dict[str, str]:
        """Return the environment of the worker ``rank`` of a new attempt of ``step``, on ``node``.

        ``token`` fences: an attempt that finds another's in its run writes no checkpoint. ``left`` tells that the
        attempt before left with exit code 75. ``part`` is its fair part of the node, in cores.
        """
        cpus = cores_at_most(step, self.node_cpu[node])
        ours = {
            contract.ENV_STATE_ROOT: str(self.state_root),
            contract.ENV_ATTEMPT: token,
            contract.ENV_NODE: node,
            contract.ENV_FLUSH: FLUSH_S,
        }
        if step.workers > 1:
            ours |= {contract.ENV_RANK: str(rank), contract.ENV_WORLD_SIZE: str(workers)}
            ours[contract.ENV_WORKERS_MAX] = str(step.workers)
        # The others of a gang log nothing: two that logged into one run would double every step.
        if rank == 0 and self.tracking is not None:
            ours |= self.tracking.environment(step, token, left=left)
        env = compose_environment(self.inherited, step.environment, self.imposed, cpus, part) | ours
        # A workflow's variables hold what a controller, or Kubernetes, fills in.
        empty = {contract.ENV_RUN} if not env.get(contract.ENV_RUN) else set[str]()
        if contract.ENV_TRIAL_ID in env and contract.ENV_RUN_CONTEXT not in ours:
            empty.add(contract.ENV_RUN_CONTEXT)
        return {name: env[name] for name in env if name not in empty}


def cores_at_most(step: PodStep, node_cpu: float) -> float:
    """Return the cores that an attempt of ``step`` may use on a node of so many."""
    return min(node_cpu, step.cpu_limit or node_cpu)


class Attempts:
    """The running attempts of one run, each of one process or of one for each worker of a gang."""

    def __init__(self, shares: Shares, launcher: Launcher, around: Surroundings) -> None:
        self._shares = shares
        self._launcher = launcher
        self._around = around
        self._crews: dict[str, Crew] = {}
        self._meters: dict[str, RateMeter] = {}
        self._parts: dict[str, str] = {}
        make_private(around.folder / "logs")
        make_private(around.state_root)
        for node, cpu in around.node_cpu.items():
            shares.add_node(node, cpu)

    def start(self, job: LocalJob, part: float = math.inf) -> tuple[int, ...]:
        """Start the attempt that ``job`` describes, on ``job.nodes`` with ``job.cpu`` cores each; return its pids.

        ``part`` is the fair part that each worker has of its node, in cores: it computes with as many threads.

        Of a gang all workers start, or those that did are ended again: ``ended`` tells of it as of a failure.

        Raises:
            SpeconError: the only process of a job could not be started, it got no working folder of its own, or its
                state lies behind a link.
        """
        if job.trial and (link := link_in(self._around.state_root / job.trial)) is not None:
            message = f"trial {job.trial}: {link} is a symbolic link, and none is followed there: remove it"
            raise SpeconError(message)
        cwd = self._around.working_folder(job)
        token = uuid.uuid4().hex
        step, name = job.step.attempt(job.attempt - 1, job.exit_code), file_name(job.trial or job.id)
        crew = Crew(job, token, Meeting(self._around.state_root / job.trial, token) if job.gang else None)
        self._crews[job.key] = crew
        self.share(job, part)
        pids: list[int] = []
        for rank, node in enumerate(job.nodes):
            log = self._around.log_of(job, rank)
            # None where the machine's GPUs are nobody's to give: then a program finds those that it finds.
            gpus = job.gpus[rank * step.gpus : (rank + 1) * step.gpus] if self._around.gives_gpus else None
            own = stood_in(step, self._around.folder, name, gpus)
            env = self._around.env_of(own, node, token, rank, job.size, left=job.left, part=part)
            env[contract.ENV_CPUS_FILE] = str(self._around.part_of(job))
            if cwd != self._around.cwd:
                env["PWD"] = str(cwd)
            folder = self._around.state_root / job.trial if job.trial else None
            if folder is not None and not job.left and not is_hooked(folder):
                note_beginning(folder, log)
            command = self._command(job, own)
            spec = ProcessSpec(job.keys[rank], command, env, cwd, log, folder=folder, attempt=token)
            try:
                pids.append(self._start(spec, node, job))
            except (LaunchError, SharesError) as error:
                if not job.gang:
                    raise
                log.write_text(f"worker {rank} of {job.size} was not started: {error}\n", encoding="utf-8")
                crew.codes |= dict.fromkeys(job.keys[rank:], NOT_STARTED)
                self.kill(job)
                break
        return tuple(pids)

    def _start(self, spec: ProcessSpec, node: str, job: LocalJob) -> int:
        # The share is there before the process is, so that not even its imports run outside it.
        join = self._shares.add(spec.key, node, job.cpu)
        try:
            if job.step.memory_limit is not None:
                self._shares.limit_memory(spec.key, job.step.memory_limit)
            pid = self._launcher.start(replace(spec, join=join))
        except LaunchError:
            self._shares.remove(spec.key)
            raise
        self._shares.adopt(spec.key, pid)
        return pid

    def ended(self) -> list[Ended]:
        """Return the attempts that have ended since the last call; nothing of their process trees is left.

        Raises:
            GangNotJoinedError: the workers of one trained each for itself.
        """
        whose = {key: crew for crew in self._crews.values() for key in crew.at_work}
        for end in self._launcher.exits():
            crew = whose[end.key]
            crew.codes[end.key] = self._code(crew, end)
            crew.asked = crew.asked or end.asked
            # Read before the share goes, and with it the counter.
            crew.cpu_seconds += self._shares.used(end.key)
            crew.memory_kills += self._shares.memory_kills(end.key)
            self._shares.remove(end.key)
        over = [crew for crew in self._crews.values() if not crew.at_work]
        for crew in over:
            del self._crews[crew.job.key]
            self._meters.pop(crew.job.key, None)
        return [crew.end() for crew in over]

    def _code(self, crew: Crew, end: Exit) -> int:
        """Return the exit code of the program that trained, whatever has launched it."""
        if not crew.job.trial:
            return end.code
        folder, rank = self._around.state_root / crew.job.trial, crew.job.keys.index(end.key)
        said = next((presence for presence in presences(folder, crew.token) if presence.rank == rank), None)
        hooked = owned_by(folder, crew.token)
        crew.through = crew.through and hooked and said is None and not is_read(folder)
        code = true_code(end, said, hooked=hooked)
        if code == 0 and not hooked and rank == 0 and self._may_hide(crew) and self._around.tracking is not None:
            # Nobody but MLflow may know what became of a program behind a shell or a pipe.
            return int(self._around.tracking.hid_a_failure(crew.job.step, crew.token))
        return code

    @staticmethod
    def _may_hide(crew: Crew) -> bool:
        """Return whether the first process of an attempt need not be the program that trains."""
        words = crew.job.step.command + crew.job.step.args
        return crew.job.step.source is None and not re.match(_PYTHON, Path(words[0] if words else "").name)

    def gained(self, job: LocalJob) -> int:
        """Return how many steps the attempts of ``job`` have come to; 0 where its program tells of none."""
        return steps_gained(self._around.state_root / job.trial) if job.trial else 0

    def has_saved(self, job: LocalJob) -> bool:
        """Return whether a trial has a checkpoint, whole or not."""
        return bool(saved_steps(self._around.state_root / job.trial))

    def standing(self, job: LocalJob) -> Standing:
        """Return where the next attempt of a trial goes on."""
        return standing_of(self._around.state_root / job.trial, left=job.left)

    def begins_again(self, job: LocalJob) -> bool:
        """Return whether the next attempt is known to begin from nothing although one before has trained."""
        return bool(job.trial and job.attempt) and self.standing(job).begins_again

    def broken(self) -> frozenset[str]:
        """Return the keys of the attempts that lost a worker while other workers of theirs still run."""
        return frozenset(key for key, crew in self._crews.items() if crew.broken)

    def check_joined(self, now: float, within_s: float) -> None:
        """Refuse gangs whose workers have not begun to meet in time.

        Raises:
            GangNotJoinedError: those of one have not.
        """
        for crew in self._crews.values():
            crew.check_joined(now, within_s)

    def ask_to_leave(self, job: LocalJob) -> None:
        """Send SIGTERM to every worker: save a checkpoint and exit 75."""
        for key in self._crews[job.key].at_work:
            self._launcher.terminate(key)

    def kill(self, job: LocalJob) -> None:
        """End an attempt that did not leave when asked."""
        for key in self._crews[job.key].at_work:
            self._shares.kill(key)
            self._launcher.kill(key)

    def resize(self, job: LocalJob, cpu: float) -> None:
        """Change the share of each worker of the running attempt to ``cpu`` cores requested."""
        for key in self._crews[job.key].at_work:
            self._shares.resize(key, cpu)

    def threads(self, job: LocalJob, part: float) -> int:
        """Return with how many threads each worker computes, by its environment; 0 where nobody told."""
        around = self._around
        cores = min(cores_at_most(job.step, around.node_cpu[node]) for node in job.nodes)
        return threads_told({**around.inherited, **job.step.environment, **around.imposed}, cores, part)

    def share(self, job: LocalJob, part: float) -> None:
        """Tell the hooks of an attempt, where it has some, the fair part of its node that each worker has, in cores."""
        cores = min(cores_at_most(job.step, self._around.node_cpu[node]) for node in job.nodes)
        text = f"{min(cores, part):g}"
        if self._parts.get(job.id) != text:
            self._parts[job.id] = text
            file = self._around.part_of(job)
            file.parent.mkdir(exist_ok=True)
            write_whole(file, text.encode(), durable=False)

    def cpu_seconds(self, job: LocalJob) -> float:
        """Return the CPU seconds that the attempt has used so far, over all its workers."""
        crew = self._crews[job.key]
        return crew.cpu_seconds + sum(self._shares.used(key) for key in crew.at_work)

    def waited_seconds(self, job: LocalJob) -> float | None:
        """Return for how many seconds threads of the attempt could have run but had no core; None if nobody tells."""
        if not proctree.tells_waiting():
            return None
        return sum(proctree.waiting_seconds(proctree.tree(pid)) for pid in job.pids)

    def memory(self, job: LocalJob) -> float:
        """Return the bytes of memory that the attempt holds now, over all its workers."""
        return sum(self._shares.memory(key) for key in self._crews[job.key].at_work)

    def cores_used(self, job: LocalJob, now: float) -> float:
        """Return the cores that the attempt used of late, over all its workers."""
        return self._meters.setdefault(job.key, RateMeter()).read(now, self.cpu_seconds(job))

    def node_cores_used(self, node: str, now: float) -> float:
        """Return the cores that were busy on ``node`` of late."""
        return self._meters.setdefault(f"/{node}", RateMeter()).read(now, self._shares.node_used(node))

    def output(self, job: LocalJob) -> str:
        """Return what a step that is no trial printed, as its ``outputs.result``: the beginning of it."""
        try:
            return _text_of(self._around.log_of(job)).rstrip("\n")
        except OSError:
            return ""

    def outputs(self, job: LocalJob) -> Mapping[str, str] | None:
        """Return the output parameters of a step that has succeeded, None where it did not write one of them."""
        step, found = job.step, dict[str, str]()
        for name, path in output_files(step, self._around.folder, file_name(job.trial or job.id)).items():
            default = step.outputs[name].default
            try:
                found[name] = _text_of(path).removesuffix("\n")
            except OSError as error:
                if default is None:
                    with suppress(OSError), open_to_append(self._around.log_of(job)) as log:
                        log.write(f"output {name!r} is not there: {error}\n".encode())
                    return None
                found[name] = default
        return found

    def last_words(self, job: LocalJob) -> str:
        """Return the last line that the attempts of ``job`` printed."""
        return last_line(self._around.log_of(job))

    def _command(self, job: LocalJob, step: PodStep) -> tuple[str, ...]:
        command, args = step.words(step.command), step.words(step.args)
        if step.source is None:
            return local_command(command + args, {**os.environ, **step.environment})
        script = self._around.folder / "scripts" / f"{file_name(step.template)}-{file_name(job.trial or job.id)}.py"
        make_private(script.parent)
        script.write_text(step.source, encoding="utf-8")
        return local_command((*(command or (sys.executable,)), str(script), *args), {**os.environ, **step.environment})


def _text_of(path: Path) -> str:
    return first_bytes(path, _MOST_OUTPUT).decode(errors="replace")


def end_leftovers(processes: Iterable[ProcessMark], grace_s: float) -> None:
    """End attempts that a killed controller has left behind: each is asked to leave, and killed after ``grace_s``.

    What cannot be told from another process, as on another machine or after a reboot, is left alone.
    """
    end_others(
        [AttemptId(str(process.pid), process.pid, process.started) for process in processes if process.alive], grace_s
    )
