"""A run of Ray Tune with its ASHA: ``python -m benchmarks.best_model.ray_process FOLDER ORDER``.

Ray starts its own processes from here: a server, a scheduler, and one for each trial at a time.
"""

import json
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.best_model.joining import join_groups


def main(folder: Path, order: dict[str, Any]) -> None:
    """Train all configurations, as far as Ray Tune lets them."""
    import ray  # noqa: PLC0415 - its CPU time counts, so it comes after this process has joined its group
    from ray import tune  # noqa: PLC0415
    from ray.tune.schedulers import ASHAScheduler  # noqa: PLC0415

    ray.init(num_cpus=order["workers"], include_dashboard=False, log_to_driver=False)
    tuner = tune.Tuner(
        partial(train, folder, order),
        param_space={"number": tune.grid_search(list(range(len(order["points"]))))},
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            scheduler=ASHAScheduler(max_t=order["steps"], **order["settings"]),
            max_concurrent_trials=order["workers"],
        ),
        run_config=tune.RunConfig(storage_path=str((folder / "ray").resolve()), verbose=0),
    )
    tuner.fit()
    ray.shutdown()


def train(folder: Path, order: dict[str, Any], config: dict[str, Any]) -> None:
    """Train one configuration, and note when it reported what."""
    import torch  # noqa: PLC0415 - as above
    from ray import tune  # noqa: PLC0415

    from benchmarks.best_model.notes import Notes  # noqa: PLC0415

    torch.set_num_threads(1)
    job, number = import_module(order["job"]), config["number"]
    given = job.parse([*order["args"], *(f"--{name}={value}" for name, value in order["points"][number].items())])
    training, notes = job.Training(given), Notes(folder, number)
    for step in range(given.steps):
        training.step(step)
        value = training.validate()["loss"]
        notes.report(value)
        tune.report({"loss": value})


if __name__ == "__main__":
    join_groups()
    main(Path(sys.argv[1]).resolve(), json.loads(sys.argv[2]))
