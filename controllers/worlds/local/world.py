"""The local world: nodes are slices of this machine's cores, trials are processes that really train.

It runs the workflow that Hera built step by step, and is the cluster that the engine acts upon.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from controllers.core import labels
from controllers.core.actions import ACTION_KINDS, Action, Clone, Migrate, Place, Resize, Stop, Suspend, why_no_gang
from controllers.core.goals import aims_in
from controllers.core.lineage import MOST_CLONES, clone_annotations
from controllers.core.model import Node, NodeKind, NodeName, Phase, Sample, Trial, TrialId
from controllers.core.parameters import point_annotations
from controllers.core.ports import BUSY, DONE, ComingTrial, Outcome, refused
from controllers.core.results import TrialResult
from controllers.worlds.local.admission import Admission
from controllers.worlds.local.aftermath import ASKED, Aftermath, with_its_end
from controllers.worlds.local.attempts import Attempts
from controllers.worlds.local.due_steps import DueSteps
from controllers.worlds.local.gauge import Gauge, MemoryThere, ThisMachine
from controllers.worlds.local.gpus import devices_of, replicas_of
from controllers.worlds.local.job_book import JobBook
from controllers.worlds.local.jobs import JobLedger, LocalJob
from controllers.worlds.local.processes import ProcessMark
from controllers.worlds.local.room import Machine, Room
from controllers.worlds.local.standing import Standing
from controllers.worlds.local.views import result_of, trial_of
from controllers.worlds.local.workflow import Program
from mlflow_hooks import contract

_LOOK_S = 0.2


class LocalWorld:
    """The steps of one workflow run on this machine. ``advance`` moves it on; nothing else waits or blocks.

    Attributes:
        waits_for_others: tells whether a job that is due must wait for something outside; it is asked again and again.
        newest: returns the newest sample of each trial, where anybody reads their metrics.
    """

    can: frozenset[type[Action]] = frozenset(ACTION_KINDS)

    def __init__(
        self,
        program: Program,
        uid: str,
        machine: Machine,
        attempts: Attempts,
        ledger: JobLedger,
        gauge: Gauge | None = None,
    ) -> None:
        self.waits_for_others: Callable[[LocalJob], bool] = lambda _: False
        self.newest: Callable[[], Mapping[TrialId, Sample]] = dict
        self._uid = uid
        self._machine = machine
        self._attempts = attempts
        self._shared_at: tuple[int, int] = (-1, -1)
        self._now = 0.0
        self._jobs = JobBook({name: job.after_controller_died for name, job in ledger.jobs.items()})
        self._admission = Admission(machine, self._jobs, attempts, gauge or ThisMachine())
        self._aftermath = Aftermath(
            attempts,
            self._admission,
            self._jobs,
            lambda: self.newest(),  # noqa: PLW0108 - it is set later
        )
        self._steps = DueSteps(program, machine, self._jobs, self._admission, ledger.delays)
        self._random = random.Random(machine.seed)  # noqa: S311 - breaks ties between nodes, as kube-scheduler does
        self._shown: dict[str, tuple[LocalJob, Trial]] = {}
        self._listed: tuple[int, Sequence[Trial]] = (-1, ())
        self._objectives: Mapping[TrialId, str] = {}
        self._further: Mapping[TrialId, tuple[str, ...]] = {}
        self._further_of = 0
        self._tried: tuple[object, ...] = ()
        self._try_again_at = math.inf

    @property
    def ledger(self) -> JobLedger:
        """What must be kept to go on after the controller was killed."""
        return JobLedger(self._jobs.all(), self._steps.delays)

    @property
    def finished(self) -> bool:
        """Whether the whole workflow is over."""
        return self._steps.expansion.finished and not self._jobs.placed

    @property
    def changes(self) -> int:
        """A number that grows whenever anything changes of a job."""
        return self._jobs.changes

    @property
    def ends(self) -> int:
        """A number that grows whenever a job comes or ends."""
        return self._jobs.ends

    @property
    def failed(self) -> bool:
        """Whether the workflow came to a bad end."""
        return self._steps.expansion.failed

    @property
    def message(self) -> str:
        """Why it came to a bad end, where it did."""
        return self._steps.expansion.message

    def advance(self, now: float) -> bool:
        """Do what is due: reap, end overdue attempts, submit, place and start.

        Returns:
            Whether any of that changed a step. What ``apply`` changed itself is no news to its caller.

        Raises:
            GangNotJoinedError: the workers of a gang train each for itself.
        """
        self._now = now
        before = self._jobs.changes
        self._end_attempts(now)
        self._steps.take_up(now)
        self._admission.look(now)
        self._start_pending(now)
        self._share_out()
        return self._jobs.changes != before

    def count_cut(self) -> None:
        """Note how attempts ended that had to because the sweep was interrupted, and count their CPU seconds."""
        for end in self._attempts.ended():
            for job in [placed for placed in self._jobs.placed if placed.key == end.key]:
                self._jobs[job.id] = with_its_end(job, end)

    def note_begun_again(self, samples: Mapping[TrialId, Sample]) -> None:
        """Note which trials began again from nothing, as far as what they logged tells."""
        for trial, sample in samples.items():
            job = self._jobs.of_trial(trial) if sample.begun_again else None
            if job is not None and sample.begun_again > job.begun_again:
                self._jobs[job.id] = replace(job, begun_again=sample.begun_again)

    def at_stake(self) -> Mapping[str, str]:
        """Return in words what each running trial would lose if it had to leave now, by their short ids."""
        newest = self.newest()
        told = {}
        for job in (job for job in self._jobs.placed if job.trial):
            sample = newest.get(TrialId(job.trial))
            told[self.short(job.trial)] = self._attempts.standing(job).at_stake(None if sample is None else sample.step)
        return {trial: words for trial, words in told.items() if words}

    def standings(self) -> Mapping[str, Standing]:
        """Return where the trials that have begun and have not ended go on, by their short ids."""
        begun = [job for job in self._jobs.trials() if job.attempt and not job.phase.ended]
        return {self.short(job.trial): self._attempts.standing(job) for job in begun}

    def trials(self) -> Sequence[Trial]:
        """Return every trial submitted so far."""
        changes, listed = self._listed
        if changes != self._jobs.changes:
            listed = [self._trial(job) for job in self._jobs.trials()]
            self._listed = self._jobs.changes, listed
        return listed

    def to_come(self) -> Sequence[ComingTrial]:
        """Return every trial of the workflow that is known before running and has not been submitted yet."""
        return self._steps.to_come()

    def nodes(self) -> Sequence[Node]:
        """Return the slices of this machine, with the cores busy on each of late."""
        return [self._node(NodeName(name)) for name in self._machine.nodes]

    def trial(self, name: TrialId) -> Trial | None:
        """Return one trial as it is now."""
        job = self._jobs.of_trial(name)
        return None if job is None else self._trial(job)

    def kinds(self) -> Sequence[NodeKind]:
        """Return no kind: a machine does not grow."""
        return ()

    def node(self, name: NodeName) -> Node | None:
        """Return one slice of this machine as it is now."""
        return self._node(name) if name in self._machine.nodes else None

    def apply(self, action: Action) -> Outcome:
        """Take on ``action`` if the trial runs and was not told to leave, or waits for what the action is about."""
        job = self._jobs.of_trial(action.trial)
        if job is None:
            return refused("there is no such trial")
        match action:
            case Place():
                return self._place(job, action)
            case Stop(why=why) if self._waits(job) or job.phase is Phase.PENDING:
                self._jobs[job.id] = self._aftermath.over(replace(job, stop=why), Phase.STOPPED, 0, self._now)
                return DONE
            case Clone():
                return self._clone(job, action)
            case _ if job.phase in ASKED or job.asked_at is not None:
                return BUSY
            case _ if job.phase is not Phase.RUNNING:
                return refused("the trial is not running")
            case Resize(cpu=cpu):
                return self._resize(job, cpu)
            case Migrate():
                return self._migrate(job, action)
            case Suspend():
                return self._ask_to_leave(replace(job, phase=Phase.SUSPENDING))
            case Stop(why=why):
                return self._ask_to_leave(replace(job, phase=Phase.STOPPING, stop=why))
            case _:
                assert_never(action)

    @property
    def memory(self) -> MemoryThere:
        """The memory of the machine, as it was last seen."""
        return self._admission.memory

    def cores_used(self) -> Mapping[TrialId, float]:
        """Return the cores that each running trial used of late."""
        running = [job for job in self._jobs.placed if job.trial]
        return {TrialId(job.trial): self._attempts.cores_used(job, self._now) for job in running}

    def jobs(self) -> Sequence[LocalJob]:
        """Return the records of all steps submitted so far."""
        return list(self._jobs.values())

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each submitted trial's objective."""
        # The reader of metrics asks from another thread, and keeps what it was given.
        jobs = self._jobs.trials()
        if len(jobs) != len(self._objectives):
            self._objectives = {TrialId(job.trial): job.step.annotations[labels.ANNOTATION_OBJECTIVE] for job in jobs}
        return self._objectives

    def further_metrics(self) -> Mapping[TrialId, tuple[str, ...]]:
        """Return the metrics of each submitted trial that count beside its objective; see ``objectives``."""
        jobs = self._jobs.trials()
        if len(jobs) != self._further_of:
            known = {TrialId(job.trial): aims_in(job.step.annotations).metrics for job in jobs}
            self._further = {trial: names for trial, names in known.items() if names}
            self._further_of = len(jobs)
        return self._further

    def results(self, samples: Mapping[TrialId, Sample]) -> Sequence[TrialResult]:
        """Return how each trial went, in the order of submission."""
        jobs = self._jobs.trials()
        results = [result_of(job, self.short(job.trial), samples.get(TrialId(job.trial))) for job in jobs]
        return sorted(results, key=lambda result: (result.submitted_s, result.id))

    def _trial(self, job: LocalJob) -> Trial:
        """Return ``job`` as policies see it, the same object as long as the job is the same."""
        of_job, trial = self._shown.get(job.id, (None, None))
        if of_job is not job or trial is None:
            trial = trial_of(job, waits=self._waits(job))
            self._shown[job.id] = job, trial
        return trial

    def _node(self, name: NodeName) -> Node:
        used = self._attempts.node_cores_used(name, self._now)
        gpus = self._machine.gpus.get(name, ())
        return Node(
            name,
            self._machine.nodes[name],
            self._machine.memory,
            used,
            devices=devices_of(len(gpus)),
            room=self._admission.let_in.bounds.get(name),
            replicas=devices_of(times if (times := replicas_of(gpus)) > 1 else 0),
        )

    def _resize(self, job: LocalJob, cpu: float) -> Outcome:
        if why_not := Room(self._machine, self._jobs.holding).why_no_resize(job, cpu):
            return refused(why_not)
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
        trial = self._trial(job)
        nodes = place.nodes
        why_not = (
            why_no_gang(place, trial) or self._room_for(job).why_unfit(job, nodes) or self._admission.why_held_up(job)
        )
        if why_not:
            return refused(why_not)
        if place.point:
            annotations = {**job.step.annotations, **point_annotations(place.point)}
            job = replace(job, step=replace(job.step, annotations=annotations))
        # The targets are written before the process starts, so that a new controller starts it on the same nodes.
        self._jobs[job.id] = replace(
            job, phase=Phase.PENDING, released=True, targets=nodes, workers=len(nodes) or job.workers
        )
        return DONE

    def _clone(self, job: LocalJob, clone: Clone) -> Outcome:
        """Have the next attempt of a suspended trial take over its parent's newest checkpoint, as its hooks do."""
        parent = self._jobs.of_trial(clone.parent)
        if job.phase is not Phase.SUSPENDED:
            return refused("the trial is not suspended")
        if parent is None or parent is job:
            return refused(f"{clone.parent} is no other trial")
        trial = self._trial(job)
        if not trial.search or job.gang:
            return refused("a search must give the trial its hyperparameters, and it must not be a gang")
        if job.step.env_from.get(contract.ENV_LINEAGE) != labels.ANNOTATION_LINEAGE:
            return refused(f"{contract.ENV_LINEAGE} is not among its variables: build the workflow again")
        if len(trial.lineage) >= MOST_CLONES:
            return refused(f"it has gone on from another's checkpoint {MOST_CLONES} times, which is the most")
        if not self._attempts.has_saved(parent):
            return refused(f"{self.short(parent.trial)} has no checkpoint")
        annotations = clone_annotations((*trial.lineage, clone.parent), clone.point)
        step = replace(job.step, annotations={**job.step.annotations, **annotations})
        self._jobs[job.id] = replace(job, step=step)
        return DONE

    def _migrate(self, job: LocalJob, move: Migrate) -> Outcome:
        nodes = move.nodes
        if sorted(nodes) == sorted(job.nodes):
            return refused(f"the trial is on {', '.join(nodes)} already")
        # A move adds nothing to what runs.
        room = Room(self._machine, (other for other in self._jobs.holding if other.id != job.id))
        if why_not := why_no_gang(move, self._trial(job)) or room.why_unfit(job, nodes):
            return refused(why_not)
        return self._ask_to_leave(replace(job, phase=Phase.MOVING, targets=nodes))

    def _room_for(self, job: LocalJob) -> Room:
        """Return what room all other jobs leave."""
        others = (other for other in self._jobs.holding if other.id != job.id)
        return Room(self._machine, others, self._admission.let_in.limits)

    def _share_out(self) -> None:
        """Tell each running attempt its fair part of its node, where that may have changed."""
        if self._shared_at != self._admission.moment:
            self._shared_at = self._admission.moment
            for job, part in self._admission.parts(self._steps.to_run):
                self._attempts.share(job, part)

    def _ask_to_leave(self, job: LocalJob) -> Outcome:
        self._jobs[job.id] = replace(job, asked_at=self._now)
        self._attempts.ask_to_leave(job)
        return DONE

    def _end_attempts(self, now: float) -> None:
        """Take note of attempts that have ended, and end those that must not go on."""
        for end in self._attempts.ended():
            job = next(job for job in self._jobs.placed if job.key == end.key)
            self._jobs[job.id] = self._aftermath.of(job, end, now)
        self._attempts.check_joined(now, self._machine.join_s)
        broken = self._attempts.broken()
        for job in self._jobs.placed:
            if job.overdue(now):
                self._attempts.kill(job)
            elif broken and job.key in broken and job.asked_at is None:
                # The workers that are left would wait for the one that was lost.
                self._ask_to_leave(job)

    def _start_pending(self, now: float) -> None:
        """Start what waits and fits somewhere, in the order of submission."""
        if (self._jobs.changes, self._admission.let_in) == self._tried and now < self._try_again_at:
            return  # There was no room, and none has become free.
        self._try_again_at = math.inf
        lacking: set[tuple[object, ...]] = set()
        for job in self._jobs.pending:
            if self._waits(job):
                continue
            if self.waits_for_others(job):
                self._try_again_at = min(self._try_again_at, now + _LOOK_S)
                continue
            if now < job.not_before:
                self._try_again_at = min(self._try_again_at, job.not_before)
                continue
            # Where one found no room, others that ask for the same find none: thousands may wait.
            wish, step = self._wish(job), job.step
            size = len(job.targets) or job.size
            asked = (step.cpu, step.memory, step.gpus, size, bool(job.targets), job.alone, *wish)
            if asked in lacking:
                continue
            nodes = None if self._admission.why_held_up(job) else self._nodes_for(job, wish)
            if nodes is None:
                lacking.add(asked)
                continue
            self._jobs[job.id] = self._started(job, nodes, now)
            if job.targets:
                lacking.clear()  # what was held for it elsewhere is free
        self._tried = self._jobs.changes, self._admission.let_in

    def _wish(self, job: LocalJob) -> tuple[str, ...]:
        """Return the nodes on which the next attempt of ``job`` shall start if they have room."""
        # The nodes of the first attempt are pinned so that two policies are compared from the same placement.
        pinned = () if job.attempt else tuple(self._machine.pinned.get(self.short(job.trial), ()))
        return job.targets or pinned

    def _nodes_for(self, job: LocalJob, wish: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the nodes for all workers of ``job``, None where they do not all fit."""
        room = self._room_for(job)
        # A trial whose chosen nodes have filled up meanwhile starts elsewhere rather than not at all.
        if wish and not room.why_unfit(job, wish):
            return wish
        return room.places(job, len(job.targets) or job.size, self._random.choice)

    def _started(self, job: LocalJob, nodes: tuple[str, ...], now: float) -> LocalJob:
        moved = bool(job.targets and job.nodes) and sorted(job.nodes) != sorted(nodes)
        new = replace(
            job,
            phase=Phase.RUNNING,
            nodes=nodes,
            first_nodes=job.first_nodes or nodes,
            targets=(),
            workers=len(nodes),
            attempt=job.attempt + 1,
            moves=job.moves + moved,
            scales=job.scales + (bool(job.nodes) and len(nodes) != len(job.nodes)),
            cpu=job.step.cpu,
            started_at=now,
            asked_at=None,
            gpus=self._room_for(job).gpus(job, nodes),
            begun_again=job.begun_again + self._attempts.begins_again(job),
        )
        part = self._admission.part(job, nodes, self._steps.to_run)
        pids, threads = self._attempts.start(new, part), self._attempts.threads(new, part)
        return replace(new, pids=pids, threads=threads, processes=tuple(map(ProcessMark.of, pids)))

    def short(self, trial: str) -> str:
        """Return the trial's id without the workflow's uid: the same in every run of the sweep."""
        return trial.removeprefix(f"{self._uid}.")
