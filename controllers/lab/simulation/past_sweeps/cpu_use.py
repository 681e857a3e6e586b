"""How much CPU the trials of a past sweep had used at each report, and how much of it went into logging. Pure.

Use is as the trials counted it, or else their part of the cluster's. The hooks send metrics about once a second, at up
to a two-hundredth of a core, by the clock and not by the step: to a trial with a twentieth of a core that is a tenth of
its training, and the longer it takes the more it pays. This is its ``upkeep``.
"""

import statistics
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from controllers.core.model import TrialId
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep, PastTrial

_WINDOW_S: Final = 2.0
"""Seconds over which the cores in use are averaged: CPU counters tick in hundredths."""
_ONE_CORE: Final = 1.15
"""A trial that never used more was of one thread, beside which MLflow's sending is little."""
_PARTS: Final = 8
_WINDOW_OF_UPKEEP_S: Final = 10.0
"""CPU counters tick in hundredths; a window holds enough of them."""
_LEAST_WINDOWS: Final = 30
_CANDIDATES: Final = tuple(number * 1e-4 for number in range(201))
"""Cores; the hooks keep to 0.005 where they can."""
_SURE: Final = 4.0
"""F statistic from which on the upkeep is taken for real: about two standard errors."""

_Window = tuple[float, float]
"""Cores, and steps per second."""


@dataclass(frozen=True, slots=True)
class PastCpuUse:
    """What a trial had spent at its reports, and in all, in core seconds; ``cores`` is what it can use at once.

    Of a trial of several ``workers`` (the most that it had), these are sums over them, and ``cores`` is each one's.
    """

    trial: TrialId
    spent: tuple[float, ...]
    total: float
    cores: float
    workers: int = 1

    @property
    def steps(self) -> tuple[float, ...]:
        """What each report cost beyond the one before it."""
        return tuple(b - a for a, b in pairwise(self.spent))

    @property
    def typical_step(self) -> float:
        """Median cost of a report."""
        return statistics.median(self.steps) if self.steps else 0.0

    @property
    def before_training(self) -> float:
        """What it had spent before it began on the first report, each of its workers alike."""
        return max(0.0, self.spent[0] - self.typical_step) / self.workers if self.steps else 0.0

    @property
    def spread(self) -> float:
        """Relative standard deviation of the cost of a report from one eighth of the trial to the next.

        The same training costs more or less CPU as its neighbours change; this is how much it did while it ran.
        """
        steps = self.steps
        if len(steps) < 2 * _PARTS:
            return 0.0
        marks = [len(steps) * part // _PARTS for part in range(_PARTS + 1)]
        costs = [statistics.fmean(steps[a:b]) for a, b in pairwise(marks)]
        return statistics.stdev(costs) / statistics.fmean(costs) if any(costs) else 0.0


def count_use(trial: PastTrial, upkeep: float = 0.0, began_epoch_s: float = 0.0) -> PastCpuUse:
    """Return what ``trial`` used by its own count, without what its further attempts cost it.

    Args:
        trial: It must have counted.
        upkeep: Cores that went into logging all the time; they are left out too.
        began_epoch_s: When the sweep's clock began, in Unix seconds.
    """
    steps = [point.step for point in trial.cpu_seconds]
    totals = list(accumulate((point.value for point in trial.cpu_seconds), max))
    logging = [upkeep * trained_s(trial, point.at - began_epoch_s) for point in trial.objective]
    raw = [_between(steps, totals, of.step) - less for of, less in zip(trial.objective, logging, strict=True)]
    raw = list(accumulate((max(0.0, spent) for spent in raw), max))
    total = max(totals[-1], trial.total_cpu_s or 0.0) - upkeep * trained_s(trial, trial.completed_at)
    spent = _without_restarts(raw, trial.attempts - 1)
    total = max(total - (raw[-1] - spent[-1]), spent[-1])
    return PastCpuUse(trial.id, tuple(spent), total, cores_used(trial), trial.workers[1])


def use_by_time(sweep: PastSweep, capacity: float, cores: float) -> list[PastCpuUse]:
    """Return what each trial used if all that ran shared ``capacity`` cores evenly, up to ``cores`` for each.

    Whatever else a trial did with its time (waiting for data, for a node) counts as used.
    """
    got = _CoreSecondsByTime([(trial.submitted_at, trial.completed_at) for trial in sweep.trials], capacity, cores)
    uses = []
    for trial in sweep.trials:
        start, end = got.at(trial.submitted_at), got.at(trial.completed_at)
        moments = (trial.submitted_at + point.at - trial.began_epoch_s for point in trial.objective)
        spent = tuple(accumulate((min(max(got.at(moment), start), end) - start for moment in moments), max))
        uses.append(PastCpuUse(trial.id, spent, end - start, cores))
    return uses


def cores_used(trial: PastTrial) -> float:
    """Return the most cores that each worker kept busy over a few seconds, 1 where it was hardly more or less."""
    most, first = 0.0, 0
    points = trial.cpu_seconds
    for last, point in enumerate(points):
        while point.at - points[first].at >= _WINDOW_S and first < last:
            most = max(most, (point.value - points[first].value) / (point.at - points[first].at))
            first += 1
    most /= trial.workers[1]
    return 1.0 if most <= _ONE_CORE else round(most, 2)


def _between(steps: Sequence[int], totals: Sequence[float], step: int) -> float:
    """Interpolate the counter at ``step``; it is level before its first and after its last point."""
    after = bisect_right(steps, step)
    if after in {0, len(steps)}:
        return totals[max(0, after - 1)]
    x0, x1 = steps[after - 1], steps[after]
    return totals[after - 1] + (totals[after] - totals[after - 1]) * (step - x0) / (x1 - x0)


def _without_restarts(raw: Sequence[float], restarts: int) -> list[float]:
    """Make the ``restarts`` dearest reports as dear as any: the rest was the start of a further attempt."""
    steps = [b - a for a, b in pairwise(raw)]
    typical = statistics.median(steps) if steps else 0.0
    for index in sorted(range(len(steps)), key=lambda i: -steps[i])[:restarts]:
        steps[index] = min(steps[index], typical)
    return list(accumulate(steps, initial=raw[0]))


class _CoreSecondsByTime:
    """Core seconds that one trial got since the sweep began, had it run all the time beside those that did."""

    def __init__(self, runs: Sequence[tuple[float, float]], capacity: float, cores: float) -> None:
        changes = sorted([(start, 1) for start, _ in runs] + [(end, -1) for _, end in runs])
        self._times = [at for at, _ in changes]
        running = list(accumulate(change for _, change in changes))
        self._shares = [min(cores, capacity / max(1, count)) for count in running]
        gains = [(b - a) * share for (a, b), share in zip(pairwise(self._times), self._shares, strict=False)]
        self._got = list(accumulate(gains, initial=0.0))

    def at(self, time: float) -> float:
        index = max(0, bisect_right(self._times, time) - 1)
        return self._got[index] + max(0.0, time - self._times[index]) * self._shares[index]


def measure_upkeep(sweep: PastSweep) -> float:
    """Return the cores that each trial of ``sweep`` spends on logging, 0 where its record cannot tell.

    Least squares over windows of ten seconds: steps per second = (cores - upkeep) / cost of a step, with a cost for
    each trial and one upkeep for all. It is the pace that is fitted to the cores and not the other way round, since
    the share sets the cores whatever the step happens to cost. Shares must have changed for this to tell anything.
    """
    windows = [of_trial for trial in sweep.trials if len(of_trial := list(_windows(trial))) > 1]
    degrees = sum(map(len, windows)) - len(windows) - 1
    if degrees < _LEAST_WINDOWS:
        return 0.0
    errors = [sum(_misfit(of_trial, upkeep) for of_trial in windows) for upkeep in _CANDIDATES]
    best = min(range(len(errors)), key=errors.__getitem__)
    sure = errors[0] - errors[best] > _SURE * errors[best] / degrees
    return _CANDIDATES[best] if sure else 0.0


def _misfit(windows: Sequence[_Window], upkeep: float) -> float:
    """Return the squared errors of the pace, relative to the trial's mean pace, with the best cost of a step."""
    mean = sum(pace for _, pace in windows) / len(windows)
    left = [cores - upkeep for cores, _ in windows]
    squares = sum(cores * cores for cores in left)
    if not mean or not squares:
        return 0.0
    slope = sum(cores * pace for cores, (_, pace) in zip(left, windows, strict=True)) / squares
    return float(sum((pace - slope * cores) ** 2 for cores, (_, pace) in zip(left, windows, strict=True))) / mean**2


def trained_s(trial: PastTrial, until: float) -> float:
    """Return the seconds until then (since the sweep began) that the trial was on a node."""
    return sum(max(0.0, min(stay.end, until) - stay.start) for stay in trial.stays)


def _windows(trial: PastTrial) -> Iterator[_Window]:
    since = trial.cpu_seconds[0]
    for point in trial.cpu_seconds[1:]:
        seconds = point.at - since.at
        if seconds >= _WINDOW_OF_UPKEEP_S:
            yield (point.value - since.value) / seconds, (point.step - since.step) / seconds
            since = point
