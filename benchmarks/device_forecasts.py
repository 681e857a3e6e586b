"""How far forecasts of sweeps on unlike and shared devices miss, in pairs with those of another version.

    python -m benchmarks.device_forecasts V4 V5 --seeds 8 --out here.json
    python -m benchmarks.device_forecasts V4 V5 --seeds 8 --beside there.json

The second prints each figure beside that of a file which the first one wrote, by another version of the code: no policy
sees a forecast, so both judge the same runs. An error is how far the likely end lay from the true one, as a part of the
time that was really left: for trials the median of a look, then the mean over seeds.
"""

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.experiments import markdown
from benchmarks.foreseen import coverage, judge
from controllers.lab.simulation.experiments.device_experiments import DEVICE_EXPERIMENTS

POLICIES: Final = ("default", "ahead")
Figures = Mapping[str, Sequence[float | None]]
"""Of an experiment under a policy after a part of its makespan: a figure for each seed."""


def figures(experiment: str, policy: str, seeds: int) -> dict[str, dict[str, list[float | None]]]:
    """Return, by the part of the makespan, errors and the parts of ranges that held what came true, for each seed."""
    setup = next(one for one in DEVICE_EXPERIMENTS if one.id == experiment)
    found: dict[str, dict[str, list[float | None]]] = {}
    for seed in range(seeds):
        for judged in judge(setup, policy, seed):
            held = coverage(judged.trials)
            of_part = found.setdefault(f"{judged.part:.0%}", {})
            for name, value in (
                ("end error", judged.end_error),
                ("end held", None if judged.end is None else float(judged.end[0])),
                ("trials' error", statistics.median(judged.trial_errors) if judged.trial_errors else None),
                ("trials held", None if held is None else held.held),
            ):
                of_part.setdefault(name, []).append(value)
    return found


def row(own: Figures, other: Figures) -> list[str]:
    """Return each figure's mean, after that of ``other`` where there is one, and in how many seeds the error fell."""
    cells = []
    for name, values in own.items():
        told = f"{_mean(values):.0%}"
        if name in other:
            pairs = [(a, b) for a, b in zip(other[name], values, strict=True) if a is not None and b is not None]
            told = f"{_mean(other[name]):.0%} → {told}"
            if "error" in name:
                told += f" ({sum(b < a for a, b in pairs)} of {len(pairs)})"
        cells.append(told)
    return cells


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else float("nan")


def main() -> None:
    """Judge the experiments that are named, and print a row for each policy and part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="+")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--beside", type=Path)
    given = parser.parse_args()
    there = json.loads(given.beside.read_text(encoding="utf-8")) if given.beside else {}
    here: dict[str, dict[str, dict[str, list[float | None]]]] = {}
    rows: list[list[str]] = []
    for experiment in given.experiments:
        for policy in POLICIES:
            name = f"{experiment} {policy}"
            here[name] = figures(experiment, policy, given.seeds)
            rows += [
                [experiment, f"`{policy}`", part, *row(own, there.get(name, {}).get(part, {}))]
                for part, own in here[name].items()
            ]
    if given.out:
        given.out.write_text(json.dumps(here), encoding="utf-8")
    titles = list(next(iter(next(iter(here.values())).values())))
    print(markdown.table(("experiment", "policy", "after", *titles), rows))


if __name__ == "__main__":
    main()
