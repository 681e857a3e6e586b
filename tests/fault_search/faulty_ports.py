"""A controller's ports in a faulty run: faults strike where the controller passes, and what passes is checked."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from controllers.core.actions import Action, Clone, Migrate, Place, Resize, Stop, Suspend
from controllers.core.model import Node, NodeName, Phase, Sample, Trial, TrialId
from controllers.core.policy import Policy, PolicyStateError, dump_state, load_state
from controllers.core.ports import MetricSource, Outcome, World, refused
from controllers.core.stop_rules import ENDED
from controllers.driving.wrapped_world import WrappedWorld
from controllers.worlds.simulated.world import SimulatedWorld
from tests.fault_search.broken import broken
from tests.fault_search.case import (
    ActionRefusal,
    ControllerCrash,
    ControllerFault,
    MetricFault,
    SlowController,
)
from tests.fault_search.invariants import InvariantChecker


class ControllerDied(BaseException):
    """The controller was killed; it is started again ``down_s`` later. Nothing may catch it, as with SIGKILL."""

    def __init__(self, down_s: float) -> None:
        super().__init__(f"the controller is killed, for {down_s:g} s")
        self.down_s = down_s


class TickFaults:
    """Crashes and delays within a tick: counts its edges, and strikes at the one that a fault names.

    Args:
        faults: only those that strike within a tick count.
        go_on: lets the world go on for so many seconds.
    """

    def __init__(self, faults: Sequence[ControllerFault], go_on: Callable[[float], None]) -> None:
        kinds = ControllerCrash | SlowController
        self._waiting = sorted((fault for fault in faults if isinstance(fault, kinds)), key=lambda fault: fault.at)
        self._go_on = go_on
        self._began_at = 0.0
        self._edges = 0

    def begin(self, now: float) -> None:
        """Begin a tick at ``now`` seconds of virtual time."""
        self._began_at, self._edges = now, 0

    def edge(self) -> None:
        """Pass an edge.

        Raises:
            ControllerDied: the controller dies here.
        """
        number, self._edges = self._edges, self._edges + 1
        for fault in [fault for fault in self._waiting if fault.at <= self._began_at and fault.edge == number]:
            self._waiting.remove(fault)
            if isinstance(fault, ControllerCrash):
                raise ControllerDied(fault.down_s)
            self._go_on(fault.seconds)


class CheckedStore:
    """Keeps an urgent state at once, another when ``every_s`` have gone since the last, as the store in a cluster does.

    ``acting`` tells that this tick's state was saved as urgent.
    """

    def __init__(self, world: SimulatedWorld, policy: Policy[Any], tick_faults: TickFaults, every_s: float) -> None:
        self._world = world
        self._policy = policy
        self._tick_faults = tick_faults
        self._every_s = every_s
        self._kept: str | None = None
        self._kept_at = -math.inf
        self._last: tuple[Callable[[], str], str] | None = None
        self.acting = False

    def load(self) -> str | None:
        """Return the state that outlived the controller."""
        return self._kept

    def save(self, state: Callable[[], str], *, urgent: bool) -> None:
        """Keep the state now or never: the controller may die before a later one."""
        self._tick_faults.edge()
        # A store may call ``state`` late: what it returned at the last tick must still be what it returns.
        if self._last is not None and (now := self._last[0]()) != self._last[1]:
            broken("a state stays as it was saved", f"{self._last[1]} has become {now}")
        text = state()
        self._last = state, text
        self._check_readable(text)
        if urgent or self._world.now - self._kept_at >= self._every_s:
            self._kept, self._kept_at = text, self._world.now
        self.acting = self.acting or urgent
        self._tick_faults.edge()

    def _check_readable(self, state: str) -> None:
        decisions = str(json.loads(state)["decisions"])
        try:
            again = dump_state(self._policy, load_state(self._policy, decisions))
        except PolicyStateError as error:
            broken("state can be read back", str(error))
        if again != decisions:
            broken("state can be read back", f"{decisions} was read back as {again}")


class CheckedWorld(WrappedWorld):
    """A world that refuses some actions, and checks that each action is one that may be asked of it.

    Args:
        world: what one engine sees and acts on,
        simulated: and where that is.
        store: where the engine keeps its state.
        tick_faults: what strikes within a tick.
        refusals: the actions that the world refuses.
        leaves_begun: counts the moves and suspensions of each trial.
    """

    def __init__(
        self,
        world: World,
        simulated: SimulatedWorld,
        store: CheckedStore,
        tick_faults: TickFaults,
        refusals: Sequence[ActionRefusal],
        leaves_begun: dict[TrialId, int],
    ) -> None:
        super().__init__(world)
        self._simulated = simulated
        self._store = store
        self._tick_faults = tick_faults
        self._refusals = refusals
        self._seen: dict[TrialId, Trial] = {}
        self._ended: set[str] = set()
        self._leaves_begun = leaves_begun

    def trials(self) -> Sequence[Trial]:
        """Return every trial submitted so far."""
        self._tick_faults.edge()
        trials = self._world.trials()
        self._seen = {trial.id: trial for trial in trials}
        return trials

    def nodes(self) -> Sequence[Node]:
        """Return every node."""
        self._tick_faults.edge()
        return self._world.nodes()

    def apply(self, action: Action) -> Outcome:
        """Hand ``action`` to the world, unless it is one that is refused just now."""
        self._check(action)
        self._tick_faults.edge()
        kind, now = type(action).__name__, self._simulated.now
        if any(fault.action == kind and fault.at <= now <= fault.at + fault.seconds for fault in self._refusals):
            outcome = refused("the server refuses for now")
        else:
            outcome = self._world.apply(action)
        if outcome.done:
            match action:
                case Migrate() | Suspend():
                    self._leaves_begun[action.trial] = self._leaves_begun.get(action.trial, 0) + 1
                case Resize() | Place() | Stop() | Clone():
                    pass  # None of them begins an attempt that was not counted before.
                case _:
                    assert_never(action)
        self._tick_faults.edge()
        return outcome

    def _check(self, action: Action) -> None:
        if not self._store.acting:
            broken("nothing is done before it is saved", f"{action}")
        before, now = self._seen.get(action.trial), self._world.trial(action.trial)
        if before is None or now is None:
            broken("actions are about trials that were seen", f"{action}")
        if (before.phase, before.nodes, before.attempt) != (now.phase, now.nodes, now.attempt):
            broken("actions are checked afresh", f"{action}: {before} is {now} by now")
        if not self._fits(action, now):
            broken("actions fit their trials", f"{action}: {now}")
        if isinstance(action, Stop) and action.why.startswith(ENDED):
            self._ended.add(now.sweep)
        elif now.sweep in self._ended:
            broken("an ended sweep stays so", f"{action}: {now}")
        self._check_targets(action, now, action.nodes if isinstance(action, Place | Migrate) else ())

    def _fits(self, action: Action, now: Trial) -> bool:
        """Return whether ``action`` is one that may be asked of a trial as it is ``now``."""
        match action:
            case Place():
                return now.waits
            case Migrate() | Resize() | Suspend():
                return now.steady
            case Stop():
                return now.steady or now.waits or now.phase is Phase.PENDING
            case Clone(parent=parent):
                other = self._world.trial(parent)
                sound = other is not None and other.sweep == now.sweep and other.phase is not Phase.FAILED
                return now.waits and now.phase is Phase.SUSPENDED and parent != now.id and sound
            case _:
                assert_never(action)

    def _check_targets(self, action: Action, now: Trial, targets: Sequence[NodeName]) -> None:
        moves = now.gang and isinstance(action, Place | Migrate)
        if moves and not now.min_workers <= len(targets) <= now.max_workers:
            broken("a gang is admitted whole or not at all", f"{action}: {now}")
        for target in targets:
            node = self._world.node(target)
            if node is None or not node.ready:
                broken("nothing is sent to a node that is not ready", f"{action}: {node}")


class CheckedMetrics:
    """Metrics that are checked before any fault changes them."""

    def __init__(self, source: MetricSource, checker: InvariantChecker) -> None:
        self._source = source
        self._checker = checker

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest samples."""
        samples = self._source.poll()
        self._checker.check_samples(samples)
        return samples


class FaultyMetrics:
    """Metrics as the controller gets to see them: late, old, broken or away while a fault lasts."""

    def __init__(
        self, source: MetricSource, world: SimulatedWorld, tick_faults: TickFaults, faults: Sequence[MetricFault]
    ) -> None:
        self._source = source
        self._world = world
        self._tick_faults = tick_faults
        self._faults = faults
        self._first: dict[TrialId, Sample] = {}
        self._shown: dict[TrialId, Sample] = {}

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest samples, as far as nothing is wrong with them."""
        self._tick_faults.edge()
        samples = dict(self._source.poll())
        self._first = samples | self._first
        for fault in self._faults:
            if fault.at <= self._world.now <= fault.at + fault.seconds:
                for trial in list(samples) if fault.trial is None else {fault.trial} & samples.keys():
                    shown = self._troubled(fault, trial, samples.pop(trial))
                    if shown is not None:
                        samples[trial] = shown
        self._shown = self._shown | samples
        return samples

    def _troubled(self, fault: MetricFault, trial: TrialId, sample: Sample) -> Sample | None:
        match fault.trouble:
            case "away":
                return None
            case "late":
                return self._shown.get(trial)
            case "old":
                return self._first[trial]
            case "again":
                return replace(sample, at=sample.at + 1.0)
            case "nan":
                return replace(sample, value=math.nan)
            case "infinite":
                return replace(sample, value=math.inf)
            case _:
                assert_never(fault.trouble)
