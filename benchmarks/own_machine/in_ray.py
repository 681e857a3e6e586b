"""The trials in Ray Tune, with one CPU for each: ``python -m benchmarks.own_machine.in_ray``."""

from pathlib import Path
from typing import Any

import ray
from ray import tune

from benchmarks.own_machine.tools import Order


def train_words(config: dict[str, Any]) -> dict[str, float]:
    """Train one trial."""
    from benchmarks.own_machine.train import train  # noqa: PLC0415 - in the trial's process only

    return {"loss": train(config["words"])}


def main() -> None:
    """Train the trials of the order in this folder."""
    order = Order.read(Path())
    ray.init(num_cpus=order.cores, include_dashboard=False, log_to_driver=False)
    tuner = tune.Tuner(
        train_words,
        param_space={"words": tune.grid_search(order.trials)},
        tune_config=tune.TuneConfig(metric="loss", mode="min"),
        run_config=tune.RunConfig(storage_path=str(Path("ray").resolve()), verbose=0),
    )
    results = tuner.fit()
    ray.shutdown()
    print(f"least loss: {results.get_best_result().metrics['loss']}")


if __name__ == "__main__":
    main()
