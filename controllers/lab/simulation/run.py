"""Simulates one sweep under one policy: the loop that drives world and engine in virtual time, and the result."""

import gc
import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from controllers.core.actions import Place
from controllers.core.errors import SpeconError
from controllers.core.model import TrialId
from controllers.core.policy import Policy
from controllers.core.ports import Observer
from controllers.core.results import RunResult
from controllers.core.stop_rules import StopRules
from controllers.driving.assembly import assemble, check_policy, guard_policy
from controllers.driving.driver import Driver, VirtualBeats
from controllers.policies import Pinned
from controllers.record.recorder import Recorder
from controllers.record.timeline import EventKind, TimelineEvent
from controllers.worlds.simulated.billing import NodeBill
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.workload import Surrogate
from controllers.worlds.simulated.world import MemoryStore, SimulatedMetrics, SimulatedWorld

_IDLE_TICKS = 1000
"""Ticks of the engine after which a world where nothing is due is taken for one where nothing ever will be."""


@dataclass(frozen=True)
class SimulatedRun:
    """The result of a simulated sweep, its record, and how many events and ticks of the engine it took.

    ``reported_at`` is when each trial logged its reports, in seconds, where that was asked for. ``bill`` is what its
    nodes came to, until those that nobody needs any more are gone. ``taken`` counts the nodes that a provider took,
    ``lost_work_s`` the lone seconds of training that were lost with attempts, over all trials.
    """

    result: RunResult
    timeline: tuple[TimelineEvent, ...]
    events: int
    ticks: int
    reported_at: Mapping[TrialId, Sequence[float]] = field(default_factory=dict)
    bill: NodeBill = field(default_factory=NodeBill)
    taken: int = 0
    lost_work_s: float = 0.0


def simulate(  # noqa: PLR0913 - what a run is made of, each named
    scenario: Scenario,
    policy: Policy[Any],
    observers: Sequence[Observer] = (),
    *,
    surrogate: Surrogate | None = None,
    keep_times: bool = False,
    guard: Callable[[Policy[Any]], Policy[Any]] = guard_policy,
    stops: Mapping[str, StopRules] | None = None,
) -> SimulatedRun:
    """Run ``scenario`` under ``policy`` to its end. The same arguments give the same result.

    Args:
        scenario: What is simulated.
        policy: What decides.
        observers: They only watch.
        surrogate: How trials train with the hyperparameters that a search gives them.
        keep_times: Whether to tell when each report was logged.
        guard: Wraps the policy in what keeps it from harm.
        stops: When each sweep ends before all its trials have, by its name.

    Raises:
        SpeconError: the policy needs an action that this world cannot do, or leaves trials waiting that never start.
        WorkloadError: a trial fits on no node.
    """
    check_policy(policy, SimulatedWorld.can, "simulated")
    with _uncollected():
        sweep = _Sweep(scenario, policy, observers, surrogate, guard, stops)
        if keep_times:
            sweep.source.keep_times()
        return sweep.run()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Hold back Python's garbage collector, which looks at millions of objects again and again.

    Ticks and events leave no cycles behind, so it would find nothing until the run is over.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Sweep:
    """A world, its engine, and the virtual time that takes both from one event or tick to the next."""

    def __init__(
        self,
        scenario: Scenario,
        policy: Policy[Any],
        observers: Sequence[Observer],
        surrogate: Surrogate | None,
        guard: Callable[[Policy[Any]], Policy[Any]],
        stops: Mapping[str, StopRules] | None,
    ) -> None:
        self._policy = policy
        self._world = SimulatedWorld(scenario, gated=Place in policy.needs, surrogate=surrogate)
        self.source = SimulatedMetrics(self._world, scenario.costs.metric_delay_s)
        self._timeline: list[TimelineEvent] = []
        recorder = Recorder(self._timeline.extend, dict)
        # Under a policy that places no trial, those that wait for a search start all the same.
        searches = any(trial.search for trial in scenario.workload.trials)
        engine = assemble(
            policy,
            self._world,
            self.source,
            MemoryStore(),
            observers=(recorder, *observers),
            guard=lambda policy: Pinned(policy=guard(policy)) if searches else guard(policy),
            stops=stops,
        )
        self._driver = Driver(engine, self._world, VirtualBeats(scenario.costs.heartbeat_s))
        self._ticks = 0
        self._idle = 0

    def run(self) -> SimulatedRun:
        """Drive the world until every trial has ended."""
        world, driver = self._world, self._driver
        while not world.finished:
            if world.next_at <= driver.due_at and world.next_at < math.inf:
                driver.advance(world.next_at)
            else:
                self._tick(driver.due_at)
        self._tick(world.now)  # Once more, so that the record has the last trial's end.
        result = RunResult(self._policy.name, tuple(world.results(self.source.final())))
        events, ended_at = world.events, world.now
        while world.shrinks and world.next_at < math.inf:
            world.advance(world.next_at)
        return SimulatedRun(
            result,
            self._record(),
            events,
            self._ticks,
            self.source.times(),
            NodeBill.of(world.cluster.meters, ended_at),
            0 if world.provider is None else world.provider.taken,
            math.fsum(run.lost_work for run in world.runs),
        )

    def _tick(self, at: float) -> None:
        self._check_alive(at)
        self._driver.advance(at)
        self._ticks += 1
        self._idle = self._idle + 1 if self._world.next_at == math.inf else 0
        self._driver.tick(at)

    def _check_alive(self, at: float) -> None:
        if at < math.inf and self._idle < _IDLE_TICKS:
            return
        waiting = sorted(run.spec.id for run in self._world.runs if run.ended_at is None)
        message = (
            f"policy {self._policy.name!r} leaves trials waiting: nothing is due after {self._world.now:g} s, "
            f"but {len(waiting)} have not ended, such as {waiting[0]}"
        )
        raise SpeconError(message)

    def _record(self) -> tuple[TimelineEvent, ...]:
        usage = sorted(
            (
                TimelineEvent(used.at, EventKind.USAGE, run.spec.id, node=used.node, value=round(used.cores, 4))
                for run in self._world.runs
                for used in run.usage
            ),
            key=lambda event: event.at,
        )
        return tuple(heapq.merge(self._timeline, usage, key=lambda event: event.at))
