"""The simulated world and what else an engine needs beside it: metrics and a state store, all in virtual time."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop
from typing import assert_never

from controllers.core.actions import ACTION_KINDS, Action, Clone, Migrate, Place, Resize, Stop, Suspend, why_no_gang
from controllers.core.lineage import MOST_CLONES
from controllers.core.model import Node, NodeKind, NodeName, Phase, Sample, Trial, TrialId
from controllers.core.parameters import bound_parameters
from controllers.core.ports import BUSY, DONE, ComingTrial, Outcome, refused
from controllers.core.results import TrialResult
from controllers.worlds.simulated.cluster import SimulatedCluster
from controllers.worlds.simulated.fault_injection import crash, timed_effects
from controllers.worlds.simulated.faults import SpotLoss, WorldFault
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.spot import SpotProvider
from controllers.worlds.simulated.trial_run import WAITING, Stage, TrialRun
from controllers.worlds.simulated.workload import Surrogate, following

_LEAVING = frozenset({Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})


class SimulatedWorld:
    """The trials and nodes of a scenario; ``advance`` moves them on.

    Args:
        scenario: what is simulated.
        gated: whether first attempts wait for a ``Place``, as those of a policy that needs it do.
        faults: what goes wrong.
        surrogate: how trials train with what a search gives them; without one, as they would have anyway.

    Raises:
        WorkloadError: a trial fits on no node, even an empty one.
    """

    can: frozenset[type[Action]] = frozenset(ACTION_KINDS)

    def __init__(
        self,
        scenario: Scenario,
        *,
        gated: bool = False,
        faults: Sequence[WorldFault] = (),
        surrogate: Surrogate | None = None,
    ) -> None:
        self._surrogate = surrogate
        self._cluster = SimulatedCluster(scenario, gated=gated, faults=faults)
        self._shown: dict[TrialId, Trial] = {}
        self.provider: SpotProvider | None = None
        """Adds and takes nodes; None where the nodes are always the same."""
        if scenario.workload.groups:
            losses = [fault for fault in faults if isinstance(fault, SpotLoss)]
            self.provider = SpotProvider(self._cluster, scenario.workload, scenario.seed, losses)
        for at, effect in timed_effects(self._cluster, faults):
            self._cluster.call_at(at, effect)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self._cluster.now

    @property
    def next_at(self) -> float:
        """When something is due next, in seconds; infinite where nothing is."""
        return self._cluster.queue.next_at

    @property
    def events(self) -> int:
        """How many events there were."""
        return self._cluster.events

    @property
    def finished(self) -> bool:
        """Whether every trial has ended."""
        return self._cluster.unended == 0

    @property
    def shrinks(self) -> bool:
        """Whether nodes will go that nobody needs any more."""
        return self.provider is not None and self.provider.autoscaler.shrinks

    @property
    def failed(self) -> bool:
        """Whether any trial failed."""
        return any(run.ended_at is not None and not run.succeeded for run in self._cluster.runs.values())

    @property
    def cluster(self) -> SimulatedCluster:
        """Its trials and nodes with all their state, for checks that nothing impossible happens."""
        return self._cluster

    @property
    def runs(self) -> Sequence[TrialRun]:
        """Every trial, those that have not been submitted yet included."""
        return list(self._cluster.runs.values())

    def advance(self, now: float) -> bool:
        """Let everything happen that is due until ``now``; return whether anything has changed since the last call."""
        self._cluster.advance(now)
        changed, self._cluster.changed = self._cluster.changed, False
        return changed

    def trials(self) -> Sequence[Trial]:
        """Return every trial submitted so far."""
        unseen, submitted = self._cluster.unseen, self._cluster.submitted
        self._shown.update((name, run.shown()) for name, run in unseen.items() if name in submitted)
        unseen.clear()
        return list(self._shown.values())

    def to_come(self) -> Sequence[ComingTrial]:
        """Return every trial that has not been submitted yet."""
        cluster = self._cluster
        return [
            ComingTrial(
                name,
                run.spec.submitted_at,
                run.spec.cpu * run.workers,
                run.spec.memory * run.workers,
                run.spec.devices * run.workers,
            )
            for name, run in cluster.runs.items()
            if name not in cluster.submitted
        ]

    def nodes(self) -> Sequence[Node]:
        """Return every node, with the cores busy on it now."""
        return [node.shown() for node in self._cluster.nodes.values()]

    def trial(self, name: TrialId) -> Trial | None:
        """Return one trial as it is now."""
        run = self._cluster.submitted.get(name)
        return None if run is None else run.shown()

    def kinds(self) -> Sequence[NodeKind]:
        """Return the groups of nodes that the autoscaler can add."""
        return () if self.provider is None else self.provider.autoscaler.kinds()

    def node(self, name: NodeName) -> Node | None:
        """Return one node as it is now."""
        node = self._cluster.nodes.get(name)
        return None if node is None else node.shown()

    def apply(self, action: Action) -> Outcome:
        """Take on ``action`` if the trial and its node allow it."""
        run = self._cluster.submitted.get(action.trial)
        outcome = refused("there is no such trial") if run is None else self._begin(run, action)
        self._cluster.place_and_share()
        return outcome

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each submitted trial's objective: it has none of its own here."""
        return dict.fromkeys(self._cluster.submitted, "objective")

    def further_metrics(self) -> Mapping[TrialId, tuple[str, ...]]:
        """Return nothing: simulated trials report one metric."""
        return {}

    def short(self, trial: str) -> str:
        """Return the trial's id: it is the same in every run."""
        return trial

    def results(self, samples: Mapping[TrialId, Sample]) -> Sequence[TrialResult]:
        """Return how each trial went; one that was never submitted, or has not ended, took no time."""
        results = [_result(run, samples.get(run.spec.id)) for run in self._cluster.runs.values()]
        return sorted(results, key=lambda result: (result.submitted_s, result.id))

    def fail(self, trial: TrialId) -> None:
        """End a trial's present attempt, if there is one, as a crash or kill does."""
        crash(self._cluster, trial)
        self._cluster.place_and_share()

    def _begin(self, run: TrialRun, action: Action) -> Outcome:
        match action:
            case Place():
                return self._place(run, action)
            case Stop(why=why) if run.stage in WAITING or (run.stage is Stage.QUEUED and run.phase is Phase.PENDING):
                self._cluster.stop(run, why)
                return DONE
            case Clone(parent=parent):
                return self._clone(run, action, self._cluster.submitted.get(parent))
            case _ if run.phase in _LEAVING or run.wanted_cpu is not None:
                return BUSY
            case _ if run.node is None or run.phase is not Phase.RUNNING:
                return refused("the trial is not running")
            case Resize(cpu=cpu):
                return self._resize(run, cpu)
            case Migrate():
                return self._migrate(run, action)
            case Suspend():
                self._cluster.suspend(run)
                return DONE
            case Stop(why=why):
                self._cluster.stop(run, why)
                return DONE
            case _:
                assert_never(action)

    def _place(self, run: TrialRun, place: Place) -> Outcome:
        if run.stage not in WAITING:
            return refused("the trial does not wait for a place")
        if why_not := self._why_unfit(place, run):
            return refused(why_not)
        if place.point:
            spec = run.spec if self._surrogate is None else self._surrogate.trained(run.spec, place.point)
            run.become(replace(spec, parameters=bound_parameters(dict(place.point))))
        if place.nodes:
            self._cluster.place(run, place.nodes)
        else:
            self._cluster.enqueue(run)
        return DONE

    def _clone(self, run: TrialRun, clone: Clone, parent: TrialRun | None) -> Outcome:
        if run.stage is not Stage.SUSPENDED:
            return refused("the trial is not suspended")
        if parent is None or parent is run:
            return refused(f"{clone.parent} is no other trial")
        if not run.spec.search or run.spec.gang:
            return refused("a search must give the trial its hyperparameters, and it must not be a gang")
        if len(run.lineage) >= MOST_CLONES:
            return refused(f"it has gone on from another's checkpoint {MOST_CLONES} times, which is the most")
        if len(run.spec.reports) != len(parent.spec.reports):
            return refused(f"it makes {len(run.spec.reports)} steps, and {clone.parent} {len(parent.spec.reports)}")
        if not parent.kept:
            return refused(f"{clone.parent} has no checkpoint")
        spec = following(run.spec, parent.spec)
        if self._surrogate is not None:
            spec = self._surrogate.followed(run.spec, parent.spec, parent.kept, clone.point)
        run.follow(parent, replace(spec, parameters=bound_parameters(dict(clone.point))))
        return DONE

    def _resize(self, run: TrialRun, cpu: float) -> Outcome:
        for node in run.nodes:
            if not (cpu >= 0 and self._cluster.nodes[node].has_cores_for(run, cpu)):
                return refused(f"{cpu:g} cores do not fit on {node}")
        self._cluster.resize(run, cpu)
        return DONE

    def _migrate(self, run: TrialRun, action: Migrate) -> Outcome:
        if action.nodes == run.nodes:
            return refused(f"the trial is on {action.node} already")
        if why_not := self._why_unfit(action, run):
            return refused(why_not)
        self._cluster.move(run, action.nodes)
        return DONE

    def _why_unfit(self, action: Migrate | Place, run: TrialRun) -> str | None:
        """Return why the next attempt cannot have its workers on all the nodes; None where it can."""
        nodes = action.nodes
        if unknown := [node for node in nodes if node not in self._cluster.nodes]:
            return f"there is no node {unknown[0]}"
        if why_not := why_no_gang(action, run.shown()):
            return why_not
        whys = (self._cluster.nodes[node].why_unfit(run, nodes.count(node)) for node in dict.fromkeys(nodes))
        return next(filter(None, whys), None)


def _result(run: TrialRun, sample: Sample | None) -> TrialResult:
    return TrialResult(
        id=run.spec.id,
        submitted_s=run.spec.submitted_at,
        completed_s=run.spec.submitted_at if run.ended_at is None else run.ended_at,
        node=run.node or "",
        moves=run.moves,
        attempts=run.attempt,
        final_metric=None if sample is None else sample.value,
        succeeded=run.succeeded,
        suspensions=run.suspensions,
        stopped=run.stopped,
        resizes=run.resizes,
        first_node=run.first_node or "",
        params=dict(run.spec.parameters),
        deadline_s=run.spec.goals.deadline_s,
        direction=run.spec.direction.value,
        sweep=run.spec.sweep,
        scales=run.scales,
        workers=run.workers,
    )


class SimulatedMetrics:
    """The newest report of each trial that is ``delay_s`` seconds old at least."""

    def __init__(self, world: SimulatedWorld, delay_s: float) -> None:
        self._world = world
        self._delay_s = delay_s
        self._samples: dict[TrialId, Sample] = {}
        self._upcoming = world.cluster.upcoming
        self._logs = {run.spec.id: run.log for run in world.runs}

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial that has one."""
        until = self._world.now - self._delay_s
        due: set[TrialId] = set()
        while self._upcoming and self._upcoming[0][0] <= until:
            at, trial = heappop(self._upcoming)
            if self._logs[trial].next_at == at:  # otherwise it has come to run faster or slower since
                due.add(trial)
        for trial in sorted(due):
            sample = self._logs[trial].read(until)
            if sample is not None:
                self._samples[trial] = sample
        return self._samples

    def keep_times(self) -> None:
        """Keep from now on when each report is logged."""
        for log in self._logs.values():
            log.times = []

    def times(self) -> Mapping[TrialId, Sequence[float]]:
        """Return when the reports of each trial were logged, in seconds, if they were to be kept."""
        return {trial: tuple(log.times or ()) for trial, log in self._logs.items()}

    def final(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample that each trial logged, however new."""
        last = {run.spec.id: run.log.read(math.inf) for run in self._world.runs}
        return {trial: sample for trial, sample in last.items() if sample is not None}


class MemoryStore:
    """Keeps the newest state; it is worked out only if somebody loads it."""

    def __init__(self) -> None:
        self._state: Callable[[], str] | None = None

    def load(self) -> str | None:
        """Return the state saved last."""
        return None if self._state is None else self._state()

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep ``state``."""
        del urgent
        self._state = state
