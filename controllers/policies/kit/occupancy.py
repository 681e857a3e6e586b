"""Which trials are on each node, while actions are chosen one after another."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from controllers.core.actions import Migrate, Place
from controllers.core.model import Category, Node, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import Capacity

_WEIGHTS: Mapping[Category, float] = {Category.PROGRESSING: 2.0, Category.WATCHING: 1.5, Category.CONVERGED: 1.0}


def weight(categories: Iterable[Category]) -> float:
    """Return ``2 |PC| + 1.5 |WC| + 1 |CC|`` (thesis ch. 6.2.1): what still grows quickly counts most."""
    return sum(_WEIGHTS[category] for category in categories)


def heading(trial: Trial) -> frozenset[NodeName]:
    """Return the nodes that ``trial`` is moving to, else those that it is on."""
    if trial.phase is Phase.MOVING and trial.moving_to is not None:
        return frozenset(trial.destination)
    return frozenset(trial.nodes if trial.live else ())


@dataclass(slots=True)
class Occupancy:
    """The trials of each node: those on it, those moving there, and those that were placed and have yet to start."""

    capacity: Capacity
    _on: dict[NodeName, dict[TrialId, Trial]] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, starting: Mapping[TrialId, NodeName] | None = None) -> "Occupancy":
        """Return who is where in ``snapshot``; ``starting`` says where trials were placed that hold no node yet."""
        occupancy = cls(Capacity.of(snapshot))
        for trial in snapshot.unended:
            for node in sorted(heading(trial)):
                occupancy._on.setdefault(node, {})[trial.id] = trial
            if starting and trial.id in starting:
                occupancy.capacity.expect(trial, starting[trial.id])
                occupancy._on.setdefault(starting[trial.id], {})[trial.id] = trial
        return occupancy

    def ready(self) -> list[Node]:
        """Return the nodes that trials may be sent to, by name: ready, and with CPU to give."""
        return [node for node in self.capacity.nodes.values() if node.ready and node.cpu > 0]

    def on(self, node: NodeName) -> Sequence[Trial]:
        """Return the trials of ``node``."""
        return tuple(self._on.get(node, {}).values())

    def count(self, node: NodeName) -> int:
        """Return how many trials ``node`` has."""
        return len(self._on.get(node, {}))

    def place(self, trial: Trial, node: NodeName) -> None:
        """Count a first attempt on ``node``."""
        self.capacity.apply(Place.on(node, trial))
        self._on.setdefault(node, {})[trial.id] = trial

    def move(self, trial: Trial, node: NodeName) -> None:
        """Count ``trial`` on ``node`` from now on. Its old node keeps its request until the attempt there has ended."""
        self.capacity.apply(Migrate.to(node, trial))
        for old in heading(trial):
            self._on[old].pop(trial.id, None)
        self._on.setdefault(node, {})[trial.id] = trial
