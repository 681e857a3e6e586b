"""Records the learning curves that ``specon simulate C1`` and the like draw from: real networks, really trained.

    python -m benchmarks.learning_curves [--configurations 120] [--processes 2]

For each of eight sets of data and three schedules of the learning rate it draws that many configurations of
``workflows.jobs.pytorch.tuned``, trains each for 50 steps on one thread, and keeps loss and CPU seconds of each step.
It takes about an hour. Stop it at any time: the same command goes on with what is missing.
"""

import argparse
import csv
import gzip
import math
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random

import torch
from rich.console import Console

from controllers.lab.simulation.experiments.curve_families import TABLE
from controllers.lab.worker_pool import worker_pool
from hera_specon.cli.output import progress_bar
from workflows.jobs.pytorch.tuned import DATA, OPTIMIZERS, SCHEDULES, Training, Tuned

TUNED = ("lr", "width", "depth", "batch_size", "weight_decay", "dropout", "optimizer", "momentum")
COLUMNS = ("task", "config", "epoch", "seconds", "loss", *(f"parameter.{name}" for name in TUNED))
PARTS = Path(".specon") / "learning-curves"


def drawn(data: str, schedule: str, number: int) -> Tuned:
    """Return the settings of a configuration: the same ones each time."""
    chance = Random(f"{data}/{schedule}/{number}")  # noqa: S311 - repeatable, guards no secret

    def log_uniform(low: float, high: float) -> float:
        return float(f"{math.exp(chance.uniform(math.log(low), math.log(high))):.4g}")

    return Tuned(
        data=data,
        schedule=schedule,
        lr=log_uniform(1e-4, 1.0),
        width=round(log_uniform(8, 256)),
        depth=chance.randint(1, 4),
        batch_size=chance.choice((16, 32, 64, 128)),
        weight_decay=log_uniform(1e-6, 1e-1),
        dropout=round(chance.uniform(0.0, 0.6), 3),
        optimizer=chance.choice(OPTIMIZERS),
        momentum=round(chance.uniform(0.5, 0.98), 3),
        seed=number,
    )


def trained(tuned: Tuned) -> list[tuple[float, float]]:
    """Return CPU seconds so far and loss after each step."""
    torch.set_num_threads(1)
    training, curve = Training(tuned), list[tuple[float, float]]()
    began = time.process_time()
    for step in range(tuned.steps):
        training.step(step)
        curve.append((time.process_time() - began, training.validate()["loss"]))
    return curve


def rows(data: str, schedule: str, configurations: int) -> list[dict[str, object]]:
    """Return the lines of a task."""
    return [line for number in range(configurations) for line in _lines(drawn(data, schedule, number), number)]


def _lines(tuned: Tuned, number: int) -> Iterator[dict[str, object]]:
    given = asdict(tuned)
    for epoch, (seconds, loss) in enumerate(trained(tuned), start=1):
        # The table says a configuration's hyperparameters once.
        told = {f"parameter.{name}": given[name] for name in TUNED} if epoch == 1 else {}
        task = f"{tuned.data}/{tuned.schedule}"
        yield {
            "task": task,
            "config": number,
            "epoch": epoch,
            "seconds": f"{seconds:.4g}",
            "loss": f"{loss:.5g}",
        } | told


def record(data: str, schedule: str, configurations: int) -> Path:
    """Train a task, and keep its lines in a file of its own, whole or not at all."""
    path = PARTS / f"{data}-{schedule}-{configurations}.csv"
    if not path.exists():
        found, beside = rows(data, schedule, configurations), path.with_suffix(".new")
        with beside.open("w", newline="") as file:
            _write(csv.DictWriter(file, COLUMNS), found)
        beside.rename(path)
    return path


def _write(writer: "csv.DictWriter[str]", lines: list[dict[str, object]]) -> None:
    writer.writeheader()
    writer.writerows(lines)


def main() -> None:
    """Train what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configurations", type=int, default=120)
    parser.add_argument("--processes", type=int)
    given = parser.parse_args()
    PARTS.mkdir(parents=True, exist_ok=True)
    tasks = [(data, schedule) for data in DATA for schedule in SCHEDULES]
    parts: list[Path] = []
    bar = progress_bar(Console(stderr=True), "training", "tasks", len(tasks))
    with bar as advance, worker_pool(given.processes) as pool:
        for future in [pool.submit(record, *task, given.configurations) for task in tasks]:
            parts.append(future.result())
            advance(1)
    lines = [line for part in parts for line in csv.DictReader(part.open(newline=""))]
    # Without the time of writing, so that the same curves give the same bytes.
    with TABLE.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
        text = [",".join(COLUMNS), *(",".join(line[column] for column in COLUMNS) for line in lines)]
        packed.write("\n".join(text).encode() + b"\n")
    print(f"{len(lines)} points of {len(tasks)} tasks in {TABLE}")


if __name__ == "__main__":
    main()
