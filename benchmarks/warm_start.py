"""How much sooner a search finds what a cold one found, if it learnt from an earlier sweep.

    python -m benchmarks.warm_start [--seeds 10] [--page]

The eight tasks are in ``benchmarks/warm_tasks.py``. Earlier, cold and warm sweeps are all the project's own search, TPE
with its defaults, and have thirty trials, one after the other, each sweep with a seed of its own. This is the second
set of tasks, as docs/experiments/warm-start.md tells; ``--page`` writes the table there. It takes minutes.
"""

import argparse
import math
import statistics
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sklearn.exceptions import ConvergenceWarning

from benchmarks.experiments.markdown import table, with_tables
from benchmarks.warm_tasks import Task, Tuning, tasks
from controllers.core.earlier import Earlier, EarlierTrial
from controllers.core.model import Direction, Phase, Point, Progress, Snapshot, Trial, TrialId
from controllers.core.parameters import bound_parameters
from controllers.search import OptunaSearch, SearchSpec

TRIALS: Final = 30
HALF: Final = TRIALS // 2
SEEDS_APART: Final = 1000
"""Between the seeds of the earlier, the cold and the warm sweeps."""
PAGE: Final = Path(__file__).parents[1] / "docs" / "experiments" / "warm-start.md"


@dataclass(frozen=True, slots=True)
class Reached:
    """One seed of a task: the best of the cold sweep, and in how many trials it and the warm one came to that.

    The warm one has ``TRIALS``; where it did not, that and one.
    """

    best: float
    cold: int
    warm: int


def sweep(tuning: Tuning, seed: int, before: Sequence[EarlierTrial] = ()) -> list[tuple[Point, float]]:
    """Return what each trial of a sweep was given and came to, one after the other."""
    spec = SearchSpec(sampler="tpe", seed=seed, space=tuning.space)
    search, found, earlier = OptunaSearch(), dict[TrialId, Point](), Earlier({"sweep": tuple(before)})
    trials = [_waiting(number, spec) for number in range(TRIALS)]
    came_to: list[tuple[Point, float]] = []
    for number, trial in enumerate(trials):
        snapshot = replace(Snapshot(float(number), tuple(trials), ()), earlier=earlier)
        found[trial.id] = point = search.ask(trial, snapshot, found)
        loss = tuning.loss(dict(point))
        came_to.append((point, loss))
        known, sound = bound_parameters(dict(point)), math.isfinite(loss)
        progress = Progress(loss, loss, loss, 1, float(number)) if sound else None
        phase = Phase.SUCCEEDED if sound else Phase.FAILED
        trials[number] = replace(trial, phase=phase, parameters=known, progress=progress)
    return came_to


def reached(task: Task, seed: int) -> Reached:
    """Return how soon both sweeps of a task are there."""
    before = [
        EarlierTrial(f"old.{number}", bound_parameters(dict(point)), (loss,) if math.isfinite(loss) else ())
        for number, (point, loss) in enumerate(sweep(task.earlier, seed + SEEDS_APART))
    ]
    cold = [loss if math.isfinite(loss) else math.inf for _, loss in sweep(task.new, seed)]
    warm = [loss for _, loss in sweep(task.new, seed + 2 * SEEDS_APART, before)]
    best = min(cold)
    there = next((number for number, loss in enumerate(warm, start=1) if loss <= best), TRIALS + 1)
    return Reached(best, cold.index(best) + 1, there)


def row(task: Task, seeds: Sequence[Reached]) -> tuple[list[str], bool]:
    """Return the line of a task, and whether the warm sweep needs half the trials at most, on the median."""
    low, middle, high = statistics.quantiles([one.warm for one in seeds], n=4, method="inclusive")
    within = middle <= HALF
    return [
        task.title,
        task.changed,
        f"{statistics.median(one.best for one in seeds):.3f}",
        f"{statistics.median(one.cold for one in seeds):g}",
        f"{_count(middle)} ({_count(low)} to {_count(high)})",
        f"{sum(one.warm <= HALF for one in seeds)} of {len(seeds)}",
        f"{sum(one.warm > TRIALS for one in seeds)} of {len(seeds)}",
        "yes" if within else "no",
    ], within


def whole_table(seeds: int) -> str:
    """Return the table, and the line beneath it."""
    header = ["task", "what has changed", "best of the cold sweep", "cold in trials", "warm in trials (quartiles)"]
    header += [f"seeds in {HALF} trials", "seeds never", "half?"]
    rows = [row(task, [reached(task, seed) for seed in range(seeds)]) for task in tasks()]
    told = f"At most half the trials on {sum(within for _, within in rows)} of {len(rows)} tasks."
    return f"{table(header, [cells for cells, _ in rows])}\n{told}\n"


def _count(trials: float) -> str:
    return f"{trials:g}" if trials <= TRIALS else f"over {TRIALS}"


def _waiting(number: int, spec: SearchSpec) -> Trial:
    return Trial(
        id=TrialId(f"uid.sweep.t{number:03}"),
        phase=Phase.PENDING,
        cpu=1.0,
        base_cpu=1.0,
        memory=0.0,
        direction=Direction.MINIMIZE,
        submitted_at=0.0,
        gated=True,
        search=spec.written(),
        sweep="sweep",
    )


def main() -> None:
    """Measure, and print the table; with ``--page`` write it, too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--page", action="store_true")
    asked = parser.parse_args()
    # Some of the settings that a search tries converge slowly: what they come to by then counts.
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    made = whole_table(asked.seeds)
    if asked.page:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), {"warm-start": made}), encoding="utf-8")
    sys.stdout.write(made)


if __name__ == "__main__":
    main()
