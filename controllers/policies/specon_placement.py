"""Algorithm 4 of the thesis: which node a converged trial is sent to."""

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.model import Category, Migrate, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.capacity import Ledger

WEIGHTS: Mapping[Category, float] = {Category.PROGRESSING: 2.0, Category.WATCHING: 1.5, Category.CONVERGED: 1.0}
"""Published weights (thesis ch. 6.2.1): what is still growing quickly counts most."""


@dataclass(slots=True)
class Board:
    """Where each live trial is or is heading, while requests are served one after another."""

    ledger: Ledger
    categories: Mapping[TrialId, Category]
    places: dict[TrialId, frozenset[NodeName]]

    @classmethod
    def of(cls, snapshot: Snapshot, categories: Mapping[TrialId, Category]) -> "Board":
        """Return the board of what ``snapshot`` shows; a moving trial counts where it is heading."""
        places = {trial.id: nodes for trial in snapshot.trials if (nodes := _place(trial))}
        return cls(Ledger.of(snapshot), categories, places)

    def on(self, node: NodeName) -> list[TrialId]:
        """Return the trials on ``node``, by name."""
        return sorted(trial for trial, nodes in self.places.items() if node in nodes)

    def ready(self) -> list[NodeName]:
        """Return the nodes that trials may be sent to, by name."""
        return sorted(name for name, node in self.ledger.nodes.items() if node.ready)

    def score(self, node: NodeName) -> float:
        """Return ``S_w = 2|PC| + 1.5|WC| + 1|CC|`` of ``node`` (Algorithm 4, line 3)."""
        return sum(WEIGHTS[self.categories[trial]] for trial in self.on(node))

    def unconverged(self, node: NodeName) -> int:
        """Return ``|PC| + |WC|`` of ``node``."""
        return sum(self.categories[trial] is not Category.CONVERGED for trial in self.on(node))

    def move(self, trial: TrialId, node: NodeName) -> None:
        """Count ``trial`` on ``node`` from now on."""
        self.ledger.take(Migrate(trial, node))
        self.places[trial] = frozenset({node})


def destination(board: Board, trial: Trial, *, strict: bool) -> NodeName | None:
    """Return where ``trial`` should run: its own node where it is among the best, or the best other one.

    The best are the ready nodes with room that have the least score; among several, the one with the
    least of its CPU in use, and then the first by name.

    Returns:
        None where no node may take it, or (``strict``) where the destination's score, with the
        trial, would not be below the score of the node it leaves.
    """
    own = trial.node
    candidates = [node for node in board.ready() if node == own or board.ledger.fits(trial, node)]
    least = min((board.score(node) for node in candidates), default=0.0)
    best = [node for node in candidates if board.score(node) == least]
    if not best or own in best:
        return own if best else None
    if strict and own is not None and least + WEIGHTS[Category.CONVERGED] >= board.score(own):
        return None
    return min(best, key=lambda node: (_use(board, node), node))


def _use(board: Board, node: NodeName) -> float:
    place = board.ledger.nodes[node]
    return place.cpu_used / place.cpu if place.cpu > 0 else 1.0


def _place(trial: Trial) -> frozenset[NodeName]:
    if trial.phase is Phase.MOVING and trial.moving_to is not None:
        return frozenset({trial.moving_to})
    return frozenset(trial.nodes if trial.live else ())
