"""What the runs come to: time, time to a model within 1 % of the best, what was lost; in pairs with the default's."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.best_model.curves import Curve, CurveFile
from benchmarks.payoff.records import Run
from controllers.lab.simulation.evaluation import MeanOverSeeds, estimate


@dataclass(frozen=True, slots=True)
class BestModel:
    """One run beside the default's of its seed; seconds and percent.

    ``at_equal_speed`` is the change of the makespan had the machine been as fast in both runs. ``near_best_s`` is when
    a model within 1 % of the best was first reported, None where there never was one.
    """

    seed: int
    makespan_s: float
    change_percent: float
    at_equal_speed_percent: float
    near_best_s: float | None
    regret_percent: float
    best: float
    ended_early: int
    cpu_s: float


def best_model(run: Run, curves: Mapping[str, Curve], baseline: Run) -> BestModel:
    """Return the figures of ``run``; what its trials would have come to is what they came to in ``baseline``."""
    finals = {
        one.id: one.final_metric
        for one in baseline.result.trials
        if one.final_metric is not None and math.isfinite(one.final_metric)
    }
    best, median = min(finals.values()), statistics.median(finals.values())
    ended = [finals[one.id] for one in run.result.trials if one.succeeded and not one.stopped and one.id in finals]
    enough = best + 0.01 * (median - best)
    ratio = run.result.makespan_s / baseline.result.makespan_s
    return BestModel(
        seed=run.task.seed,
        makespan_s=run.result.makespan_s,
        change_percent=100 * (ratio - 1),
        at_equal_speed_percent=100 * (ratio * baseline.delivered.probe_s / run.delivered.probe_s - 1),
        near_best_s=min((at for curve in curves.values() for at, value in curve if value <= enough), default=None),
        regret_percent=100 * (min(ended, default=max(finals.values())) - best) / (median - best),
        best=min(ended, default=math.inf),
        ended_early=sum(bool(one.stopped) for one in run.result.trials),
        cpu_s=run.cpu_s,
    )


def by_policy(runs: Sequence[Run], curves: CurveFile, baseline: str) -> dict[str, list[BestModel]]:
    """Return the figures of each policy in the ``runs`` of a sweep, over the seeds in which the baseline ran too."""
    before = {run.task.seed: run for run in runs if run.task.policy == baseline}
    found: dict[str, list[BestModel]] = {}
    for run in sorted(runs, key=lambda run: run.task):
        if run.task.seed in before:
            one = best_model(run, curves.of(run.task), before[run.task.seed])
            found.setdefault(run.task.policy, []).append(one)
    return found


def row(policy: str, figures: Sequence[BestModel], *, against: bool) -> list[str]:
    """Return the cells of a policy's row."""
    near = [one.near_best_s for one in figures if one.near_best_s is not None]
    return [
        f"`{policy}`" if ":" in policy or policy.isidentifier() else policy,
        str(len(figures)),
        _told(estimate([one.makespan_s for one in figures]), " s"),
        _told(estimate([one.change_percent for one in figures]), " %", 1) if against else "",
        _told(estimate([one.at_equal_speed_percent for one in figures]), " %", 1) if against else "",
        _told(estimate(near), " s") + ("" if len(near) == len(figures) else f" ({len(near)} of {len(figures)})")
        if near
        else "never",
        _told(estimate([one.regret_percent for one in figures]), " %", 2),
        _told(estimate([float(one.ended_early) for one in figures]), "", 1),
        _told(estimate([one.cpu_s for one in figures]), ""),
    ]


def paired(
    by_sweep: Mapping[str, Mapping[str, Sequence[BestModel]]], policy: str, other: str
) -> list[tuple[str, list[str]]]:
    """Return the cells of ``policy`` beside ``other``, in pairs of the same seed: by sweep, and of all sweeps."""
    pairs = {
        sweep: [
            (ours, theirs)
            for ours in figures.get(policy, ())
            for theirs in figures.get(other, ())
            if ours.seed == theirs.seed
        ]
        for sweep, figures in by_sweep.items()
    }
    every = [pair for of_sweep in pairs.values() for pair in of_sweep]
    return [(sweep, _paired(of_sweep)) for sweep, of_sweep in {**pairs, "all": every}.items() if of_sweep]


def _paired(pairs: Sequence[tuple[BestModel, BestModel]]) -> list[str]:
    near = [(a.near_best_s, b.near_best_s) for a, b in pairs if a.near_best_s and b.near_best_s]
    lost = [statistics.fmean(one.regret_percent for one in side) for side in zip(*pairs, strict=True)]
    missed = [sum(one.regret_percent > 1 for one in side) for side in zip(*pairs, strict=True)]
    equal = [(1 + a.at_equal_speed_percent / 100) / (1 + b.at_equal_speed_percent / 100) for a, b in pairs]
    return [
        str(len(pairs)),
        _ratio([a.makespan_s / b.makespan_s for a, b in pairs]),
        _ratio(equal),
        f"{_ratio([a / b for a, b in near])} ({len(near)} of {len(pairs)})" if near else "never both",
        " / ".join(f"{one:.2f} %" for one in lost),
        " / ".join(map(str, missed)),
    ]


def _ratio(ratios: Sequence[float]) -> str:
    """Return their geometric mean with the interval of Student's t of the logarithms."""
    found = estimate([math.log(one) for one in ratios])
    mean = f"{math.exp(found.mean):.2f}"
    return mean if found.ci95 is None else f"{mean} ({math.exp(found.ci95[0]):.2f} to {math.exp(found.ci95[1]):.2f})"


def _told(found: MeanOverSeeds, unit: str, places: int = 0) -> str:
    reach = "" if found.half_width is None else f" ±{found.half_width:.{places}f}"
    return f"{found.mean:.{places}f}{reach}{unit}"
