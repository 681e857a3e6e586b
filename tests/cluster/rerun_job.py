"""A trial that notes at which step each of its attempts began, and may fail on its way."""

import argparse
import json
import os
import sys
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


def main() -> None:
    """Descend; fail where asked to, if the trial is the slow one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--fails-at", type=int, required=True)
    parser.add_argument("--fails", required=True)
    args = parser.parse_args()
    notes = Path(os.environ["SPECON_STATE_ROOT"]) / f"starts-{os.environ['SPECON_TRIAL_ID']}"
    weights = Weights()
    with trial(checkpoint_every_s=0.2) as t:
        t.track(weights)
        first = t.next_step
        for step in t.steps(args.steps):
            if step == first:
                with notes.open("a") as file:
                    file.write(f"{step} {os.environ['SPECON_ATTEMPT']} {os.environ['SPECON_NODE']}\n")
            if step == args.fails_at and args.lr < 0.1 and args.fails == "yes":
                sys.exit(3)
            time.sleep(0.1)
            weights.x -= args.lr * weights.x
            t.log(loss=weights.x**2, began=first)


if __name__ == "__main__":
    main()
