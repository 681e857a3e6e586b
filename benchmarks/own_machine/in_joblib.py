"""The trials in joblib, on its default backend: ``python -m benchmarks.own_machine.in_joblib``."""

from pathlib import Path

from joblib import Parallel, delayed

from benchmarks.own_machine.tools import Order
from benchmarks.own_machine.train import train


def main() -> None:
    """Train the trials of the order in this folder."""
    order = Order.read(Path())
    losses = Parallel(n_jobs=order.cores)(delayed(train)(words) for words in order.trials)
    print(f"least loss: {min(losses)}")


if __name__ == "__main__":
    main()
