"""A controller's ports in a faulty run: they pass on to the simulated world, and look at what passes."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from controllers.core.model import Action, Migrate, Node, Phase, Place, Sample, Trial, TrialId
from controllers.core.policy import Policy, PolicyStateError, dump_state, load_state
from controllers.core.ports import MetricSource, Outcome, refused
from controllers.driving.wrapped_world import WrappedWorld
from controllers.lab.fault_search.controller_faults import MetricFault, Refusal
from controllers.lab.fault_search.interference import Interference
from controllers.lab.fault_search.invariants import broken
from controllers.worlds.simulated.world import SimulatedWorld


class WatchedStore:
    """Keeps an urgent state at once, another when ``every_s`` have gone since the last, as the store in a cluster does.

    ``acting`` tells that this tick's state was saved as urgent.
    """

    def __init__(self, world: SimulatedWorld, policy: Policy[Any], interference: Interference, every_s: float) -> None:
        self._world = world
        self._policy = policy
        self._interference = interference
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
        self._interference.edge()
        self._check_the_last()
        text = state()
        self._last = state, text
        self._check(text)
        if urgent or self._world.now - self._kept_at >= self._every_s:
            self._kept, self._kept_at = text, self._world.now
        self.acting = self.acting or urgent
        self._interference.edge()

    def _check_the_last(self) -> None:
        if self._last is not None and (now := self._last[0]()) != self._last[1]:
            broken("a state stays as it was saved", f"{self._last[1]} has become {now}")

    def _check(self, state: str) -> None:
        decisions = str(json.loads(state)["decisions"])
        try:
            again = dump_state(self._policy, load_state(self._policy, decisions))
        except PolicyStateError as error:
            broken("state can be read back", str(error))
        if again != decisions:
            broken("state can be read back", f"{decisions} was read back as {again}")


class WatchedWorld(WrappedWorld):
    """The world, some of whose answers are refusals."""

    def __init__(
        self, world: SimulatedWorld, store: WatchedStore, interference: Interference, refusals: Sequence[Refusal]
    ) -> None:
        super().__init__(world)
        self._simulated = world
        self._store = store
        self._interference = interference
        self._refusals = refusals
        self._seen: dict[TrialId, Trial] = {}
        self.moves_begun: dict[TrialId, int] = {}

    def trials(self) -> Sequence[Trial]:
        """Return every trial submitted so far."""
        self._interference.edge()
        trials = self._world.trials()
        self._seen = {trial.id: trial for trial in trials}
        return trials

    def nodes(self) -> Sequence[Node]:
        """Return every node."""
        self._interference.edge()
        return self._world.nodes()

    def apply(self, action: Action) -> Outcome:
        """Hand ``action`` to the world, unless it is one that is refused just now."""
        self._check(action)
        self._interference.edge()
        outcome = self._refusal(action) or self._world.apply(action)
        if outcome.done and isinstance(action, Migrate):
            self.moves_begun[action.trial] = self.moves_begun.get(action.trial, 0) + 1
        self._interference.edge()
        return outcome

    def _refusal(self, action: Action) -> Outcome | None:
        kind, now = type(action).__name__, self._simulated.now
        if any(fault.action == kind and fault.at <= now <= fault.at + fault.seconds for fault in self._refusals):
            return refused("the server refuses for now")
        return None

    def _check(self, action: Action) -> None:
        if not self._store.acting:
            broken("nothing is done before it is saved", f"{action}")
        before, now = self._seen.get(action.trial), self._world.trial(action.trial)
        if before is None or now is None:
            broken("actions are about trials that were seen", f"{action}")
        if (before.phase, before.nodes, before.attempt) != (now.phase, now.nodes, now.attempt):
            broken("actions are checked afresh", f"{action}: {before} is {now} by now")
        if isinstance(action, Place) != (now.phase is Phase.PENDING and now.gated):
            broken("actions fit their trials", f"{action}: {now}")
        if not isinstance(action, Place) and not now.steady:
            broken("actions fit their trials", f"{action}: {now}")
        if isinstance(action, Migrate | Place) and action.node is not None:
            node = self._world.node(action.node)
            if node is None or not node.ready:
                broken("nothing is sent to a node that is not ready", f"{action}: {node}")


class TroubledMetrics:
    """What the metrics seem to be."""

    def __init__(
        self, source: MetricSource, world: SimulatedWorld, interference: Interference, faults: Sequence[MetricFault]
    ) -> None:
        self._source = source
        self._world = world
        self._interference = interference
        self._faults = faults
        self._first: dict[TrialId, Sample] = {}
        self._shown: dict[TrialId, Sample] = {}

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest samples, as far as nothing is wrong with them."""
        self._interference.edge()
        samples = dict(self._source.poll())
        self._first = samples | self._first
        for fault in self._faults:
            if fault.at <= self._world.now <= fault.at + fault.seconds:
                for trial in list(samples) if fault.trial is None else {fault.trial} & samples.keys():
                    self._trouble(fault, trial, samples)
        self._shown = self._shown | samples
        return samples

    def _trouble(self, fault: MetricFault, trial: TrialId, samples: dict[TrialId, Sample]) -> None:
        sample = samples.pop(trial)
        shown = {
            "away": None,
            "late": self._shown.get(trial),
            "old": self._first[trial],
            "again": replace(sample, at=sample.at + 1.0),
            "nan": replace(sample, value=math.nan),
            "infinite": replace(sample, value=math.inf),
        }[fault.trouble]
        if shown is not None:
            samples[trial] = shown
