"""Simulates several sweeps that share a cluster: an engine each, over one simulated world, with an arbiter between."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from controllers.core.devices import NO_DEVICES
from controllers.core.errors import SpeconError
from controllers.core.model import Ask, Node, Sample, Trial, TrialId
from controllers.core.policy import Policy
from controllers.core.ports import ComingTrial
from controllers.core.results import RunResult, TrialResult
from controllers.driving.arbitration import Arbitration, Member
from controllers.driving.assembly import assemble, check_policy, guard_policy
from controllers.driving.driver import Driver, VirtualBeats
from controllers.driving.shared_world import AsksOfAll, SharedWorld
from controllers.driving.time_left import TimeLeft
from controllers.driving.wrapped_world import WrappedWorld
from controllers.policies import Pinned
from controllers.policies.arbiter import Arbiter, Part
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.trial_run import TrialRun
from controllers.worlds.simulated.world import MemoryStore, SimulatedMetrics, SimulatedWorld

ROUND_S = 2.0
"""Seconds between two rounds of the arbiter."""
_IDLE_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class SweepOwner:
    """Whose a sweep is, and what it counts in its namespace."""

    namespace: str
    weight: float = 1.0
    priority: int = 0


@dataclass(frozen=True)
class SharedRun:
    """The result of each sweep by its name, and how often trials were suspended for others."""

    results: Mapping[str, RunResult]
    gave_back: int

    @property
    def makespan_s(self) -> float:
        """Seconds until the last of all trials had ended."""
        return max(trial.completed_s for result in self.results.values() for trial in result.trials)


Watcher = Callable[[float, SimulatedWorld, Mapping[str, Part]], None]
"""Sees each round of the arbiter: the time, the world, and each sweep's part."""


def simulate_together(
    scenario: Scenario,
    policy: Policy[Any],
    owners: Mapping[str, SweepOwner],
    arbiter: Arbiter | None = None,
    watch: Watcher | None = None,
) -> SharedRun:
    """Run all sweeps of ``scenario`` at once, each by an engine of its own under ``policy``.

    Args:
        scenario: What is simulated; trials say which sweep they are of.
        policy: What decides for each sweep, within its part.
        owners: Whose each sweep is.
        arbiter: What decides between them; without one, each sees the others as load alone.
        watch: Sees each round.

    Raises:
        SpeconError: the policy needs an action that this world cannot do, or trials wait that never start.
        WorkloadError: a trial fits on no node.
    """
    check_policy(policy, SimulatedWorld.can, "simulated")
    return _SharedCluster(scenario, policy, owners, arbiter, watch).run()


class SweepView(WrappedWorld):
    """What one sweep sees of a simulated world: its own trials, and the nodes less what all others request.

    That is how a cluster shows itself to a sweep: what others request is load.
    """

    def __init__(self, world: SimulatedWorld, sweep: str) -> None:
        super().__init__(world)
        self._simulated = world
        self._sweep = sweep
        self._own = frozenset(run.spec.id for run in world.runs if run.spec.sweep == sweep)
        self.changed = True

    @property
    def finished(self) -> bool:
        """Whether all of its trials have ended."""
        return all(run.ended_at is not None for run in self._runs())

    @property
    def failed(self) -> bool:
        """Whether any of its trials failed."""
        return any(run.ended_at is not None and not run.succeeded for run in self._runs())

    def advance(self, now: float) -> bool:
        """Return whether anything has changed since the last call; what drives the world lets it go on."""
        del now
        changed, self.changed = self.changed, False
        return changed

    def trials(self) -> Sequence[Trial]:
        """Return every trial of the sweep that was submitted so far."""
        return [trial for trial in self._world.trials() if trial.id in self._own]

    def to_come(self) -> Sequence[ComingTrial]:
        """Return every trial of the sweep that has not been submitted yet."""
        return [trial for trial in self._world.to_come() if trial.id in self._own]

    def nodes(self) -> Sequence[Node]:
        """Return every node, less what trials of others request, and own ones that do not run yet."""
        return [self._less(node, run) for node, run in self._pairs()]

    def objectives(self) -> Mapping[TrialId, str]:
        """Return the name of each trial's objective."""
        return {trial: name for trial, name in self._world.objectives().items() if trial in self._own}

    def further_metrics(self) -> Mapping[TrialId, tuple[str, ...]]:
        """Return the metrics of each trial that count beside its objective."""
        return {trial: names for trial, names in self._world.further_metrics().items() if trial in self._own}

    def results(self, samples: Mapping[TrialId, Sample]) -> Sequence[TrialResult]:
        """Return how each trial of the sweep went."""
        return [result for result in self._world.results(samples) if result.id in self._own]

    def _runs(self) -> list[TrialRun]:
        return [run for run in self._simulated.runs if run.spec.id in self._own]

    def _pairs(self) -> list[tuple[Node, NodeRun]]:
        return [(run.shown(), run) for run in self._simulated.cluster.nodes.values()]

    def _less(self, node: Node, on: NodeRun) -> Node:
        cpu, memory, devices, starting = 0.0, 0.0, NO_DEVICES, NO_DEVICES
        for name, run in on.runs.items():
            workers = run.on(node.name)
            if name not in self._own or not run.shown_on:
                cpu += run.held_cpu * workers
                memory += run.spec.memory * workers
            if name not in self._own:
                devices += run.spec.devices * workers
            elif not run.shown_on:
                starting += run.spec.devices * workers
        for name, run in on.expected.items():
            if name not in self._own:
                cpu += run.expected_cpu(node.name)
                memory += run.spec.memory * run.coming(node.name)
                devices += run.spec.devices * run.coming(node.name)
        left = node.devices - devices if devices else node.devices
        return replace(
            node,
            cpu=max(0.0, node.cpu - cpu),
            memory=max(0.0, node.memory - memory),
            devices=left.positive(),
            devices_starting=starting,
        )


class _Metrics:
    """The reports of one sweep's trials."""

    def __init__(self, source: SimulatedMetrics, own: frozenset[TrialId]) -> None:
        self._source = source
        self._own = own

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial of the sweep that has one."""
        return {trial: sample for trial, sample in self._source.poll().items() if trial in self._own}


class _NobodyAsks:
    """Owners that ask nothing of their trials."""

    def asked(self) -> Mapping[str, Ask]:
        """Return nothing."""
        return {}


class _SharedCluster:
    """The world, an engine for each sweep, and the virtual time that takes all of them on."""

    def __init__(
        self,
        scenario: Scenario,
        policy: Policy[Any],
        owners: Mapping[str, SweepOwner],
        arbiter: Arbiter | None,
        watch: Watcher | None,
    ) -> None:
        self._policy = policy
        self._world = SimulatedWorld(scenario, gated=True)
        self._source = SimulatedMetrics(self._world, scenario.costs.metric_delay_s)
        self._arbitration = None if arbiter is None else Arbitration(arbiter)
        self._watch = watch
        self._views: dict[str, SweepView] = {}
        self._members: list[Member] = []
        self._drivers: dict[str, Driver] = {}
        self._round_at = 0.0
        self._gave_back = 0
        for name, owner in owners.items():
            self._add(name, owner, scenario.costs.heartbeat_s)

    def run(self) -> SharedRun:
        """Drive all sweeps until every trial has ended."""
        world, idle = self._world, 0
        while not world.finished:
            due = min(self._round_at, *(driver.due_at for driver in self._drivers.values()))
            if world.next_at <= due:
                self._advance(world.next_at)
                continue
            idle = idle + 1 if world.next_at == math.inf else 0
            if due == math.inf or idle > _IDLE_ROUNDS * len(self._drivers):
                waiting = sorted(run.spec.id for run in world.runs if run.ended_at is None)
                message = f"policy {self._policy.name!r} leaves {len(waiting)} trials waiting, such as {waiting[0]}"
                raise SpeconError(message)
            self._advance(due)
            self._decide(due)
        return SharedRun(self._results(), self._gave_back)

    def _add(self, name: str, owner: SweepOwner, heartbeat_s: float) -> None:
        view, left = SweepView(self._world, name), TimeLeft()
        shared = SharedWorld(view, left.of)
        own = frozenset(run.spec.id for run in self._world.runs if run.spec.sweep == name)
        engine = assemble(
            self._policy,
            shared,
            _Metrics(self._source, own),
            MemoryStore(),
            observers=(left,),
            guard=lambda policy: Pinned(policy=guard_policy(policy)),
            requests=AsksOfAll(_NobodyAsks(), shared),
        )
        self._views[name] = view
        self._drivers[name] = Driver(engine, view, VirtualBeats(heartbeat_s))
        self._members.append(
            Member(
                name=name,
                namespace=owner.namespace,
                world=shared,
                needs=lambda: self._policy.needs,
                weight=owner.weight,
                priority=owner.priority,
            )
        )

    def _advance(self, now: float) -> None:
        if self._world.advance(now):
            for view in self._views.values():
                view.changed = True
        for driver in self._drivers.values():
            driver.advance(now)

    def _decide(self, now: float) -> None:
        if now >= self._round_at:
            self._round_at = math.inf if self._arbitration is None else now + ROUND_S
            self._arbitrate(now)
        for driver in self._drivers.values():
            if driver.due_at <= now:
                driver.tick(now)
                self._advance(now)

    def _arbitrate(self, now: float) -> None:
        if self._arbitration is None:
            return
        before = {member.name: member.world.part for member in self._members}
        parts = self._arbitration.decide(now, self._members)
        self._gave_back += sum(
            len(set(part.gives_back) - set(old.gives_back if (old := before[name]) else ()))
            for name, part in parts.items()
        )
        for name, part in parts.items():
            if part != before[name]:
                self._views[name].changed = True
                self._drivers[name].advance(now)
        if self._watch is not None:
            self._watch(now, self._world, parts)

    def _results(self) -> dict[str, RunResult]:
        samples = self._source.final()
        return {name: RunResult(self._policy.name, tuple(view.results(samples))) for name, view in self._views.items()}
