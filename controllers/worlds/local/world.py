"""The local world: nodes are slices of this machine's cores, trials are processes that really train.

It runs the workflow that Hera built step by step, and is the cluster that the engine acts upon.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from controllers.core import labels
from controllers.core.goals import goals_in
from controllers.core.model import (
    ACTION_KINDS,
    Action,
    Direction,
    Migrate,
    Node,
    NodeName,
    Phase,
    Place,
    Resize,
    Sample,
    Stop,
    Suspend,
    Trial,
    TrialId,
)
from controllers.core.parameters import noted, parameters_in
from controllers.core.ports import BUSY, DONE, ComingTrial, Outcome, refused
from controllers.core.results import TrialResult
from controllers.worlds.kube_scheduler import NodeLoad, choose, scores
from controllers.worlds.local.attempts import Attempts, Ended
from controllers.worlds.local.gpus import devices_of
from controllers.worlds.local.jobs import JobLedger, LocalJob
from controllers.worlds.local.workflow import Expansion, Program, StepOutcome, StepStatus
from mlflow_hooks import contract

_SIGNALS = 128
_KILLED = _SIGNALS + 9
_TERMINATED = _SIGNALS + 15
_AT_ONCE_S = 60.0
"""An attempt that fails in fewer seconds, as the one before did and with the same last words, would fail again."""
_LEAVING = frozenset({Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})
_ENDED_WELL = frozenset({Phase.SUCCEEDED, Phase.STOPPED})


@dataclass(frozen=True)
class Machine:
    """The nodes of a run and how first attempts find theirs.

    ``pinned`` names the node of a trial's first attempt (by id without the workflow's uid), so
    that two policies can be compared from the same initial placement. With ``gate_first`` each trial's first attempt
    waits for a ``Place``, as those of a policy that needs it do. ``gpus`` names those of each node.
    """

    nodes: Mapping[str, float]
    memory: float
    seed: int = 0
    pinned: Mapping[str, str] = field(default_factory=dict)
    gate_first: bool = False
    gpus: Mapping[str, Sequence[str]] = field(default_factory=dict)


class LocalWorld:
    """The steps of one workflow run on this machine. ``advance`` moves it on; nothing else waits or blocks."""

    can: frozenset[type[Action]] = frozenset(ACTION_KINDS)

    def __init__(self, program: Program, uid: str, machine: Machine, attempts: Attempts, ledger: JobLedger) -> None:
        self._program = program
        self._uid = uid
        self._machine = machine
        self._attempts = attempts
        self._now = 0.0
        self._planned = [
            ComingTrial(
                TrialId(planned.step.env.get(contract.ENV_TRIAL_ID, "")),
                planned.delay,
                planned.step.cpu,
                devices=devices_of(planned.step.gpus),
            )
            for planned in program.trials()
        ]
        self._jobs = {
            # What ran when the last controller died starts again, on the node where it belongs.
            name: replace(job, phase=Phase.PENDING, target=job.target or job.node, asked_at=None) if job.placed else job
            for name, job in ledger.jobs.items()
        }
        self._delays = dict(ledger.delays)
        self._random = random.Random(machine.seed)  # noqa: S311 - breaks ties between nodes, as kube-scheduler does
        self._expand()

    @property
    def ledger(self) -> JobLedger:
        """What must be kept to go on after the controller was killed."""
        return JobLedger(dict(self._jobs), dict(self._delays))

    @property
    def finished(self) -> bool:
        """Whether the whole workflow is over."""
        return self._expansion.finished and not any(job.placed for job in self._jobs.values())

    @property
    def failed(self) -> bool:
        """Whether the workflow came to a bad end."""
        return self._expansion.failed

    def advance(self, now: float) -> bool:
        """Do what is due: reap, end overdue attempts, submit, place and start.

        Returns:
            Whether any of that changed a step. What ``apply`` changed itself is no news to whoever called it.
        """
        self._now = now
        before = dict(self._jobs)
        for end in self._attempts.ended():
            self._reap(end, now)
        for job in self._jobs.values():
            if job.placed and job.overdue(now):
                self._attempts.kill(job)
        self._expand()
        for delay in self._expansion.delays:
            self._delays.setdefault(delay.id, now + delay.seconds)
        for step in self._expansion.pods:
            if step.id not in self._jobs:
                self._jobs[step.id] = LocalJob(step, now, step.cpu)
        self._start_pending(now)
        return self._jobs != before

    def count_cut(self) -> None:
        """Count the CPU seconds of attempts that were ended because the sweep was interrupted."""
        for end in self._attempts.ended():
            for job in [one for one in self._jobs.values() if one.placed and one.key == end.key]:
                self._jobs[job.id] = replace(job, cpu_seconds=job.cpu_seconds + end.cpu_seconds)

    def trials(self) -> Sequence[Trial]:
        """Return every trial submitted so far."""
        return [self._trial(job) for job in self._jobs.values() if job.trial]

    def to_come(self) -> Sequence[ComingTrial]:
        """Return every trial of the workflow that is known before running and has not been submitted yet."""
        submitted = {job.trial for job in self._jobs.values()}
        return [trial for trial in self._planned if trial.id not in submitted]

    def nodes(self) -> Sequence[Node]:
        """Return the slices of this machine, with the cores busy on each of late."""
        return [self._node(NodeName(name)) for name in self._machine.nodes]

    def trial(self, name: TrialId) -> Trial | None:
        """Return one trial as it is now."""
        job = self._job_of(name)
        return None if job is None else self._trial(job)

    def node(self, name: NodeName) -> Node | None:
        """Return one slice of this machine as it is now."""
        return self._node(name) if name in self._machine.nodes else None

    def apply(self, action: Action) -> Outcome:
        """Take on ``action`` if the trial runs and was not told to leave, or waits for a place that there is."""
        job = self._job_of(action.trial)
        if job is None:
            return refused("there is no such trial")
        match action:
            case Place():
                return self._place(job, action)
            case Stop(why=why) if self._waits(job):
                self._jobs[job.id] = self._over(replace(job, stop=why), Phase.STOPPED, 0, self._now)
                return DONE
            case _ if job.phase in _LEAVING:
                return BUSY
            case _ if job.phase is not Phase.RUNNING:
                return refused("the trial is not running")
            case Resize(cpu=cpu):
                return self._resize(job, cpu)
            case Migrate(node=node):
                return self._migrate(job, node)
            case Suspend():
                return self._ask_to_leave(replace(job, phase=Phase.SUSPENDING))
            case Stop(why=why):
                return self._ask_to_leave(replace(job, phase=Phase.STOPPING, stop=why))
            case _:
                assert_never(action)

    def cores_used(self) -> Mapping[TrialId, float]:
        """Return the cores that each running trial used of late."""
        running = [job for job in self._jobs.values() if job.placed and job.trial]
        return {TrialId(job.trial): self._attempts.cores_used(job, self._now) for job in running}

    def jobs(self) -> Sequence[LocalJob]:
        """Return the records of all steps submitted so far."""
        return list(self._jobs.values())

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each submitted trial's objective."""
        return {
            TrialId(job.trial): job.step.annotations[labels.ANNOTATION_OBJECTIVE]
            for job in self._jobs.values()
            if job.trial
        }

    def results(self, samples: Mapping[TrialId, Sample]) -> Sequence[TrialResult]:
        """Return how each trial went, in the order of submission."""
        jobs = [job for job in self._jobs.values() if job.trial]
        found = [self._result(job, samples.get(TrialId(job.trial))) for job in jobs]
        return sorted(found, key=lambda result: (result.submitted_s, result.id))

    def _result(self, job: LocalJob, sample: Sample | None) -> TrialResult:
        return TrialResult(
            id=self.short(job.trial),
            submitted_s=job.submitted_at,
            completed_s=job.ended_at if job.ended_at is not None else job.submitted_at,
            node=job.node,
            moves=job.moves,
            attempts=job.attempt,
            final_metric=None if sample is None else sample.value,
            succeeded=job.exit_code == 0,
            suspensions=job.suspensions,
            stopped=job.stop if job.phase is Phase.STOPPED else "",
            resizes=job.resizes,
            first_node=job.first_node,
            params=job.params,
            cpu_seconds=round(job.cpu_seconds, 3),
            deadline_s=goals_in(job.step.annotations).deadline_s,
            objective=job.step.annotations[labels.ANNOTATION_OBJECTIVE],
            direction=job.step.annotations[labels.ANNOTATION_DIRECTION],
            sweep=job.step.labels.get(labels.LABEL_SWEEP, ""),
            exit_code=job.exit_code,
            given_up=job.given_up,
        )

    def _job_of(self, trial: TrialId) -> LocalJob | None:
        return next((job for job in self._jobs.values() if job.trial == trial), None)

    def _node(self, name: NodeName) -> Node:
        used = self._attempts.node_cores_used(name, self._now)
        gpus = devices_of(len(self._machine.gpus.get(name, ())))
        return Node(name, self._machine.nodes[name], self._machine.memory, used, devices=gpus)

    def _trial(self, job: LocalJob) -> Trial:
        return Trial(
            id=TrialId(job.trial),
            phase=job.phase,
            cpu=job.cpu,
            base_cpu=job.step.cpu,
            memory=job.step.memory,
            direction=Direction(job.step.annotations[labels.ANNOTATION_DIRECTION]),
            submitted_at=job.submitted_at,
            nodes=(NodeName(job.node),) if job.placed else (),
            attempt=job.attempt,
            moves=job.moves,
            moving_to=NodeName(job.target) if job.phase is Phase.MOVING else None,
            gated=self._waits(job),
            suspensions=job.suspensions,
            devices=devices_of(job.step.gpus),
            goals=goals_in(job.step.annotations).since(job.submitted_at),
            parameters=parameters_in(job.step.environment.get(contract.ENV_PARAMS, "")),
            search=job.step.annotations.get(labels.ANNOTATION_SEARCH, ""),
            sweep=job.step.labels.get(labels.LABEL_SWEEP, ""),
        )

    def _resize(self, job: LocalJob, cpu: float) -> Outcome:
        if self._load(job.node).cpu_requested - job.cpu + cpu > self._machine.nodes[job.node] + 1e-9:
            return refused(f"{cpu:g} cores do not fit on {job.node}")
        # Weights within a node: the neighbours' parts shrink by themselves.
        self._attempts.resize(job, cpu)
        self._jobs[job.id] = replace(job, cpu=cpu, resizes=job.resizes + 1)
        return DONE

    def _waits(self, job: LocalJob) -> bool:
        """Whether it waits for a ``Place``: suspended, or for its first attempt; any other starts by itself."""
        gated = self._machine.gate_first or labels.ANNOTATION_SEARCH in job.step.annotations
        first = gated and bool(job.trial) and not (job.attempt or job.released or job.phase.ended)
        return first or job.phase is Phase.SUSPENDED

    def _place(self, job: LocalJob, place: Place) -> Outcome:
        if not self._waits(job):
            return refused("the trial does not wait for a place")
        if place.node is not None and (why_not := self._unfit(place.node, job)):
            return refused(why_not)
        if place.point:
            annotations = {**job.step.annotations, **noted(place.point)}
            job = replace(job, step=replace(job.step, annotations=annotations))
        # The target is written before the process starts, so that a new controller starts it on the same node.
        self._jobs[job.id] = replace(job, phase=Phase.PENDING, released=True, target=place.node or "")
        return DONE

    def _unfit(self, node: str, job: LocalJob) -> str:
        """Return what speaks against an attempt of ``job`` on ``node``; empty if it fits."""
        if node not in self._machine.nodes:
            return f"there is no node {node}"
        fits = scores(job.step.cpu, job.step.memory, [self._load(node)], pod_devices=devices_of(job.step.gpus))
        return "" if fits else f"{node} has no room for it"

    def _migrate(self, job: LocalJob, node: str) -> Outcome:
        why_not = f"the trial is on {node} already" if node == job.node else self._unfit(node, job)
        if why_not:
            return refused(why_not)
        return self._ask_to_leave(replace(job, phase=Phase.MOVING, target=node))

    def _ask_to_leave(self, job: LocalJob) -> Outcome:
        self._jobs[job.id] = replace(job, asked_at=self._now)
        self._attempts.ask_to_leave(job)
        return DONE

    def _reap(self, end: Ended, now: float) -> None:
        job = next(job for job in self._jobs.values() if job.placed and job.key == end.key)
        job = replace(job, cpu_seconds=job.cpu_seconds + end.cpu_seconds)
        # An attempt that was asked to leave may end by the signal itself, before its hooks listen or after its grace.
        left = end.code == contract.EXIT_MIGRATE or (job.phase in _LEAVING and end.code in {_KILLED, _TERMINATED})
        rule = job.step.retry
        if end.code == 0:
            job = self._over(job, Phase.SUCCEEDED, 0, now)
        elif job.phase is Phase.STOPPING:
            job = self._over(job, Phase.STOPPED, 0, now)
        elif left and job.phase is Phase.SUSPENDING:
            suspensions = job.suspensions + 1
            job = replace(job, phase=Phase.SUSPENDED, asked_at=None, exit_code=end.code, suspensions=suspensions)
        elif left:
            # The target stays: the next attempt starts there.
            job = replace(job, phase=Phase.PENDING, asked_at=None, exit_code=end.code, failure="")
        elif rule is not None and rule.allows(job.attempt, end.code, duration_s=now - job.started_at):
            job = self._again(job, end.code, now + rule.wait_s(job.attempt), now)
        else:
            job = self._over(job, Phase.FAILED, end.code, now)
        self._jobs[job.id] = job

    def _again(self, job: LocalJob, code: int, due: float, now: float) -> LocalJob:
        """Return a job that failed: it waits until ``due`` for another attempt, or gives up on the same error."""
        at_once = job.trial and code < _SIGNALS and now - job.started_at < _AT_ONCE_S
        words = self._attempts.last_words(job) if at_once else ""
        failure = f"{code}: {words}" if words else ""
        if failure and failure == job.failure:
            return self._over(replace(job, given_up=True), Phase.FAILED, code, now)
        waiting = replace(job, phase=Phase.PENDING, target="", asked_at=None, not_before=due, exit_code=code)
        return replace(waiting, failure=failure)

    def _over(self, job: LocalJob, phase: Phase, code: int, now: float) -> LocalJob:
        # Later steps may read what a step printed; what a trial comes to is in MLflow.
        result = None if job.trial else self._attempts.output(job)
        return replace(job, phase=phase, ended_at=now, asked_at=None, target="", exit_code=code, result=result)

    def _expand(self) -> None:
        """Work out anew which steps should exist, from how those before them ended."""
        outcomes = {
            job.id: StepOutcome(
                StepStatus.SUCCEEDED if job.phase in _ENDED_WELL else StepStatus.FAILED, job.result, job.exit_code
            )
            for job in self._jobs.values()
            if job.phase.ended
        }
        over = {name for name, ends in self._delays.items() if ends <= self._now}
        outcomes |= {name: StepOutcome(StepStatus.SUCCEEDED) for name in over}
        running = [job.id for job in self._jobs.values() if not job.phase.ended]
        running += [name for name in self._delays if name not in over]
        self._expansion: Expansion = self._program.expand(outcomes, running)

    def _start_pending(self, now: float) -> None:
        """Start what waits and fits somewhere, in the order of submission."""
        waiting = (job for job in self._jobs.values() if job.phase is Phase.PENDING and not self._waits(job))
        pending = [job for job in waiting if now >= job.not_before]
        for job in sorted(pending, key=lambda job: job.submitted_at):
            node = self._node_for(job)
            if node is not None:
                self._jobs[job.id] = self._started(job, node, now)

    def _node_for(self, job: LocalJob) -> str | None:
        others = [other for other in self._jobs.values() if other.id != job.id]
        loads = [self._load(node, others) for node in self._machine.nodes]
        fits = scores(job.step.cpu, job.step.memory, loads, pod_devices=devices_of(job.step.gpus))
        # The node of the first attempt is pinned so that two policies are compared from the same placement.
        # A trial whose chosen node has filled up meanwhile starts elsewhere rather than not at all.
        wish = job.target or ("" if job.attempt else self._machine.pinned.get(self.short(job.trial), ""))
        if wish in fits:
            return wish
        return choose(fits, self._random.choice) if fits else None

    def _started(self, job: LocalJob, node: str, now: float) -> LocalJob:
        moved = bool(job.target) and job.node not in {"", node}
        new = replace(
            job,
            phase=Phase.RUNNING,
            node=node,
            first_node=job.first_node or node,
            target="",
            attempt=job.attempt + 1,
            moves=job.moves + moved,
            cpu=job.step.cpu,
            started_at=now,
            asked_at=None,
            gpus=self._free_gpus(job, node),
        )
        return replace(new, pid=self._attempts.start(new))

    def _free_gpus(self, job: LocalJob, node: str) -> tuple[str, ...]:
        """Return GPUs for an attempt of ``job`` on ``node``, which has as many that nobody holds."""
        held = {gpu for other in self._jobs.values() if other.placed and other.id != job.id for gpu in other.gpus}
        return tuple(gpu for gpu in self._machine.gpus.get(node, ()) if gpu not in held)[: job.step.gpus]

    def _load(self, node: str, jobs: Sequence[LocalJob] | None = None) -> NodeLoad:
        """Return what is requested of ``node``, counting moves under way at both their ends."""
        on_it = [
            job
            for job in (self._jobs.values() if jobs is None else jobs)
            if (job.placed and job.node == node) or (job.target == node and not job.phase.ended)
        ]
        return NodeLoad(
            node,
            self._machine.nodes[node],
            self._machine.memory,
            sum(job.cpu if job.node == node else job.step.cpu for job in on_it),
            sum(job.step.memory for job in on_it),
            pods_without_memory=sum(not job.step.memory for job in on_it),
            devices_free=devices_of(len(self._machine.gpus.get(node, ())) - sum(job.step.gpus for job in on_it)),
        )

    def short(self, trial: str) -> str:
        """Return the trial's id without the workflow's uid: the same in every run of the sweep."""
        return trial.removeprefix(f"{self._uid}.")
