"""A trial as one writes it without us: a network of two layers, in plain numpy. It trains, and prints its loss.

    python -m benchmarks.own_machine.train --lr 0.1 --work 2 --stamps FOLDER

How much a trial computes is fixed by ``--work``, so that it is the same for every tool. A unit took about a second of
a core where it was calibrated.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.own_machine.stamps import Stamps

Array = npt.NDArray[np.float32]
STEPS: Final = 200
BATCHES_PER_UNIT: Final = 8000
_BATCH: Final = 64
_INPUTS: Final = 64
_HIDDEN: Final = 64
_CLASSES: Final = 10
_EXAMPLES: Final = 4096


class Training:
    """What a trial trains: ``work`` units in ``STEPS`` steps, on ``memory`` MB of examples where that is not 0."""

    def __init__(self, lr: float, work: float, memory: int) -> None:
        chance = np.random.default_rng(0)
        inputs = chance.standard_normal((_EXAMPLES, _INPUTS), dtype=np.float32)
        teacher = chance.standard_normal((_INPUTS, _CLASSES), dtype=np.float32)
        self._wanted: Array = np.eye(_CLASSES, dtype=np.float32)[(inputs @ teacher).argmax(axis=1)]
        rows = memory * 10**6 // inputs[0].nbytes // _EXAMPLES * _EXAMPLES
        self._inputs: Array = np.resize(inputs, (max(rows, _EXAMPLES), _INPUTS))
        self._first: Array = chance.normal(0, 0.1, (_INPUTS, _HIDDEN)).astype(np.float32)
        self._second: Array = chance.normal(0, 0.1, (_HIDDEN, _CLASSES)).astype(np.float32)
        self._lr, self._batches = np.float32(lr), max(1, round(work * BATCHES_PER_UNIT / STEPS))

    def save(self, folder: Path) -> None:
        """Write what was learnt."""
        np.savez(folder / "layers.npz", first=self._first, second=self._second)

    def load(self, folder: Path) -> None:
        """Take back what was written."""
        with np.load(folder / "layers.npz") as layers:
            self._first, self._second = layers["first"], layers["second"]

    def step(self, number: int) -> float:
        """Learn from the batches of a step, spread over all examples, and return the loss."""
        apart = max(1, len(self._inputs) // (_BATCH * self._batches * STEPS)) * _BATCH
        for batch in range(number * self._batches, (number + 1) * self._batches):
            self._learn(batch * apart % len(self._inputs))
        return self.loss()

    def loss(self) -> float:
        """Return the mean cross-entropy over some of the examples."""
        some = slice(0, 4 * _BATCH)
        _, told = self._told(self._inputs[some])
        return float(-np.log((told * self._wanted[some]).sum(axis=1) + 1e-9).mean())

    def _told(self, inputs: Array) -> tuple[Array, Array]:
        """Return the hidden layer, and the probability of each class."""
        hidden = np.maximum(inputs @ self._first, 0)
        scores = hidden @ self._second
        parts = np.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, parts / parts.sum(axis=1, keepdims=True)

    def _learn(self, since: int) -> None:
        inputs = self._inputs[since : since + _BATCH]
        hidden, told = self._told(inputs)
        place = since % _EXAMPLES
        error = (told - self._wanted[place : place + _BATCH]) / _BATCH
        back = (error @ self._second.T) * (hidden > 0)
        self._second -= self._lr * hidden.T @ error
        self._first -= self._lr * inputs.T @ back


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a trial; those of the command line where ``words`` is None."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--work", type=float, default=1.0, help="units of work")
    parser.add_argument("--memory", type=int, default=0, help="MB of examples")
    parser.add_argument("--stamps", type=Path, required=True, help="folder that takes when the trial did what")
    return parser.parse_args(words)


def train(words: Sequence[str] | None = None) -> float:
    """Train, and return the loss."""
    given = parse(words)
    with Stamps.of(given) as stamps:
        training = Training(given.lr, given.work, given.memory)
        for step in range(STEPS):
            loss = training.step(step)
            stamps.stepped()
        stamps.ended(loss)
    return loss


if __name__ == "__main__":
    print(f"loss: {train()}")
