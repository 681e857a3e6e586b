"""The trials of these tests: gradient descent on a parabola, so light that a node may run several, with a known end.

It needs nothing but Python and the hooks, and is given to the pods as a file.
"""

import argparse
import json
import signal
import time
from pathlib import Path

from mlflow_hooks import trial

BEGINS = "begins at step "


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


def main() -> None:
    """Descend, slowly but with little work: waiting costs a node nothing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--pause-ms", type=float, required=True)
    parser.add_argument("--deaf", choices=("yes", "no"), required=True)
    args = parser.parse_args()
    weights = Weights()
    with trial(checkpoint_every_s=2.0) as t:
        if args.deaf == "yes":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        t.track(weights)
        print(f"{BEGINS}{t.next_step}", flush=True)  # noqa: T201 - for whoever reads the pod's log
        for _ in t.steps(args.steps):
            time.sleep(args.pause_ms / 1000)
            weights.x -= args.lr * weights.x
            t.log(loss=weights.x**2)


if __name__ == "__main__":
    main()
