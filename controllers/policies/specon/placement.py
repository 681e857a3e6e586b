"""Algorithm 4 of the thesis: which node a converged trial is sent to."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.core.model import Category, Migrate, NodeName, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import Ledger
from controllers.policies.kit.category_weights import WEIGHTS
from controllers.policies.kit.occupancy import heading


@dataclass(slots=True)
class Board:
    """Where each live trial is or is heading, while requests are served one after another.

    A move changes two nodes, so the order of all nodes is kept up instead of being found anew for each request:
    there may be as many requests as trials.
    """

    ledger: Ledger
    categories: Mapping[TrialId, Category]
    places: dict[TrialId, frozenset[NodeName]]
    _on: dict[NodeName, set[TrialId]] = field(init=False)
    _ranked: list[tuple[float, float, NodeName]] = field(init=False)
    _full: dict[tuple[float, float], set[NodeName]] = field(init=False)

    def __post_init__(self) -> None:
        self._on, self._full = {}, {}
        for trial, nodes in self.places.items():
            for node in nodes:
                self._on.setdefault(node, set()).add(trial)
        self._ranked = sorted(self._rank(node) for node in self.ready())

    @classmethod
    def of(cls, snapshot: Snapshot, categories: Mapping[TrialId, Category]) -> "Board":
        """Return the board of what ``snapshot`` shows; a moving trial counts where it is heading."""
        places = {trial.id: nodes for trial in snapshot.unended if (nodes := heading(trial))}
        return cls(Ledger.of(snapshot), categories, places)

    def on(self, node: NodeName) -> list[TrialId]:
        """Return the trials on ``node``, by name."""
        return sorted(self._on.get(node, ()))

    def count(self, node: NodeName) -> int:
        """Return how many trials are on ``node``."""
        return len(self._on.get(node, ()))

    def ready(self) -> list[NodeName]:
        """Return the nodes that trials may be sent to, by name."""
        return sorted(name for name, node in self.ledger.nodes.items() if node.ready)

    def is_ready(self, node: NodeName) -> bool:
        """Return whether trials may be sent to ``node``."""
        return node in self.ledger.nodes and self.ledger.nodes[node].ready

    def score(self, node: NodeName) -> float:
        """Return ``S_w = 2|PC| + 1.5|WC| + 1|CC|`` of ``node`` (Algorithm 4, line 3)."""
        return sum(WEIGHTS[self.categories[trial]] for trial in self._on.get(node, ()))

    def unconverged(self, node: NodeName) -> int:
        """Return ``|PC| + |WC|`` of ``node``."""
        return sum(self.categories[trial] is not Category.CONVERGED for trial in self._on.get(node, ()))

    def best_for(self, trial: Trial) -> tuple[NodeName, float] | None:
        """Return the ready node of least score that is the trial's own or has room for it, and that score.

        Among several it is the one with the least of its CPU in use, and then the first by name. None where no node
        may take it.
        """
        full = self._full.setdefault(
            (max(trial.cpu, trial.base_cpu) * trial.workers, trial.memory * trial.workers), set()
        )
        for score, _, node in self._ranked:
            if node == trial.node:
                return node, score
            if node in full:
                continue
            if self.ledger.fits(trial, node):
                return node, score
            full.add(node)  # for good: a move takes no load off a node before its attempt has ended
        return None

    def move(self, trial: TrialId, node: NodeName) -> None:
        """Count ``trial`` on ``node`` from now on."""
        changed = {*self.places[trial], node}
        self._unrank(changed)
        for old in self.places[trial]:
            self._on[old].discard(trial)
        self._on.setdefault(node, set()).add(trial)
        self.ledger.take(Migrate(trial, node))
        self.places[trial] = frozenset({node})
        for one in filter(self.is_ready, changed):
            insort(self._ranked, self._rank(one))

    def _unrank(self, nodes: Iterable[NodeName]) -> None:
        for node in filter(self.is_ready, nodes):
            del self._ranked[bisect_left(self._ranked, self._rank(node))]

    def _rank(self, node: NodeName) -> tuple[float, float, NodeName]:
        place = self.ledger.nodes[node]
        return self.score(node), place.cpu_used / place.cpu if place.cpu > 0 else 1.0, node


def destination(board: Board, trial: Trial, *, strict: bool) -> NodeName | None:
    """Return where ``trial`` should run: its own node where it is among the best, or the best other one.

    The best are the ready nodes with room that have the least score; among several, the one with the
    least of its CPU in use, and then the first by name.

    Returns:
        None where no node may take it, or (``strict``) where the destination's score, with the
        trial, would not be below the score of the node it leaves.
    """
    own, best = trial.node, board.best_for(trial)
    if best is None:
        return None
    node, least = best
    if own is None:
        return node
    if board.is_ready(own) and board.score(own) == least:
        return own
    if strict and least + WEIGHTS[Category.CONVERGED] >= board.score(own):
        return None
    return node
