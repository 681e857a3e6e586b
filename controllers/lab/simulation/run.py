"""One sweep under one policy in virtual time: the loop that drives world and engine, and what it came to."""

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from controllers.core.engine import Engine
from controllers.core.errors import SpeconError
from controllers.core.model import Place
from controllers.core.policy import Policy
from controllers.core.results import RunResult, TrialResult
from controllers.driving.sweep_checks import check_policy
from controllers.policies.wrappers.guarded import Guarded
from controllers.record.recorder import Recorder
from controllers.record.timeline import EventKind, TimelineEvent
from controllers.worlds.simulated.journal import MemoryJournal
from controllers.worlds.simulated.metrics import SimulatedMetrics
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.trial_run import TrialRun
from controllers.worlds.simulated.world import SimulatedWorld

_IDLE_TICKS = 1000
"""Ticks of the engine after which a world where nothing is due is taken for one where nothing ever will be."""

_SLACK = 1e-6
"""Heartbeats by which a wake-up may be early: sums of intervals are not exact."""


@dataclass(frozen=True)
class SimulatedRun:
    """What a simulated sweep came to, its record, and how many events and ticks of the engine it took."""

    result: RunResult
    timeline: tuple[TimelineEvent, ...]
    events: int
    ticks: int


def simulate(scenario: Scenario, policy: Policy[Any]) -> SimulatedRun:
    """Run ``scenario`` under ``policy`` to its end. The same arguments give the same result.

    Raises:
        SpeconError: the policy needs what this world can't do, or leaves trials waiting for ever.
        WorkloadError: a trial fits on no node.
    """
    check_policy(policy, SimulatedWorld.can, "simulated")
    return _Sweep(scenario, policy).run()


class _Sweep:
    """Ticks the engine at those heartbeats at which something has changed, or at which its policy asked to be woken.

    A tick between, with nothing new to see but metrics, would decide nothing: policies look at metrics when they
    asked to. Where something was refused it may be let through later, so the next heartbeat brings a tick.
    """

    def __init__(self, scenario: Scenario, policy: Policy[Any]) -> None:
        self._heartbeat_s = scenario.costs.heartbeat_s
        self._policy = policy
        self._world = SimulatedWorld(scenario, gated=Place in policy.needs)
        self._source = SimulatedMetrics(self._world, scenario.costs.metric_delay_s)
        self._journal = MemoryJournal()
        self._timeline: list[TimelineEvent] = []
        recorder = Recorder(self._timeline.extend, dict)
        self._engine = Engine(Guarded(policy=policy), self._world, self._source, self._journal, (recorder,))
        self._heartbeat = -1
        self._ticks = 0
        self._idle = 0

    def run(self) -> SimulatedRun:
        """Drive the world until every trial has ended."""
        world, tick_at = self._world, 0.0
        while not world.finished:
            if world.next_at <= tick_at and world.next_at < math.inf:
                world.advance(world.next_at)
                if world.take_changed():
                    tick_at = min(tick_at, self._from(world.now))
            else:
                tick_at = self._tick(tick_at)
        self._tick(world.now)
        trials = sorted((_result(run) for run in world.runs), key=lambda trial: (trial.submitted_s, trial.id))
        result = RunResult(self._policy.name, tuple(trials))
        return SimulatedRun(result, self._record(), world.events, self._ticks)

    def _tick(self, at: float) -> float:
        """Tick the engine and return when to tick next, as far as that is known now."""
        self._check_alive(at)
        self._world.advance(at)
        self._heartbeat = math.ceil(at / self._heartbeat_s - _SLACK)
        self._ticks += 1
        self._idle = self._idle + 1 if self._world.next_at == math.inf else 0
        wake = self._engine.tick(at)
        if self._journal.take_refused() or self._world.take_changed():
            return self._from(at)
        return math.inf if wake is None else self._from(wake)

    def _from(self, time: float) -> float:
        """Return the first heartbeat at ``time`` or later that has not been."""
        return max(self._heartbeat + 1, math.ceil(time / self._heartbeat_s - _SLACK)) * self._heartbeat_s

    def _check_alive(self, at: float) -> None:
        if at < math.inf and self._idle < _IDLE_TICKS:
            return
        waiting = sorted(run.spec.id for run in self._world.runs if run.ended_at is None)
        message = (
            f"policy {self._policy.name!r} leaves trials waiting for ever: nothing is due after {self._world.now:g} s, "
            f"but {len(waiting)} have not ended, such as {waiting[0]}"
        )
        raise SpeconError(message)

    def _record(self) -> tuple[TimelineEvent, ...]:
        usage = sorted((event for run in self._world.runs for event in _usage(run)), key=lambda event: event.at)
        return tuple(heapq.merge(self._timeline, usage, key=lambda event: event.at))


def _usage(run: TrialRun) -> Iterable[TimelineEvent]:
    for usage in run.usage:
        yield TimelineEvent(usage.at, EventKind.USAGE, run.spec.id, node=usage.node, value=round(usage.cores, 4))


def _result(run: TrialRun) -> TrialResult:
    final = run.log.read(math.inf)
    return TrialResult(
        id=run.spec.id,
        submitted_s=run.spec.submitted_at,
        completed_s=run.spec.submitted_at if run.ended_at is None else run.ended_at,
        node=run.node or "",
        moves=run.moves,
        attempts=run.attempt,
        final_metric=None if final is None else final.value,
        succeeded=run.succeeded,
        resizes=run.resizes,
        first_node=run.first_node or "",
        deadline_s=run.spec.goals.deadline_s,
    )
