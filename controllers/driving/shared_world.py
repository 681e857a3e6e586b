"""The world of one of several sweeps that share their nodes: it shows what an arbiter leaves to this one."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from controllers.core.actions import Action, Migrate, Place
from controllers.core.model import Ask, Node, NodeKind, NodeName, Phase, Trial, TrialId
from controllers.core.ports import Outcome, Requests, World, refused
from controllers.driving.wrapped_world import WrappedWorld
from controllers.policies.arbiter import Amount, Claimant, Part
from controllers.policies.arbiter.demands import NOTHING

_LEAVING = frozenset({Phase.SUSPENDING, Phase.STOPPING})
TOO_MANY_MOVES = "other sweeps move trials already, or have their turn"
UNSEEN = "it came after the cluster was shared out: what it may have is decided with the next round"
OTHERS_FIRST = "other sweeps come first: a pod that waits at the scheduler would take the room that is meant for them"


class SharedWorld(WrappedWorld):
    """Shows the nodes without the room that is meant for other sweeps, and makes no more moves than are its part.

    As long as ``part`` is None it shows everything.

    Args:
        world: where this sweep's trials run.
        left_s: tells how many seconds a trial still needs, None where nobody knows.
    """

    def __init__(self, world: World, left_s: Callable[[TrialId], float | None] = lambda _: None) -> None:
        super().__init__(world)
        self._left_s = left_s
        self._placed: set[TrialId] = set()
        self._claims: frozenset[TrialId] | None = None
        self.part: Part | None = None

    def nodes(self) -> Sequence[Node]:
        """Return every node, less what of its free room is meant for others."""
        nodes = self._world.nodes()
        if self.part is None or not self.part.claims:
            return nodes
        meant = {name: self.part.meant_for_others(name) for name in self.part.claims}
        return [
            _without(node, meant[node.name]) if meant.get(node.name, NOTHING) != NOTHING else node for node in nodes
        ]

    def kinds(self) -> Sequence[NodeKind]:
        """Return the kinds of nodes that can come, of those with a bound as many as may come for this sweep.

        Whether an unknown one comes, the sweep whose turn is next may try.
        """
        kinds, part = self._world.kinds(), self.part
        if part is None:
            return kinds
        may_try = self._may_ask()
        return [
            replace(kind, more=min(kind.more, part.new_nodes.get(kind.name, 0)))
            if kind.name and math.isfinite(kind.more)
            else kind
            for kind in kinds
            if kind.name or may_try
        ]

    def whole_nodes(self) -> Sequence[Node]:
        """Return every node with all that the world within shows of it."""
        return self._world.nodes()

    def whole_kinds(self) -> Sequence[NodeKind]:
        """Return the kinds of nodes that can come, for this sweep or any other."""
        return self._world.kinds()

    def held(self) -> Mapping[NodeName, Amount]:
        """Return what this sweep's trials hold of each node now."""
        held: dict[NodeName, Amount] = {}
        for trial in self._world.trials():
            for name in trial.nodes if trial.live else ():
                held[name] = held.get(name, NOTHING) + Amount(trial.cpu, trial.memory, trial.devices)
        return held

    def apply(self, action: Action) -> Outcome:
        """Have the world within carry out ``action``, if it is neither one move too many nor an early start."""
        if self.part is not None and isinstance(action, Migrate) and self._moving() >= self.part.moves:
            return refused(TOO_MANY_MOVES)
        unseen = self.part is not None and self._claims is not None and action.trial not in self._claims
        if unseen and isinstance(action, Place):
            return refused(UNSEEN)
        asks_for_node = isinstance(action, Place) and not action.nodes and self._bound
        if asks_for_node and not self._may_ask():
            return refused(OTHERS_FIRST)
        outcome = self._world.apply(action)
        # One that asks for a node is in nobody's room yet, and keeps its claim.
        if outcome.done and isinstance(action, Place) and not asks_for_node:
            self._placed.add(action.trial)
        return outcome

    def claimants(self, asked: Mapping[str, Ask], origin: float = 0.0) -> tuple[Claimant, ...]:
        """Return the trials by which this sweep has a claim; one that its owner pauses has none while it waits.

        Args:
            asked: What owners ask, by short id.
            origin: When the sweep began, in seconds of the arbiter's clock.
        """
        unended = [trial for trial in self._world.trials() if not trial.phase.ended]
        self._placed &= {trial.id for trial in unended if not trial.live and not trial.gated}
        paused = {trial.id for trial in unended if self.short(trial.id) in asked} if asked else set[TrialId]()
        claiming = [trial for trial in unended if trial.live or trial.id not in paused]
        self._claims = frozenset(trial.id for trial in claiming)
        return tuple(self._claimant(trial, origin) for trial in claiming)

    def yielding(self) -> Mapping[str, Ask]:
        """Return what the arbiter asks of trials now, by short id."""
        if self.part is None:
            return {}
        return {self.short(trial): Ask.YIELD for trial in (*self.part.gives_back, *self.part.held_back)}

    def _claimant(self, trial: Trial, origin: float) -> Claimant:
        return Claimant(
            id=trial.id,
            each=Amount(trial.base_cpu, trial.memory, trial.devices),
            cpu=trial.cpu,
            workers=trial.workers,
            nodes=(trial.destination or trial.nodes) if trial.live else (),
            steady=trial.steady,
            leaving=trial.phase in _LEAVING,
            starting=trial.id in self._placed,
            held_back=trial.gated,
            since=origin + trial.submitted_at,
            attempt=trial.attempt,
            most_cpu=float(trial.threads) if trial.threads else float("inf"),
            left_s=self._left_s(trial.id),
            may_use=trial.may_use,
            least=trial.min_workers,
            comes_from=trial.nodes if trial.live and trial.destination else (),
        )

    @property
    def _bound(self) -> bool:
        """Whether others share the cluster, so that not every trial may wait at the scheduler."""
        return self.part is not None and self.part.asks is not None

    def _may_ask(self) -> bool:
        if self.part is None or self.part.asks is None:
            return True
        waiting = (trial for trial in self._world.trials() if not trial.phase.ended and not trial.live)
        return sum(not trial.gated and trial.id not in self._placed for trial in waiting) < self.part.asks

    def _moving(self) -> int:
        return sum(trial.phase is Phase.MOVING for trial in self._world.trials())


class AsksOfAll:
    """What owners ask of their trials, and what the arbiter asks of the others."""

    def __init__(self, owners: Requests, shared: SharedWorld) -> None:
        self._owners = owners
        self._shared = shared

    def asked(self) -> Mapping[str, Ask]:
        """Return it by the short id of each trial; what an owner asks goes first."""
        yielding, asked = self._shared.yielding(), self._owners.asked()
        return {**yielding, **asked} if yielding else asked


def _without(node: Node, meant: Amount) -> Node:
    """Return ``node`` with the room that is left beside what is meant for others."""
    room = None if node.room is None else max(0.0, node.room - meant.cpu)
    return replace(
        node,
        cpu=max(0.0, node.cpu - meant.cpu),
        memory=max(0.0, node.memory - meant.memory),
        devices=(node.devices - meant.devices).positive(),
        room=room,
    )
