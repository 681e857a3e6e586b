"""A trial that costs little beside its training: a network of two layers learns handwritten digits, in numpy.

    python -m workflows.jobs.digits --lr 0.1 --hidden 64 --steps 100
    python -m workflows.jobs.digits --size

``--size`` trains nothing. It measures this machine, and prints how large ``workflows/digits_sweep.py`` should be.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Final

import numpy as np

from mlflow_hooks import trial
from workflows.jobs.data import DIGITS, Array, digit_images

HIDDEN: Final = 128
STEPS: Final = 10, 20, 40, 100
"""What trials of the sweep choose their steps from."""
_MEASURED_S: Final = 1.0
_SWEEP_S: Final = 60
"""Seconds for which the sweep would keep all cores busy if all of its networks were large ones."""
_TRIALS_PER_CORE, _MOST_TRIALS = 8, 64


class DigitsNetwork:
    """Two layers; what a move must bring along."""

    def __init__(self, hidden: int = HIDDEN) -> None:
        chance = np.random.default_rng(0)
        self.first = chance.normal(0, 0.1, (64, hidden)).astype(np.float32)
        self.second = chance.normal(0, 0.1, (hidden, DIGITS)).astype(np.float32)

    def save(self, folder: Path) -> None:
        """Write both layers."""
        np.savez(folder / "layers.npz", first=self.first, second=self.second)

    def load(self, folder: Path) -> None:
        """Take both layers back."""
        with np.load(folder / "layers.npz") as layers:
            self.first, self.second = layers["first"], layers["second"]

    def told(self, inputs: Array) -> tuple[Array, Array]:
        """Return the hidden layer, and the probability of each digit."""
        hidden = np.maximum(inputs @ self.first, 0)
        scores = hidden @ self.second
        parts = np.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, parts / parts.sum(axis=1, keepdims=True)

    def learn(self, inputs: Array, wanted: Array, lr: float) -> None:
        """Go one step down the gradient of all examples."""
        hidden, told = self.told(inputs)
        error = (told - wanted) / len(wanted)
        back = (error @ self.second.T) * (hidden > 0)
        self.second -= lr * hidden.T @ error
        self.first -= lr * inputs.T @ back


def passes_per_second() -> float:
    """Return how many passes over the data a core makes in a second of its own time, whatever else the machine does."""
    data, network = digit_images(), DigitsNetwork()
    wanted = np.eye(DIGITS, dtype=np.float32)[data.train.targets]
    began, passes = time.process_time(), 0
    while (used := time.process_time() - began) < _MEASURED_S:
        network.learn(data.train.inputs, wanted, 0.1)
        passes += 1
    return passes / used


def size(pace: float, cores: int) -> str:
    """Return the variables that size the sweep for ``cores`` cores that make ``pace`` passes in a second each."""
    trials = min(_MOST_TRIALS, _TRIALS_PER_CORE * cores)
    passes = max(1, round(pace * _SWEEP_S * cores / trials / statistics.fmean(STEPS)))
    return f"DEMO_TRIALS={trials} DEMO_PASSES={passes}"


def main() -> None:
    """Train, and log the validation loss of each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--hidden", type=int, default=HIDDEN)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--passes", type=int, default=30, help="over the data, in each step")
    parser.add_argument("--size", action="store_true", help="print how large the sweep should be, and train nothing")
    given = parser.parse_args()
    if given.size:
        sys.stdout.write(f"{size(passes_per_second(), os.cpu_count() or 1)}\n")
        return
    data, network = digit_images(), DigitsNetwork(given.hidden)
    wanted = np.eye(DIGITS, dtype=np.float32)[data.train.targets]
    with trial() as t:
        t.track(network)
        for _ in t.steps(given.steps):
            for _ in range(given.passes):
                network.learn(data.train.inputs, wanted, given.lr)
            _, told = network.told(data.valid.inputs)
            right = told[np.arange(len(told)), data.valid.targets]
            t.log(
                loss=float(-np.log(right + 1e-9).mean()), accuracy=float((told.argmax(1) == data.valid.targets).mean())
            )


if __name__ == "__main__":
    main()
