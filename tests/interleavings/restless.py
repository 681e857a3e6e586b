"""A policy that does whatever may be done, as chance wants it, and comes to rest after a while."""

import random
from dataclasses import dataclass
from typing import Final

from controllers.core.actions import Action, Decision, Migrate, Place, Proposal, Resize, Stop, Suspend
from controllers.core.model import NodeName, Phase, Snapshot, Trial
from tests.interleavings.checks import told

MOST_ACTIONS: Final = 14
_SHARES: Final = (0.05, 0.2, 0.3)


@dataclass(frozen=True)
class Wanted:
    """How many actions were wanted so far, and the last of them by their names."""

    count: int = 0
    wanted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Restless:
    """Acts on a trial at every other look, until it has done so often enough; then it only gives places.

    Attributes:
        seed: of its chance; each decision has a chance of its own.
    """

    seed: int
    name: str = "restless"
    needs: frozenset[type[Action]] = frozenset({Place, Resize, Migrate, Suspend, Stop})

    @property
    def state_type(self) -> type[Wanted]:
        """Type of the state."""
        return Wanted

    def initial(self) -> Wanted:
        """Return the state before the first decision."""
        return Wanted()

    def decide(self, snapshot: Snapshot, state: Wanted) -> Decision[Wanted]:
        """Want something for one trial."""
        chance = random.Random(f"{self.seed} {state.count} {snapshot.now:.3f}")  # noqa: S311 - which trial comes next
        waiting = [trial for trial in snapshot.trials if trial.waits]
        running = [trial for trial in snapshot.trials if trial.steady]
        actions: list[Action] = []
        if waiting and chance.random() < 0.5:
            trial, node = chance.choice(waiting), _any_node(snapshot, chance)
            actions.append(Place(trial.id) if node is None else Place.on(node, trial))
        elif running and state.count < MOST_ACTIONS and chance.random() < 0.5:
            actions.append(_any_action(chance.choice(running), snapshot, chance))
        if not actions:
            return Decision(state, wake_at=snapshot.now + 1.0)
        after = Wanted(state.count + len(actions), tuple(map(told, actions)))
        return Decision(after, tuple(Proposal(action, "chance") for action in actions), wake_at=snapshot.now + 1.0)


def _any_action(trial: Trial, snapshot: Snapshot, chance: random.Random) -> Action:
    others = [node.name for node in snapshot.nodes if node.ready and node.name != trial.node]
    ended = sum(one.phase is Phase.STOPPED for one in snapshot.trials)
    actions: list[Action] = [Resize(trial.id, chance.choice(_SHARES)), Suspend(trial.id)]
    actions += [Migrate.to(node, trial) for node in others] * 2
    if not ended and chance.random() < 0.2:
        actions.append(Stop(trial.id, "by chance"))
    return chance.choice(actions)


def _any_node(snapshot: Snapshot, chance: random.Random) -> NodeName | None:
    return chance.choice([None, *(node.name for node in snapshot.nodes if node.ready)])
