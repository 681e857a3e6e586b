"""Deadlines met, and how much of the CPU allocated was used, under several policies and over many seeds.

``python -m benchmarks.deadlines --seeds 30`` prints a table for each experiment, with 95 % confidence intervals.
"""

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from rich.console import Console
from rich.table import Table

from controllers.policies.registry import parse_policy
from controllers.simulation.goal_experiments import (
    AMPLE,
    SHORT,
    DeadlineExperiment,
    GoalFigures,
    Request,
    run_with_deadlines,
)
from controllers.simulation.statistics import Estimate, estimate

ROWS: tuple[tuple[str, Request], ...] = (
    ("default", "most"),
    ("default", "half"),
    ("default", "start"),
    ("fifo", "most"),
    ("fifo", "start"),
    ("edf", "most"),
    ("edf", "half"),
    ("deadline", "most"),
    ("deadline", "half"),
    ("deadline", "start"),
)
"""Each policy under what authors may ask for."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run."""

    experiment: DeadlineExperiment
    policy: str
    request: Request
    seed: int


def run(task: Task) -> GoalFigures:
    """Carry out one task."""
    return run_with_deadlines(task.experiment, parse_policy(task.policy), task.request, task.seed)


def table(experiment: DeadlineExperiment, found: Sequence[tuple[str, Request, Sequence[GoalFigures]]]) -> Table:
    """Return the table of one experiment."""
    drawn = Table(title=f"{experiment.id}: {experiment.title} ({len(found[0][2])} seeds)", title_justify="left")
    for title in ("policy", "requests", "deadlines met", "CPU used of allocated", "makespan", "moves", "resizes"):
        drawn.add_column(title, justify="left" if title in {"policy", "requests"} else "right")
    for policy, request, figures in found:
        drawn.add_row(
            policy,
            request,
            _percent(estimate([one.deadlines_met for one in figures])),
            _percent(estimate([one.allocation_used for one in figures])),
            f"{estimate([one.makespan_s for one in figures]).mean:.0f} s",
            f"{estimate([float(one.moves) for one in figures]).mean:.1f}",
            f"{estimate([float(one.resizes) for one in figures]).mean:.0f}",
        )
    return drawn


def _percent(found: Estimate) -> str:
    reach = found.half_width
    return f"{found.mean:.1%}" if reach is None else f"{found.mean:.1%} ± {reach:.1%}"


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    console = Console(width=120)
    with ProcessPoolExecutor(asked.processes, mp_context=get_context("spawn")) as pool:
        for experiment in (SHORT, AMPLE):
            tasks = [Task(experiment, *row, seed) for row in ROWS for seed in range(asked.seeds)]
            figures = list(pool.map(run, tasks, chunksize=5))
            per_row = [figures[n * asked.seeds : (n + 1) * asked.seeds] for n in range(len(ROWS))]
            rows = [(*row, of_row) for row, of_row in zip(ROWS, per_row, strict=True)]
            console.print(table(experiment, rows), highlight=False)


if __name__ == "__main__":
    main()
