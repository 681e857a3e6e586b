"""Who is on each node, while actions are chosen one after another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from controllers.core.model import Migrate, Node, NodeName, Phase, Place, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import Ledger


def heading(trial: Trial) -> frozenset[NodeName]:
    """Return the nodes that ``trial`` is on or is moving to."""
    if trial.phase is Phase.MOVING and trial.moving_to is not None:
        return frozenset({trial.moving_to})
    return frozenset(trial.nodes if trial.live else ())


@dataclass(slots=True)
class Occupancy:
    """The trials of each node: those on it, those moving there, and those that were placed and have yet to start."""

    ledger: Ledger
    _on: dict[NodeName, dict[TrialId, Trial]] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, starting: Mapping[TrialId, NodeName]) -> "Occupancy":
        """Return who is where in ``snapshot``; ``starting`` says where trials were placed that hold no node yet."""
        occupancy = cls(Ledger.of(snapshot))
        for name, trial in occupancy.ledger.trials.items():
            for node in sorted(heading(trial)):
                occupancy._on.setdefault(node, {})[name] = trial
            if name in starting:
                occupancy.place(trial, starting[name])
        return occupancy

    def ready(self) -> list[Node]:
        """Return the nodes that trials may be sent to, by name: ready, and with CPU to give."""
        return [node for _, node in sorted(self.ledger.nodes.items()) if node.ready and node.cpu > 0]

    def on(self, node: NodeName) -> Sequence[Trial]:
        """Return the trials of ``node``."""
        return tuple(self._on.get(node, {}).values())

    def place(self, trial: Trial, node: NodeName) -> None:
        """Count a first attempt on ``node``."""
        self.ledger.take(Place(trial.id, node))
        self._on.setdefault(node, {})[trial.id] = trial

    def move(self, trial: Trial, node: NodeName) -> None:
        """Count ``trial`` on ``node`` from now on; what it requested of its old one is free only once it has left."""
        self.ledger.take(Migrate(trial.id, node))
        for old in heading(trial):
            self._on[old].pop(trial.id, None)
        self._on.setdefault(node, {})[trial.id] = trial
