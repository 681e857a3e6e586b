"""How much sooner a search finds what a cold one found, if it learnt from an earlier sweep.

    python -m benchmarks.warm_start [--seeds 10] [--page]

The eight tasks are in ``benchmarks/warm_tasks.py``. Earlier, cold and warm sweeps are all the project's own search, TPE
with its defaults, and have thirty trials, one after the other, each sweep with a seed of its own. How soon another cold
sweep comes to the best of the first tells what there was to gain. This is the second set of tasks, as
docs/experiments/warm-start.md tells; ``--page`` writes the table there. It takes minutes.
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
    """One seed of a task: the best of the cold sweep, and in how many trials it, another and the warm one came to that.

    Each has ``TRIALS``; where it did not come to it, that and one.
    """

    best: float
    cold: int
    other: int
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
    cold = _losses(sweep(task.new, seed))
    other = _losses(sweep(task.new, seed + 3 * SEEDS_APART))
    warm = _losses(sweep(task.new, seed + 2 * SEEDS_APART, before))
    best = min(cold)
    return Reached(best, *(_first(losses, best) for losses in (cold, other, warm)))


def _losses(sweep: Sequence[tuple[Point, float]]) -> list[float]:
    return [loss if math.isfinite(loss) else math.inf for _, loss in sweep]


def _first(losses: Sequence[float], best: float) -> int:
    return next((number for number, loss in enumerate(losses, start=1) if loss <= best), TRIALS + 1)


def row(task: Task, seeds: Sequence[Reached]) -> tuple[list[str], bool]:
    """Return the line of a task, and whether the warm sweep needs half the trials at most, on the median."""
    middle = statistics.median(one.warm for one in seeds)
    within = middle <= HALF
    return [
        task.title,
        task.changed,
        f"{statistics.median(one.best for one in seeds):.3f}",
        f"{statistics.median(one.cold for one in seeds):g}",
        *_told([one.other for one in seeds]),
        *_told([one.warm for one in seeds]),
        "yes" if within else "no",
    ], within


def _told(trials: Sequence[int]) -> list[str]:
    """Return the quartiles, how many are half of all trials at most, and how many are none."""
    low, middle, high = statistics.quantiles(trials, n=4, method="inclusive")
    return [
        f"{_count(middle)} ({_count(low)} to {_count(high)})",
        f"{sum(count <= HALF for count in trials)}",
        f"{sum(count > TRIALS for count in trials)}",
    ]


def measured(seeds: int) -> tuple[str, str]:
    """Return the table, and a line about all of it."""
    header = ["task", "what has changed", "best of the cold sweep", "cold in trials"]
    for which in ("other cold", "warm"):
        header += [f"{which} in trials (quartiles)", f"in {HALF}", "never"]
    came = [[reached(task, seed) for seed in range(seeds)] for task in tasks()]
    rows = [row(task, of) for task, of in zip(tasks(), came, strict=True)]
    header.append("half?")
    every = [one for of in came for one in of]
    counts = "; ".join(
        f"{which}: {sum(count <= HALF for count in trials)} of {len(every)} sweeps in {HALF} trials, "
        f"{sum(count > TRIALS for count in trials)} never"
        for which, trials in (("other cold", [one.other for one in every]), ("warm", [one.warm for one in every]))
    )
    told = f"At most half the trials on {sum(within for _, within in rows)} of {len(rows)} tasks. {counts}."
    return table(header, [cells for cells, _ in rows]), told


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
    made, told = measured(asked.seeds)
    if asked.page:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), {"warm-start": made}), encoding="utf-8")
    sys.stdout.write(f"{made}\n{told}\n")


if __name__ == "__main__":
    main()
