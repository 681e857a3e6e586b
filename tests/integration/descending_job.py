"""A training job small enough for many tests: gradient descent on a parabola, with real CPU work and a known end."""

import argparse
import json
import time
from pathlib import Path

from mlflow_hooks import trial


class Weights:
    """What the descent must not lose."""

    def __init__(self) -> None:
        self.x = 1.0

    def save(self, folder: Path) -> None:
        """Write the weights."""
        (folder / "weights.json").write_text(json.dumps(self.x))

    def load(self, folder: Path) -> None:
        """Take them back."""
        self.x = json.loads((folder / "weights.json").read_text())


def work(cpu_s: float) -> None:
    """Be busy for ``cpu_s`` CPU seconds."""
    until = time.process_time() + cpu_s
    while time.process_time() < until:
        pass


def main() -> None:
    """Descend."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--cpu-ms", type=float, default=10.0)
    parser.add_argument("--metric", default="loss")
    args = parser.parse_args()
    weights = Weights()
    with trial(checkpoint_every_s=1.0) as t:
        t.track(weights)
        for _ in t.steps(args.steps):
            work(args.cpu_ms / 1000)
            weights.x -= args.lr * weights.x
            t.log({args.metric: weights.x**2})


if __name__ == "__main__":
    main()
