"""How a choice is made of scores, and when there is none to be made. Pure."""

from typing import Final, Protocol

import numpy as np

from controllers.policies.kais.grid import Bools, Floats, Ints
from controllers.policies.kais.network import Embedding
from controllers.policies.kais.scene import Scene
from controllers.policies.kais.weights import RANGES, Trained

MARGIN = 0.02
"""How far beyond what it was trained on a feature may lie: all of them run from 0 to 1."""


class Chooser(Protocol):
    """Chooses by scores; training puts one in place that tries things out, and keeps what it was asked."""

    def place(self, embedding: Embedding, trial: int, pairs: Floats, scores: Floats) -> int:
        """Return the number of the node for ``trial``, none of those with a score of -inf."""
        ...

    def move(self, embedding: Embedding, trials: Ints, targets: Ints, rows: Floats, scores: Floats) -> int:
        """Return the number of the move, or that of ``scores`` for none; the rows are the moves' features."""
        ...

    def ways(self, embedding: Embedding, nodes: Ints, scores: Floats) -> Ints:
        """Return the number of the way to share for each of ``nodes``, which have a row of ``scores`` each."""
        ...


class Best:
    """Takes what scores most; of several the first, and so the first by name."""

    def place(self, embedding: Embedding, trial: int, pairs: Floats, scores: Floats) -> int:  # noqa: ARG002 - Chooser's shape
        """Return the node that scores most."""
        return int(np.argmax(scores))

    def move(self, embedding: Embedding, trials: Ints, targets: Ints, rows: Floats, scores: Floats) -> int:  # noqa: ARG002 - Chooser's shape
        """Return the move that scores most, if that is more than to stay has."""
        best = int(np.argmax(scores))
        return best if scores[best] > 0 else len(scores)

    def ways(self, embedding: Embedding, nodes: Ints, scores: Floats) -> Ints:  # noqa: ARG002 - Chooser's shape
        """Return the way that scores most for each node."""
        return np.asarray(np.argmax(scores, axis=1))


BEST: Final = Best()


def strange_cluster(trained: Trained, scene: Scene) -> str | None:
    """Return which feature of the cluster or of a node lies outside of what was trained on; None where none does."""
    return strange(trained, "cluster", scene.cluster[None]) or strange(trained, "node", scene.node_rows())


def strange(trained: Trained, kind: str, rows: Floats) -> str | None:
    """Return in words the first feature of ``rows`` that lies outside of what was trained on; None where none does."""
    least, most = trained.ranges[kind]
    outside: Bools = (rows < least - MARGIN) | (rows > most + MARGIN)
    if not outside.any():
        return None
    row, column = (int(place) for place in np.argwhere(outside)[0])
    told = f"{kind} feature {RANGES[kind][column]!r} is {rows[row, column]:.2f}"
    return f"{told}, and it was trained on {least[column]:.2f} to {most[column]:.2f}"
