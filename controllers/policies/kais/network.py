"""The network: trials and nodes embedded by two rounds of messages over the graph that joins them. Pure.

Each trial is encoded alone. Each node gathers sum and mean of the trials that are joined to it, and the mean of all
nodes is the picture of the cluster. In the second round each trial hears from its node and of the cluster, and each
node from its trials and of the cluster. Sums and means are the same in any order, and means over nodes are the same on
a cluster of any size. Three small heads score places, moves, and ways to share a node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from controllers.policies.kais.grid import Floats, Ints, on_grid
from controllers.policies.kais.scene import (
    CLUSTER_FEATURES,
    MOVE_FEATURES,
    NODE_FEATURES,
    PAIR_FEATURES,
    TRIAL_FEATURES,
    USUAL,
    Scene,
)

WIDTH: Final = 16
HIDDEN: Final = 24
WAYS: Final = 5
"""Ways to share a node (``sharing``)."""
SHAPES: Final[Mapping[str, tuple[int, int]]] = {
    "trial": (len(TRIAL_FEATURES), WIDTH),
    "node": (len(NODE_FEATURES) + len(CLUSTER_FEATURES) + 2 * WIDTH, WIDTH),
    "trial_again": (3 * WIDTH, WIDTH),
    "node_again": (3 * WIDTH, WIDTH),
    "place_trial": (WIDTH, HIDDEN),
    "place_node": (WIDTH, HIDDEN),
    "place_pair": (len(PAIR_FEATURES), HIDDEN),
    "place_score": (HIDDEN, 1),
    "move_trial": (WIDTH, HIDDEN),
    "move_source": (WIDTH, HIDDEN),
    "move_target": (WIDTH, HIDDEN),
    "move_pair": (len(MOVE_FEATURES), HIDDEN),
    "move_score": (HIDDEN, 1),
    "share_node": (WIDTH, HIDDEN),
    "share_score": (HIDDEN, WAYS),
}
"""Rows and columns of each matrix."""
BIASES: Final[Mapping[str, int]] = {
    "trial": WIDTH,
    "node": WIDTH,
    "trial_again": WIDTH,
    "node_again": WIDTH,
    "place_pair": HIDDEN,
    "move_pair": HIDDEN,
    "move_score": 1,
    "share_node": HIDDEN,
    "share_score": WAYS,
}
"""Lengths of the vectors that are added to the products with the matrices of the same names."""


@dataclass(frozen=True)
class PolicyNetwork:
    """Weights by name, on the grid: matrices as in ``SHAPES``, vectors as in ``BIASES``."""

    matrices: Mapping[str, Floats]
    biases: Mapping[str, Floats]

    def layer(self, name: str, inputs: Floats) -> Floats:
        """Return what a layer makes of the rows of ``inputs``."""
        return on_grid(np.maximum(inputs @ self.matrices[name] + self.biases[name], 0.0))


class Embedding:
    """The trials and nodes of a scene as the network sees them, kept up while places and moves are counted in.

    The picture of the cluster stays as it was at the beginning; what a place or a move changes is its own nodes.
    """

    def __init__(self, network: PolicyNetwork, scene: Scene) -> None:
        self._network, self.scene = network, scene
        nodes = len(scene.nodes)
        self.trial_rows = scene.trial_rows()
        self.trials = network.layer("trial", self.trial_rows)
        self.nodes = np.zeros((nodes, WIDTH))
        self._cluster = np.zeros(WIDTH)
        self.node_rows = scene.node_rows()
        every = range(nodes)
        self._first_round(every)
        self._cluster = on_grid(self.nodes.sum(axis=0) / nodes)
        self.trials_again = np.zeros_like(self.trials)
        self.nodes_again = np.zeros_like(self.nodes)
        self._hear(np.arange(len(scene.trials)))
        self._second_round(every)
        self._place_nodes = self.nodes_again @ network.matrices["place_node"]

    def update(self, *nodes: int) -> None:
        """Look again at ``nodes``, to or from which a trial has gone."""
        self.node_rows = self.scene.node_rows()
        self._first_round(nodes)
        self._hear(np.flatnonzero(np.isin(self.scene.at, nodes)))
        self._second_round(nodes)
        chosen = list(nodes)
        self._place_nodes[chosen] = self.nodes_again[chosen] @ self._network.matrices["place_node"]

    def places(self, trial: int, pairs: Floats) -> Floats:
        """Return the score of each node as a place for ``trial``; ``pairs`` are the features of both together."""
        weights = self._network.matrices
        hidden = pairs @ weights["place_pair"] + self._network.biases["place_pair"] + self._place_nodes
        hidden = on_grid(np.maximum(hidden + self.trials_again[trial] @ weights["place_trial"], 0.0))
        return np.asarray((hidden @ weights["place_score"])[:, 0])

    def moves(self, trials: Ints, targets: Ints, pairs: Floats) -> Floats:
        """Return the score of each move, of the trials from where they are; to stay has 0."""
        weights = self._network.matrices
        sources = self.scene.at[trials]
        hidden = pairs @ weights["move_pair"] + self._network.biases["move_pair"]
        hidden = hidden + self.trials_again[trials] @ weights["move_trial"]
        hidden = hidden + self.nodes_again[sources] @ weights["move_source"]
        hidden = on_grid(np.maximum(hidden + self.nodes_again[targets] @ weights["move_target"], 0.0))
        return np.asarray((hidden @ weights["move_score"] + self._network.biases["move_score"])[:, 0])

    def ways(self, nodes: Ints) -> Floats:
        """Return the score of each way to share, for each of ``nodes``."""
        hidden = self._network.layer("share_node", self.nodes_again[nodes])
        return hidden @ self._network.matrices["share_score"] + self._network.biases["share_score"]

    def _first_round(self, nodes: Sequence[int]) -> None:
        chosen = list(nodes)
        told = np.broadcast_to(self.scene.cluster, (len(chosen), len(CLUSTER_FEATURES)))
        inputs = np.concatenate([self.node_rows[chosen], told, *self._gather(self.trials, chosen)], axis=1)
        self.nodes[chosen] = self._network.layer("node", inputs)

    def _hear(self, trials: Ints) -> None:
        at = self.scene.at[trials]
        heard = np.where((at >= 0)[:, None], self.nodes[at], 0.0)
        cluster = np.broadcast_to(self._cluster, (len(trials), WIDTH))
        inputs = np.concatenate([self.trials[trials], heard, cluster], axis=1)
        self.trials_again[trials] = self._network.layer("trial_again", inputs)

    def _second_round(self, nodes: Sequence[int]) -> None:
        chosen = list(nodes)
        cluster = np.broadcast_to(self._cluster, (len(chosen), WIDTH))
        mean = self._gather(self.trials_again, chosen)[1]
        self.nodes_again[chosen] = self._network.layer(
            "node_again", np.concatenate([self.nodes[chosen], mean, cluster], axis=1)
        )

    def _gather(self, values: Floats, nodes: Sequence[int]) -> tuple[Floats, Floats]:
        """Return sum and mean of the rows of ``values`` of the trials of each node."""
        place = np.full(len(self.scene.nodes) + 1, -1)
        place[list(nodes)] = np.arange(len(nodes))
        where = place[self.scene.at]  # the last place is that of trials that are nowhere
        there = where >= 0
        sums, counts = np.zeros((len(nodes), values.shape[1])), np.bincount(where[there], minlength=len(nodes))
        np.add.at(sums, where[there], values[there])
        return on_grid(sums / USUAL), on_grid(sums / np.maximum(counts, 1)[:, None])
