"""The invariants of every sweep, with or without faults, checked on every trial and node after each instant."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from controllers.core.devices import NO_DEVICES
from controllers.core.model import Sample, TrialId
from controllers.worlds.simulated.events import ClusterEvent, ClusterEventKind
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.trial_run import Stage, TrialRun
from controllers.worlds.simulated.world import SimulatedWorld
from tests.fault_search.broken import broken
from tests.fault_search.paid_nodes import PaidNodes

_SLACK = 1e-6
_PLACELESS = frozenset({Stage.GATED, Stage.QUEUED, Stage.AWAY, Stage.SUSPENDED})
_TIMED = frozenset({Stage.GATHERING, Stage.STARTING, Stage.RESTORING, Stage.LEAVING, Stage.AWAY})
_COMPUTING = frozenset({Stage.WARMING, Stage.TRAINING})
_TOGETHER = frozenset({Stage.STARTING, Stage.RESTORING, Stage.LEAVING, *_COMPUTING})


@dataclass(slots=True)
class _Past:
    """A trial as it was: ``work`` in lone seconds that grew by ``rate`` each second, and the ``most`` that ever was.

    ``counts`` are its attempts, failures, moves and suspensions, ``lost`` the work that it has lost, and ``clones`` how
    often it went on from another's checkpoint.
    """

    at: float = 0.0
    work: float = 0.0
    rate: float = 0.0
    most: float = 0.0
    counts: tuple[int, int, int, int] = (0, 0, 0, 0)
    ended: bool = False
    lost: float = 0.0
    clones: int = 0


class InvariantChecker:
    """Checks a simulated sweep against the invariants; remembers what it saw, as some are about what came before.

    Args:
        world: the sweep's trials and nodes.
        leaves_begun: how many moves and suspensions of each trial the world has accepted.
    """

    def __init__(self, world: SimulatedWorld, leaves_begun: Mapping[TrialId, int]) -> None:
        cluster = world.cluster
        self._cluster = cluster
        self._paid = PaidNodes(world)
        self._leaves_begun = leaves_begun
        self._past = {trial: _Past() for trial in cluster.runs}
        self._samples: dict[TrialId, Sample] = {}

    def check(self) -> None:
        """Check every trial and node as they are now.

        Raises:
            InvariantError: an invariant does not hold.
        """
        self._paid.check()
        due = {what for _, what in self._cluster.queue.pending}
        for node in self._cluster.nodes.values():
            self._check_capacity(node)
        for run in self._cluster.runs.values():
            past = self._past[run.spec.id]
            if len(run.lineage) != past.clones:
                self._check_clone(run, past)
            past.most = self._most(run)
            training = run.stage is Stage.TRAINING
            past.at, past.work = run.since if training else self._cluster.now, run.work
            past.rate = run.rate if training else 0.0
            if not 0 <= run.saved <= past.most * (1 + _SLACK) + _SLACK:
                broken("checkpoints hold work that was done", f"{run.spec.id}: {run.saved} s saved of {past.most}")
            self._check_counts(run, past)
            self._check_lost(run, past)
            self._check_gang(run)
            if run.stage is not Stage.ENDED:
                self._check_place(run)
                self._check_due(run, due)

    def check_samples(self, samples: Mapping[TrialId, Sample]) -> None:
        """Check what was logged: steps rise, values are the trial's own, and none comes before its work was done."""
        for trial, sample in samples.items():
            before, run = self._samples.get(trial), self._cluster.runs[trial]
            if before is not None and (sample.step, sample.at) < (before.step, before.at):
                broken("steps rise", f"{trial}: step {sample.step} at {sample.at} after {before}")
            if before is not None and sample.step == before.step and sample != before:
                broken("no step is logged twice", f"{trial}: {sample} after {before}")
            if sample == before:
                continue  # Of a trial that goes on from another's checkpoint since, it was of its own work then.
            report = run.spec.reports[sample.step - 1]
            same = report.value == sample.value or (math.isnan(report.value) and math.isnan(sample.value))
            if not same or report.work_s > self._most(run) * (1 + _SLACK) + _SLACK:
                broken("reports are of the trial's own work", f"{trial}: {sample} after {self._most(run)} s of work")
            self._samples[trial] = sample

    def check_the_end(self) -> None:
        """Check that every trial that succeeded and was not stopped has done all its work, and reported all of it."""
        for run in self._cluster.runs.values():
            last = run.log.read(math.inf)
            steps = 0 if last is None else last.step
            if run.succeeded and not run.stopped and (steps != len(run.spec.reports) or run.work != run.spec.work_s):
                broken("who succeeds has done and reported all", f"{run.spec.id}: {steps} steps, {run.work} s of work")
            if not run.succeeded and run.failures < run.spec.retries:
                broken("a trial fails only without retries left", f"{run.spec.id}: {run.failures} failures")

    def check_the_bill(self) -> None:
        """Check that the bill says what the nodes came to, once those have gone that nobody needs any more."""
        self._paid.check_the_bill()

    def _check_clone(self, run: TrialRun, past: _Past) -> None:
        """Check that a trial holds what its parent has saved, and nothing that nobody ever did."""
        name, parent = run.spec.id, self._cluster.runs[run.lineage[-1]]
        if len(run.lineage) != past.clones + 1 or parent is run or parent.spec.sweep != run.spec.sweep:
            broken("clones are made one by one, of others", f"{name}: {run.lineage}, {past.clones} known")
        if run.stage is not Stage.SUSPENDED or run.nodes:
            broken("a trial that becomes a clone holds nothing", f"{name}: {run.stage} on {run.nodes}")
        if run.spec.reports != parent.spec.reports or not 0 < run.saved <= self._most(parent) * (1 + _SLACK) + _SLACK:
            broken("a clone goes on with its parent's work", f"{name}: {run.saved} s of {self._most(parent)}")
        past.clones, past.most, past.work, past.rate = len(run.lineage), run.saved, run.saved, 0.0

    def _check_lost(self, run: TrialRun, past: _Past) -> None:
        """Check that a trial which keeps checkpoints loses no more at a time than since the last one was due."""
        lost, every = run.lost_work - past.lost, run.spec.checkpoint_every_s
        if lost < 0 or (every is not None and lost > every * (1 + _SLACK) + _SLACK):
            broken("a loss costs at most the last checkpoint", f"{run.spec.id}: {lost} s of work, saved each {every}")
        past.lost = run.lost_work

    def _check_capacity(self, node: NodeRun) -> None:
        cpu = max(node.cpu_given, node.cpu_promised)
        memory = sum(run.spec.memory * run.on(node.name) for run in node.runs.values())
        if cpu > node.spec.cpu + _SLACK or memory > node.spec.memory:
            broken("requests fit their node", f"{node.name}: {cpu} of {node.spec.cpu} cores, {memory} bytes")
        held = sum((run.spec.devices * run.on(node.name) for run in node.runs.values()), NO_DEVICES)
        if not held.within(node.spec.devices):
            broken("no device is given twice", f"{node.name}: {held} of {node.spec.devices}")
        used = [run.used.get(node.name, 0.0) if run.spec.gang else run.cores for run in node.runs.values()]
        if sum(used) > node.spec.cpu + _SLACK:
            broken("no core is used twice", f"{node.name}: {used}")
        if node.losses and any(run.rate for run in node.runs.values()):
            broken("nothing runs on a lost node", f"{node.name}: {list(node.runs)}")

    def _check_place(self, run: TrialRun) -> None:
        name = run.spec.id
        places = [node.name for node in self._cluster.nodes.values() if name in node.runs]
        expecting = [node.name for node in self._cluster.nodes.values() if name in node.expected]
        away = run.stage in _PLACELESS or name not in self._cluster.submitted
        if set(places) != (set() if away else set(run.nodes)) or (away and run.nodes):
            broken("a trial is in one place at most", f"{name}: {run.stage} at {run.nodes}, attempts on {places}")
        coming = run.targets and run.stage is not Stage.STARTING
        if set(expecting) != (set(run.targets) if coming else set()):
            broken("a move has one destination", f"{name}: {run.stage} to {run.targets}, expected on {expecting}")

    def _check_gang(self, run: TrialRun) -> None:
        """Check that all workers of a trial are there where any does something, and as many as its author allows."""
        name, spec = run.spec.id, run.spec
        if not spec.min_workers <= run.workers <= spec.max_workers:
            allowed = f"{spec.min_workers} to {spec.max_workers}"
            broken("a gang has as many workers as its author allows", f"{name}: {run.workers} of {allowed}")
        if (run.stage in _TOGETHER or run.rate or run.cores) and len(run.nodes) != run.workers:
            broken("no part of a gang computes", f"{name}: {run.stage} with {len(run.nodes)} of {run.workers} workers")
        if run.stage is Stage.GATHERING and not 0 < len(run.nodes) < run.workers:
            broken("a gang that is whole starts", f"{name}: {len(run.nodes)} of {run.workers} workers are placed")

    def _check_due(self, run: TrialRun, due: set[ClusterEvent]) -> None:
        """Check that every trial waits for something: an event, the scheduler, or (if it is gated) a policy."""
        name, nodes = run.spec.id, [self._cluster.nodes[node] for node in dict.fromkeys(run.nodes)]
        if any(node.losses for node in nodes):
            return
        if name not in self._cluster.submitted:
            if ClusterEvent(ClusterEventKind.ARRIVES, name) not in due:
                broken("no trial is lost", f"{name} never arrives")
        elif run.stage in _TIMED:
            if not any(what.subject == name and what.version == run.version for what in due):
                broken("no trial is lost", f"{name}: nothing ends {run.stage}")
        elif run.stage in _COMPUTING:
            progresses = all(ClusterEvent(ClusterEventKind.PROGRESS, node.name, node.version) in due for node in nodes)
            if not (progresses and run.rate > 0):
                broken("no trial is lost", f"{name}: {run.stage} at rate {run.rate} on {run.nodes}")

    def _most(self, run: TrialRun) -> float:
        """Return the most work that the trial had ever done, in lone seconds, by what was seen of it and its rate."""
        past = self._past[run.spec.id]
        reached = min(run.spec.work_s, past.work + past.rate * (self._cluster.now - past.at))
        return max(past.most, reached, run.work)

    def _check_counts(self, run: TrialRun, past: _Past) -> None:
        name, begun = run.spec.id, self._leaves_begun.get(run.spec.id, 0)
        counts = (run.attempt, run.failures, run.moves, run.suspensions)
        if any(now < before for now, before in zip(counts, past.counts, strict=True)):
            broken("counts never fall", f"{name}: attempt, failures, moves, suspensions {counts} after {past}")
        if run.failures > run.spec.retries:
            broken("retries are kept to", f"{name}: {run.failures} failures, {run.spec.retries} retries")
        if run.attempt > 1 + run.failures + run.unmet + run.evictions + begun or run.moves + run.suspensions > begun:
            broken(
                "every attempt has a cause", f"{name}: attempt, failures, moves, suspensions {counts}, {begun} begun"
            )
        if past.ended and run.stage is not Stage.ENDED:
            broken("what has ended stays so", f"{name}: {run.stage}")
        past.counts = counts
        past.ended = run.stage is Stage.ENDED
