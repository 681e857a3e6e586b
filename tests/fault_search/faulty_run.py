"""Runs a case: the production engine, guards and policies in virtual time, with the faults that the case lists."""

import math
from dataclasses import dataclass
from typing import Any, assert_never

from controllers.core.actions import Action, Place
from controllers.core.engine import Engine
from controllers.core.model import TrialId
from controllers.core.policy import Policy
from controllers.core.ports import Outcome
from controllers.driving.assembly import assemble, guard_policy
from controllers.driving.driver import VirtualBeats
from controllers.lab.simulation.together import SweepView
from controllers.policies import Pinned, UntilEnough
from controllers.policies.comparison.clairvoyant import inform
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.faults import (
    BootFault,
    Crowding,
    NodeLoss,
    ResizeDelay,
    RestoreFault,
    SpotLoss,
    StartFailure,
    TrialCrash,
    WorkerMissing,
    WorldFault,
)
from controllers.worlds.simulated.gangs import gang_speed
from controllers.worlds.simulated.scaling import SpotMarket
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.workload import TrialSpec, Workload
from controllers.worlds.simulated.world import SimulatedMetrics, SimulatedWorld
from tests.fault_search.broken import InvariantError, broken
from tests.fault_search.case import (
    ActionRefusal,
    Case,
    ClockStep,
    ControllerCrash,
    ControllerFault,
    MetricFault,
    SlowController,
)
from tests.fault_search.faulty_ports import (
    CheckedMetrics,
    CheckedStore,
    CheckedWorld,
    ControllerDied,
    FaultyMetrics,
    TickFaults,
)
from tests.fault_search.invariants import InvariantChecker
from tests.fault_search.several_sweeps import SharedController

_MOST_TICKS_AT_REST = 1000
"""Ticks without any event after which the sweep counts as stuck, unless the world knows when the next event is due."""
_MOVES = 20
"""Moves that the time limit allows each trial; a policy may go on moving trials for as long as they run."""
_CLONES = 20
"""Times that a trial of a search may go on from another's checkpoint, which may hold less than its own."""
_MOST_TOGETHER = 20
"""More trials on a node than a case has: contention is at its worst."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold, when (seconds of virtual time), and the values."""

    invariant: str
    detail: str
    at: float


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a faulty run: the invariant that it broke, if any, and how much happened in it."""

    violation: Violation | None
    events: int
    ticks: int
    moves: int
    crashes: int


def run_case(case: Case) -> CaseResult:
    """Run ``case`` to its end, or to the first invariant that does not hold. The same case gives the same result."""
    work = {trial.id: trial.work_s for trial in case.scenario.workload.trials}
    return FaultyRun(case, guard_policy(inform(parse_policy(case.policy), work))).run()


class FaultyRun:
    """Drives world and engine until every trial has ended; ``policy`` is wrapped in its guards already.

    ``ender`` is what ends its sweeps by their rules.
    """

    def __init__(self, case: Case, policy: Policy[Any], ender: type[UntilEnough] = UntilEnough) -> None:
        self._case = case
        sweeps = {trial.sweep for trial in case.scenario.workload.trials}
        if case.sharing:
            policy = Pinned(policy=policy)
        self._stops = dict.fromkeys(sorted(sweeps), case.stops) if case.stops else {}
        self._within = policy
        self._policy = ender(policy=policy, rules=self._stops) if case.stops else policy
        self._bound = latest_end_s(case)
        self._beats = VirtualBeats(case.scenario.costs.heartbeat_s)
        faults = case.controller_faults
        self._steps = sorted((fault for fault in faults if isinstance(fault, ClockStep)), key=lambda fault: fault.at)
        self._world = SimulatedWorld(
            case.scenario, gated=bool(case.sharing) or Place in policy.needs, faults=case.world_faults
        )
        self._tick_faults = TickFaults(faults, self._delay)
        self._refusals = [fault for fault in faults if isinstance(fault, ActionRefusal)]
        self._leaves_begun = dict[TrialId, int]()
        self._parts = {name: self._part_of(name) for name in case.sharing.owners} or {"": self._part_of(None)}
        self._checker = InvariantChecker(self._world, self._leaves_begun)
        troubles = [fault for fault in faults if isinstance(fault, MetricFault)]
        source = CheckedMetrics(SimulatedMetrics(self._world, case.scenario.costs.metric_delay_s), self._checker)
        self._source = FaultyMetrics(source, self._world, self._tick_faults, troubles)
        self._engine: Engine[Any] | SharedController | None = None
        self._changed_at = 0.0
        self._wake = math.inf
        self._up_at = 0.0
        self._ticks = self._at_rest = self._crashes = 0

    def run(self) -> CaseResult:
        """Run to the end."""
        violation = None
        try:
            while not self._world.finished:
                self._go_on()
            self._checker.check_the_end()
            self._let_nodes_go()
        except InvariantError as error:
            violation = Violation(error.invariant, error.detail, self._world.now)
        except Exception as error:  # noqa: BLE001 - any error of ours is a find
            violation = Violation(f"nothing fails with {type(error).__name__}", str(error), self._world.now)
        moves = sum(run.moves for run in self._world.runs)
        return CaseResult(violation, self._world.events, self._ticks, moves, self._crashes)

    def _let_nodes_go(self) -> None:
        """Let the nodes go that nobody needs any more."""
        until = self._world.now + self._bound
        while self._world.shrinks:
            if self._world.next_at > until:
                broken("nodes that nobody needs go", f"there are {list(self._world.cluster.nodes)}")
            self._advance(self._world.next_at)
        self._checker.check_the_bill()

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
        self._checker.check()
        self._advance(self._world.now + seconds)

    def _advance(self, until: float) -> None:
        """Let the world go on, and check it after each instant at which something happens."""
        while self._world.next_at <= until:
            self._note(changed=self._world.advance(self._world.next_at))
            self._at_rest = 0
            self._checker.check()
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
        for _, store in self._parts.values():
            store.acting = False
        self._tick_faults.begin(now)
        try:
            if self._engine is None:
                self._engine = self._assembled()
            tick = self._engine.tick(max(0.0, now + self._offset()))
            self._wake = math.inf if tick.wake_at is None else tick.wake_at
            if tick.refused:
                self._changed_at = min(self._changed_at, self._world.now)
        except ControllerDied as death:
            # What the old engine knew is gone: the next tick makes one from what the store has kept.
            self._engine = None
            self._crashes += 1
            self._changed_at = self._up_at = self._world.now + death.down_s
        self._checker.check()
        self._advance(self._world.now)

    def _part_of(self, sweep: str | None) -> tuple[CheckedWorld, CheckedStore]:
        """Return what the engine of a sweep acts on, None for the one engine of all, and where it keeps its state."""
        store = CheckedStore(self._world, self._policy, self._tick_faults, self._case.journal_every_s)
        seen = self._world if sweep is None else SweepView(self._world, sweep)
        world = CheckedWorld(seen, self._world, store, self._tick_faults, self._refusals, self._leaves_begun)
        return world, store

    def _assembled(self) -> Engine[Any] | SharedController:
        """Return a new controller's engine, or engines; the guards are around its policy already."""
        logs = (_EdgeAfterEachAction(self._tick_faults),)
        sharing = self._case.sharing
        if sharing:
            return SharedController(
                sharing, self._world, self._parts, self._source, self._within, logs=logs, stops=self._stops
            )
        world, store = self._parts[""]
        return assemble(self._policy, world, self._source, store, logs=logs, guard=lambda policy: policy)

    def _offset(self) -> float:
        """Return by how much the controller's clock is ahead, in seconds."""
        return sum(step.seconds for step in self._steps if step.at <= self._world.now)


class _EdgeAfterEachAction:
    """An action log that only gives the controller one more place to die: before it records what it did."""

    def __init__(self, tick_faults: TickFaults) -> None:
        self._tick_faults = tick_faults

    def acted(self, now: float, action: Action, reason: str, outcome: Outcome) -> None:
        """Pass an edge."""
        del now, action, reason, outcome
        self._tick_faults.edge()


def latest_end_s(case: Case) -> float:
    """Return the virtual time, in seconds, by which the sweep must have ended: a generous bound.

    It adds up all faults before anything begins, and every trial alone on the slowest node that holds it, as often as
    its retries and 20 moves allow, and once more for each time that it may go on from another's checkpoint.
    """
    workload, costs = case.scenario.workload, case.scenario.costs
    arrivals = max(trial.submitted_at for trial in workload.trials)
    faults_end = max(
        (getattr(fault, "at", 0.0) + abs(getattr(fault, "seconds", 0.0)) for fault in case.faults), default=0.0
    )
    outages = sum(_outage_s(fault) for fault in case.faults)
    alone = sum(_alone_s(trial, workload, costs) for trial in workload.trials)
    markets = [group.spot for group in workload.groups if group.spot is not None]
    returns = max((at for market in markets for at, _ in market.available), default=0.0)
    if any(trial.search for trial in workload.trials):
        alone *= 1 + _CLONES
    return max(arrivals, returns) + (faults_end + outages) + alone


def _outage_s(fault: WorldFault | ControllerFault) -> float:
    """Return the seconds by which ``fault`` can hold a sweep up after its own time is over."""
    match fault:
        case NodeLoss():
            return fault.known_after_s + fault.back_after_s
        case ControllerCrash():
            return fault.down_s
        case ResizeDelay():
            return fault.delay_s
        case RestoreFault() | BootFault():
            return fault.seconds
        case SpotLoss():
            return fault.notice_s + SpotMarket().known_after_s
        case Crowding() | TrialCrash() | StartFailure() | WorkerMissing():
            return 0.0
        case SlowController() | ActionRefusal() | ClockStep() | MetricFault():
            return 0.0
        case _:
            assert_never(fault)


def _alone_s(trial: TrialSpec, workload: Workload, costs: Costs) -> float:
    fitting = [
        node
        for node in workload.most_nodes
        if node.cpu >= trial.cpu and node.memory >= trial.memory and trial.devices.within(node.devices)
    ]
    speeds = [(node, node.speed_of(_MOST_TOGETHER)) for node in fitting]
    slowest = min(trial.speedup.speed(min(node.cpu, trial.limit)) * speed for node, speed in speeds)
    importing = costs.start_cpu_s / min(min(node.cpu, trial.limit, 1.0) * speed for node, speed in speeds)
    between = max(costs.retry_s, costs.next_attempt_s) + costs.leave_s + costs.grace_s + costs.heartbeat_s
    if workload.groups:
        # Each attempt may have to wait for a node, for one that never comes, and for a provider that has none.
        scaling = workload.scaling
        waits = max(group.boots_s for group in workload.groups)
        between += waits + scaling.gives_up_s + scaling.retry_s + scaling.idle_s + 3 * scaling.scan_s
    if trial.gang:
        # Two half-placed gangs may keep each other from starting until they have waited long enough, again and again.
        between += 2 * (costs.start_s + costs.meet_s + costs.meet_within_s)
        slowest = min(_together(trial, slowest, workers, workload) for workers in (1, 2, trial.max_workers))
    return (trial.retries + 1 + _MOVES) * (
        trial.work_s / slowest + importing + between + costs.start_s + costs.restore_s
    )


def _together(trial: TrialSpec, slowest: float, workers: int, workload: Workload) -> float:
    """Return what a gang gets done each second that is spread as far as can be, its workers as slow as can be."""
    network = workload.network
    return gang_speed(trial.exchange, [slowest] * workers, min(network.across, network.zone), network.call_s).rate
