"""What goes into logging while a trial trains: CPU by the clock, not by the step. Pure.

The hooks send metrics about once a second, at up to a two-hundredth of a core. To a trial with a twentieth of a core
that is a tenth of its training, and the longer it takes the more it pays.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from controllers.lab.simulation.past_sweep import PastSweep, PastTrial

_WINDOW_S: Final = 10.0
"""CPU counters tick in hundredths; a window holds enough of them."""
_LEAST_WINDOWS: Final = 30
_CANDIDATES: Final = tuple(number * 1e-4 for number in range(201))
"""Cores; the hooks keep to 0.005 where they can."""
_SURE: Final = 4.0
"""F statistic from which on the upkeep is taken for real: about two standard errors."""

_Window = tuple[float, float]
"""Cores, and steps per second."""


def measured_upkeep(sweep: PastSweep) -> float:
    """Return the cores that a trial of ``sweep`` spends by the clock, 0 where that can't be told.

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
        if seconds >= _WINDOW_S:
            yield (point.value - since.value) / seconds, (point.step - since.step) / seconds
            since = point
