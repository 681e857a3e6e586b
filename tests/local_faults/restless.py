"""A policy that moves, resizes, suspends and stops trials as chance wants it, and comes to rest after a while."""

import random
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from controllers.core.actions import Action, Decision, Migrate, Place, Proposal, Resize, Stop, Suspend
from controllers.core.model import NodeName, Phase, Snapshot, Trial
from controllers.policies.kit.settings import PolicySettings

_EVERY_S = 0.3
_SHARES = (0.05, 0.2, 0.3)
_STOPS = 0.06
_PLACES = 0.6


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many actions were wanted so far."""

    count: int = 0


class Restless(PolicySettings):
    """Wants something for one trial at every other look, until it has done so often enough."""

    name: ClassVar[str] = "restless"
    summary: ClassVar[str] = "does whatever may be done"
    source: ClassVar[str] = "for tests"
    state_type: ClassVar[type[Wanted]] = Wanted
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Resize, Migrate, Suspend, Stop})
    placement: ClassVar[str] = "by chance"
    shares: ClassVar[str] = "by chance"
    moves: ClassVar[str] = "by chance"
    suspensions: ClassVar[str] = "by chance"
    stops: ClassVar[str] = "by chance"
    most_moves: ClassVar[int | None] = None

    seed: int = Field(default=0, ge=0, description="of its chance")
    actions: int = Field(default=8, ge=0, description="after which it only gives places")

    def decide(self, snapshot: Snapshot, state: Wanted) -> Decision[Wanted]:
        """Want something for one trial, or give it a place."""
        chance = random.Random(f"{self.seed} {state.count} {snapshot.now:.3f}")  # noqa: S311 - which trial comes next
        running = [trial for trial in snapshot.trials if trial.steady]
        wanted: list[Action] = [
            Place.on(node, trial) if (node := _any_node(snapshot, chance)) else Place(trial.id)
            for trial in snapshot.trials
            if trial.waits and chance.random() < _PLACES
        ]
        if running and state.count < self.actions and chance.random() < 0.7:
            wanted = [_any_action(chance.choice(running), snapshot, chance)]
            state = Wanted(state.count + 1)
        return Decision(state, tuple(Proposal(one, "by chance") for one in wanted), wake_at=snapshot.now + _EVERY_S)


def _any_action(trial: Trial, snapshot: Snapshot, chance: random.Random) -> Action:
    if chance.random() < _STOPS and not any(one.phase is Phase.STOPPED for one in snapshot.trials):
        return Stop(trial.id, "by chance")
    others = [node.name for node in snapshot.nodes if node.ready and node.name != trial.node]
    actions: list[Action] = [Resize(trial.id, chance.choice(_SHARES)), Suspend(trial.id)]
    actions += [Migrate.to(node, trial) for node in others] * 2
    return chance.choice(actions)


def _any_node(snapshot: Snapshot, chance: random.Random) -> NodeName | None:
    return chance.choice([None, *(node.name for node in snapshot.nodes if node.ready)])
