"""Several sweeps of several owners in one faulty run: an engine for each, and the arbiter between them.

One controller steers them all, as in a cluster, so a crash ends all of its engines and what its arbiter remembered.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from controllers.core.actions import Action, Place
from controllers.core.engine import Engine, Tick
from controllers.core.model import Ask, Sample, TrialId
from controllers.core.policy import Policy
from controllers.core.ports import ActionLog, MetricSource, Outcome, StateStore, World
from controllers.core.stop_rules import StopRules
from controllers.driving.arbitration import Arbitration, Member
from controllers.driving.assembly import assemble
from controllers.driving.shared_world import AsksOfAll, SharedWorld
from controllers.driving.time_left import TimeLeft
from controllers.driving.wrapped_world import WrappedWorld
from controllers.lab.simulation.together import SweepOwner
from controllers.policies.arbiter import Arbiter, NamespaceTerms
from controllers.worlds.simulated.world import SimulatedWorld
from tests.fault_search.broken import broken

_ALONE = 0.75
"""Part of the cases with two sweeps that one engine has both of."""
_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Sharing:
    """Whose the sweeps of a case are, by their names, and how the arbiter shares the cluster out.

    ``quotas`` are cores by namespace. The seconds are the arbiter's own settings.
    """

    owners: Mapping[str, SweepOwner] = field(default_factory=dict)
    quotas: Mapping[str, float] = field(default_factory=dict)
    patience_s: float = 600.0
    keeps_s: float = 300.0
    settles_s: float = 15.0
    lapses_s: float = 120.0

    def __bool__(self) -> bool:
        """Whether several engines share the cluster."""
        return bool(self.owners)

    def arbiter(self) -> Arbiter:
        """Return the arbiter that it describes."""
        return Arbiter(
            terms={name: NamespaceTerms(quota_cpu=cpu) for name, cpu in self.quotas.items()},
            patience=self.patience_s,
            keeps=self.keeps_s,
            settles=self.settles_s,
            soon=0.0,
            lapses=self.lapses_s,
            asks_again=self.lapses_s,
        )


NOT_SHARED = Sharing()


def draw_sharing(chance: random.Random, sweeps: Sequence[str], largest: float, *, quotas: bool) -> Sharing:
    """Return owners of ``sweeps`` where there are several, in some cases.

    Args:
        chance: what is drawn from.
        sweeps: their names.
        largest: cores that the largest trial asks for: a quota holds it.
        quotas: whether there may be quotas at all.
    """
    if len(sweeps) < 2 or chance.random() < _ALONE:
        return NOT_SHARED
    namespaces = chance.choice((("red", "red"), ("red", "blue"), ("red", "blue")))
    owners = {
        sweep: SweepOwner(namespaces[number % 2], chance.choice((1.0, 1.0, 3.0)), chance.choice((0, 0, 5)))
        for number, sweep in enumerate(sweeps)
    }
    limited = quotas and chance.random() < 0.4
    return Sharing(
        owners,
        {"red": largest + chance.choice((0.0, 0.5, 2.0))} if limited else {},
        patience_s=chance.choice((20.0, 600.0)),
        keeps_s=chance.choice((0.0, 5.0, 300.0)),
        settles_s=chance.choice((0.0, 5.0)),
        lapses_s=chance.choice((10.0, 120.0)),
    )


class SharedController:
    """Ticks the arbiter, then each sweep's engine, as a controller of a cluster does.

    Args:
        sharing: whose the sweeps are.
        world: what all of them run in.
        parts: what the engine of each sweep sees and acts on, and where it keeps its state.
        source: metrics of all trials.
        policy: what decides for each sweep, in its guards already.
        logs: what sees each action.
        stops: when each sweep ends early: nothing that owners or the arbiter ask keeps it from that.
    """

    def __init__(  # noqa: PLR0913 - the ports of a controller, each named
        self,
        sharing: Sharing,
        world: SimulatedWorld,
        parts: Mapping[str, tuple[World, StateStore]],
        source: MetricSource,
        policy: Policy[Any],
        *,
        logs: Sequence[ActionLog],
        stops: Mapping[str, StopRules],
    ) -> None:
        self._world = world
        self._arbitration = Arbitration(sharing.arbiter())
        self._members: list[Member] = []
        self._engines: list[Engine[Any]] = []
        for name, (seen, store) in parts.items():
            owner, left = sharing.owners[name], TimeLeft()
            quota = QuotaCheck(seen, world, owner.namespace, sharing)
            shared = SharedWorld(quota, left.of)
            own = frozenset(run.spec.id for run in world.runs if run.spec.sweep == name)
            engine = assemble(
                policy,
                shared,
                _OwnMetrics(source, own),
                store,
                observers=(left,),
                logs=tuple(logs),
                guard=lambda policy: policy,
                requests=AsksOfAll(_NobodyAsks(), shared),
                stops=stops,
            )
            self._engines.append(engine)
            self._members.append(
                Member(
                    name=name,
                    namespace=owner.namespace,
                    world=shared,
                    needs=_needs_of(policy),
                    weight=owner.weight,
                    priority=owner.priority,
                )
            )

    def tick(self, now: float) -> Tick:
        """Decide on all parts, then tick each engine; ``now`` is in seconds of the controller's clock."""
        self._arbitration.decide(self._world.now, self._members)
        ticks = [engine.tick(now) for engine in self._engines]
        wakes = [tick.wake_at for tick in ticks if tick.wake_at is not None]
        # What others gave back, or have no use for any more, is seen at the next round only: so there is always one.
        soon = now + 2.0 if any(self._waits()) else None
        return Tick(min([*wakes, *([soon] if soon is not None else [])], default=None), any(t.refused for t in ticks))

    def _waits(self) -> list[bool]:
        return [trial.waits for trial in self._world.trials() if not trial.phase.ended]


class QuotaCheck(WrappedWorld):
    """Checks that no place which the controller gives breaks the quota of its namespace."""

    def __init__(self, within: World, world: SimulatedWorld, namespace: str, sharing: Sharing) -> None:
        super().__init__(within)
        self._simulated = world
        self._most = sharing.quotas.get(namespace)
        self._sweeps = frozenset(name for name, owner in sharing.owners.items() if owner.namespace == namespace)

    def apply(self, action: Action) -> Outcome:
        """Hand ``action`` on, and check what the namespace has then."""
        outcome = self._world.apply(action)
        if self._most is not None and outcome.done and isinstance(action, Place):
            there = [trial for trial in self._simulated.trials() if trial.sweep in self._sweeps]
            held = sum(trial.base_cpu for trial in there if trial.live or trial.id == action.trial)
            if held > self._most + _SLACK:
                broken("no start breaks a quota", f"{action}: {held:g} of {self._most:g} cores")
        return outcome


class _OwnMetrics:
    """The newest samples of one sweep's trials."""

    def __init__(self, source: MetricSource, own: frozenset[TrialId]) -> None:
        self._source = source
        self._own = own

    def poll(self) -> Mapping[TrialId, Sample]:
        return {trial: sample for trial, sample in self._source.poll().items() if trial in self._own}


class _NobodyAsks:
    """Owners that ask nothing of their trials."""

    def asked(self) -> Mapping[str, Ask]:
        return {}


def _needs_of(policy: Policy[Any]) -> Callable[[], frozenset[type[Action]]]:
    return lambda: policy.needs


def without_owners_of_none(sharing: Sharing, sweeps: frozenset[str]) -> Sharing:
    """Return ``sharing`` of those sweeps alone that have trials."""
    owners = {name: owner for name, owner in sharing.owners.items() if name in sweeps}
    return replace(sharing, owners=owners) if len(owners) > 1 else NOT_SHARED
