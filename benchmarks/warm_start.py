"""How much sooner a search finds what a cold one found, if it learnt from an earlier sweep.

    python -m benchmarks.warm_start [--seeds 10] [--page]

Eight tasks, one for each set of data of the recorded learning curves (benchmarks/learning_curves.py): a network is
tuned whose learning rate follows a cosine. The earlier sweep tuned it at a constant rate: on the same data, and for the
second table on the next set of data. Earlier, cold and warm sweeps are all the project's own search, TPE with its
defaults, and have thirty trials, one after the other, each with a seed of its own. A trial trains as the nearest
recorded configuration did, and comes to the lowest loss of its curve. All of this was fixed before the first run. With
``--page``, it writes the tables of docs/experiments/warm-start.md. It takes some minutes.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from benchmarks.experiments.markdown import table, with_tables
from controllers.core.earlier import Earlier, EarlierTrial
from controllers.core.model import Direction, Phase, Point, Progress, Snapshot, Trial, TrialId
from controllers.core.parameters import bound_parameters
from controllers.lab.simulation.experiments.curve_families import Family, task_names
from controllers.lab.simulation.experiments.nearest_curves import NearestCurves
from controllers.search import OptunaSearch, SearchSpec
from controllers.worlds.simulated.workload import CurvePoint, Speedup, TrialSpec

TRIALS: Final = 30
HALF: Final = TRIALS // 2
EARLIER: Final = "constant"
HELD_OUT: Final = "cosine"
TASKS: Final = range(len(task_names(HELD_OUT)))
SEEDS_APART: Final = 1000
"""Between the seeds of the earlier, the cold and the warm sweeps."""
PAGE: Final = Path(__file__).parents[1] / "docs" / "experiments" / "warm-start.md"
NO_CURVE: Final = TrialSpec(TrialId("any"), 0.0, 1.0, (CurvePoint(1.0, 0.0),), 1.0, Speedup.linear(1.0))


@dataclass(frozen=True, slots=True)
class Reached:
    """One seed of a task: the best of the cold sweep, and in how many trials it and the warm one came to that.

    The warm one has ``TRIALS``; where it did not, that and one.
    """

    best: float
    cold: int
    warm: int


@lru_cache(maxsize=4)
def curves(schedule: str, place: int) -> NearestCurves:
    """Return how trials of a task train: that of the ``place``-th set of data."""
    return Family(TRIALS, 1, schedule=schedule).surrogate(place)


def data_of(place: int) -> str:
    """Return the name of a set of data."""
    return task_names(HELD_OUT)[place].partition("/")[0]


def sweep(tuned: NearestCurves, seed: int, before: Sequence[EarlierTrial] = ()) -> list[tuple[Point, float]]:
    """Return what each trial of a sweep was given and came to, one after the other."""
    spec = SearchSpec(sampler="tpe", seed=seed, space=tuned.space())
    search, found, earlier = OptunaSearch(), dict[TrialId, Point](), Earlier({"sweep": tuple(before)})
    trials = [_waiting(number, spec) for number in range(TRIALS)]
    came_to: list[tuple[Point, float]] = []
    for number, trial in enumerate(trials):
        snapshot = replace(Snapshot(float(number), tuple(trials), ()), earlier=earlier)
        found[trial.id] = point = search.ask(trial, snapshot, found)
        loss = min(report.value for report in tuned.trained(NO_CURVE, point).reports)
        came_to.append((point, loss))
        progress = Progress(loss, loss, loss, 1, float(number))
        trials[number] = replace(
            trial, phase=Phase.SUCCEEDED, parameters=bound_parameters(dict(point)), progress=progress
        )
    return came_to


def reached(place: int, seed: int, shift: int) -> Reached:
    """Return how soon both sweeps of a task are there; the earlier one had the data ``shift`` places further on."""
    held_out = curves(HELD_OUT, place)
    past = sweep(curves(EARLIER, (place + shift) % len(TASKS)), seed + SEEDS_APART)
    before = [EarlierTrial(f"old.{n}", bound_parameters(dict(point)), (loss,)) for n, (point, loss) in enumerate(past)]
    cold = [loss for _, loss in sweep(held_out, seed)]
    warm = [loss for _, loss in sweep(held_out, seed + 2 * SEEDS_APART, before)]
    best = min(cold)
    there = next((number for number, loss in enumerate(warm, start=1) if loss <= best), TRIALS + 1)
    return Reached(best, cold.index(best) + 1, there)


def row(place: int, shift: int, seeds: Sequence[Reached]) -> tuple[list[str], bool]:
    """Return the line of a task, and whether the warm sweep needs half the trials at most, on the median."""
    low, middle, high = statistics.quantiles([one.warm for one in seeds], n=4, method="inclusive")
    within = middle <= HALF
    return [
        data_of(place),
        data_of((place + shift) % len(TASKS)),
        f"{statistics.median(one.best for one in seeds):.3f}",
        f"{statistics.median(one.cold for one in seeds):g}",
        f"{_count(middle)} ({_count(low)} to {_count(high)})",
        f"{sum(one.warm <= HALF for one in seeds)} of {len(seeds)}",
        f"{sum(one.warm > TRIALS for one in seeds)} of {len(seeds)}",
        "yes" if within else "no",
    ], within


def one_table(shift: int, seeds: int) -> str:
    """Return the table of one kind of earlier sweep, and the line beneath it."""
    header = ["tuned on", "earlier sweep on", "best of the cold sweep", "cold in trials", "warm in trials (quartiles)"]
    header += [f"seeds in {HALF} trials", "seeds never", "half?"]
    rows = [row(place, shift, [reached(place, seed, shift) for seed in range(seeds)]) for place in TASKS]
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
    """Measure, and print or write both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--page", action="store_true")
    asked = parser.parse_args()
    made = {name: one_table(shift, asked.seeds) for name, shift in (("same-data", 0), ("other-data", 1))}
    if asked.page:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    sys.stdout.write("\n".join(f"{name}\n\n{text}" for name, text in made.items()))


if __name__ == "__main__":
    main()
