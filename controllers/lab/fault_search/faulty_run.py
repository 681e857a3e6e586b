"""One sweep of the production engine, guards and policies in virtual time, while all goes wrong that a case lists."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controllers.core.engine import Engine
from controllers.core.model import Action, Place, Sample, TrialId
from controllers.core.policy import Policy
from controllers.core.ports import MetricSource, Outcome
from controllers.driving.assembly import assemble
from controllers.driving.driver import VirtualBeats
from controllers.lab.fault_search.bounds import latest_end_s
from controllers.lab.fault_search.case import Case
from controllers.lab.fault_search.controller_faults import ClockStep, MetricFault, Refusal
from controllers.lab.fault_search.interference import ControllerDied, Interference
from controllers.lab.fault_search.invariants import InvariantError, broken
from controllers.lab.fault_search.surroundings import TroubledMetrics, WatchedStore, WatchedWorld
from controllers.lab.fault_search.watch import Watch
from controllers.policies.comparison.clairvoyant import informed
from controllers.policies.registry import parse_policy
from controllers.policies.wrappers.guarded import Guarded
from controllers.worlds.simulated.metrics import SimulatedMetrics
from controllers.worlds.simulated.world import SimulatedWorld

_MOST_TICKS_AT_REST = 1000
"""Ticks without any event after which nothing is held to come any more, unless the world says when."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An invariant that did not hold, when (seconds of virtual time), and the values."""

    invariant: str
    detail: str
    at: float


@dataclass(frozen=True, slots=True)
class Ordeal:
    """What a faulty run came to: what it found, if anything, and how much happened in it."""

    finding: Finding | None
    events: int
    ticks: int
    moves: int
    crashes: int


def run_case(case: Case) -> Ordeal:
    """Run ``case`` to its end, or to the first invariant that does not hold. The same case gives the same."""
    work = {trial.id: trial.work_s for trial in case.scenario.workload.trials}
    return FaultyRun(case, Guarded(policy=informed(parse_policy(case.policy), work))).run()


class FaultyRun:
    """Drives world and engine; ``policy`` comes with whatever wraps it."""

    def __init__(self, case: Case, policy: Policy[Any]) -> None:
        self._case = case
        self._policy = policy
        self._bound = latest_end_s(case)
        self._beats = VirtualBeats(case.scenario.costs.heartbeat_s)
        faults = case.controller_faults
        self._steps = sorted((fault for fault in faults if isinstance(fault, ClockStep)), key=lambda fault: fault.at)
        self._world = SimulatedWorld(case.scenario, gated=Place in policy.needs, faults=case.world_faults)
        self._interference = Interference(faults, self._delay)
        self._store = WatchedStore(self._world, policy, self._interference, case.journal_every_s)
        refusals = [fault for fault in faults if isinstance(fault, Refusal)]
        self._watched = WatchedWorld(self._world, self._store, self._interference, refusals)
        self._watch = Watch(self._world.course, self._watched.moves_begun)
        troubles = [fault for fault in faults if isinstance(fault, MetricFault)]
        source = _Witnessed(SimulatedMetrics(self._world, case.scenario.costs.metric_delay_s), self._watch)
        self._source = TroubledMetrics(source, self._world, self._interference, troubles)
        self._engine: Engine[Any] | None = None
        self._changed_at = 0.0
        self._wake = math.inf
        self._up_at = 0.0
        self._ticks = self._at_rest = self._crashes = 0

    def run(self) -> Ordeal:
        """Run to the end."""
        finding = None
        try:
            while not self._world.finished:
                self._go_on()
            self._watch.look_at_the_end()
        except InvariantError as error:
            finding = Finding(error.invariant, error.detail, self._world.now)
        except Exception as error:  # noqa: BLE001 - whatever it is, it was found
            finding = Finding(f"nothing fails with {type(error).__name__}", str(error), self._world.now)
        moves = sum(run.moves for run in self._world.runs)
        return Ordeal(finding, self._world.events, self._ticks, moves, self._crashes)

    def _go_on(self) -> None:
        tick_at, due = self._tick_at(), self._world.next_at
        step = next((step.at for step in self._steps if step.at > self._world.now), math.inf)
        if due == math.inf and (tick_at == math.inf or self._at_rest > _MOST_TICKS_AT_REST):
            waiting = sorted(run.spec.id for run in self._world.runs if run.ended_at is None)
            broken("the sweep ends", f"nothing is due, {waiting} have not ended")
        if self._world.now > self._bound:
            broken("the sweep ends", f"it has not after {self._bound:g} s")
        if min(due, step) <= tick_at:
            self._advance(min(due, step))
        else:
            self._advance(tick_at)
            self._tick()

    def _delay(self, seconds: float) -> None:
        self._watch.look()
        self._advance(self._world.now + seconds)

    def _advance(self, until: float) -> None:
        """Let the world go on, and look at it after each instant at which something happens."""
        while self._world.next_at <= until:
            self._note(changed=self._world.advance(self._world.next_at))
            self._at_rest = 0
            self._watch.look()
        self._note(changed=self._world.advance(max(until, self._world.now)))

    def _note(self, *, changed: bool) -> None:
        if changed:
            self._changed_at = min(self._changed_at, self._world.now)

    def _tick_at(self) -> float:
        """Return when the engine is to be ticked next, at a heartbeat, as things stand."""
        asked = max(self._world.now, self._wake - self._offset())
        due = min(asked, self._changed_at)
        if due == math.inf:
            return math.inf
        return max(self._beats.at(max(due, self._up_at)), self._world.now)

    def _tick(self) -> None:
        now = self._world.now
        self._beats.passed(now)
        self._ticks += 1
        self._at_rest += 1
        self._changed_at = math.inf
        self._store.acting = False
        self._interference.begin(now)
        try:
            if self._engine is None:
                self._engine = self._assembled()
            tick = self._engine.tick(max(0.0, now + self._offset()))
            self._wake = math.inf if tick.wake_at is None else tick.wake_at
            if tick.refused:
                self._changed_at = min(self._changed_at, self._world.now)
        except ControllerDied as death:
            self._engine = None
            self._crashes += 1
            self._changed_at = self._up_at = self._world.now + death.down_s
        self._watch.look()
        self._advance(self._world.now)

    def _assembled(self) -> Engine[Any]:
        """Return a new controller's engine; its policy comes with whatever wraps it."""
        logs = (_EdgeAfterEachAction(self._interference),)
        return assemble(self._policy, self._watched, self._source, self._store, logs=logs, guard=lambda policy: policy)

    def _offset(self) -> float:
        """Return by how much the controller's clock is ahead, in seconds."""
        return sum(step.seconds for step in self._steps if step.at <= self._world.now)


class _EdgeAfterEachAction:
    """An action log that only gives the controller one more place to die: before it records what it did."""

    def __init__(self, interference: Interference) -> None:
        self._interference = interference

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        """Pass an edge."""
        del now, action, reason, outcome
        self._interference.edge()


class _Witnessed:
    """Metrics that are checked before anything is wrong with them."""

    def __init__(self, source: MetricSource, watch: Watch) -> None:
        self._source = source
        self._watch = watch

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest samples."""
        samples = self._source.poll()
        self._watch.look_at_samples(samples)
        return samples
