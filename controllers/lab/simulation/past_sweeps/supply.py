"""How many of their cores a past sweep's nodes really got while other programs on the machine took some. Pure."""

import math
import statistics
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep, PastTrial, Stay
from controllers.worlds.simulated.workload import NodeSpec

_LEAST_WINDOW_S: Final = 5.0
_GAPS_IN_WINDOW: Final = 4
"""CPU seconds are known at reports only: a window in which there are few would blame the node for what it missed."""
_LEAST_MOST_WINDOWS: Final = 1000
"""No sweep is cut into more windows than this, or than its trials logged points: they would tell nothing more."""
_ALL: Final = 0.97
"""Part of a node's cores from which on it got them all."""
_LEAST_CORES: Final = 1e-3


def with_measured_supply(sweep: PastSweep) -> tuple[NodeSpec, ...]:
    """Return the sweep's nodes with what their trials used together, in windows of a few seconds or a few reports.

    A node whose trials always want more than there is uses what it gets; where it was empty, or its clock is not
    known, it is taken to have had all its cores. A trial that waited for anything but a core looks like a node that
    got less.
    """
    if sweep.began_epoch_s is None or not sweep.counted:
        return sweep.nodes
    curves = [(trial, _CpuCurve(trial, sweep.began_epoch_s)) for trial in sweep.trials]
    points = sum(len(trial.cpu_seconds) for trial in sweep.trials)
    shortest = max(trial.completed_at for trial in sweep.trials) / max(_LEAST_MOST_WINDOWS, points)
    width = max(_LEAST_WINDOW_S, _GAPS_IN_WINDOW * max(curve.gap_s for _, curve in curves), shortest)
    return tuple(replace(node, supply=tuple(_supply(node, curves, width))) for node in sweep.nodes)


def _supply(
    node: NodeSpec, curves: Sequence[tuple[PastTrial, "_CpuCurve"]], width: float
) -> Iterator[tuple[float, float]]:
    before = node.cpu
    end = max(trial.completed_at for trial, _ in curves)
    for number in range(math.ceil(end / width) + 1):
        window = (number * width, (number + 1) * width)
        here = [
            (_overlap(stay, window), curve) for trial, curve in curves for stay in trial.stays if stay.node == node.name
        ]
        busy = _covered([part for part, _ in here if part])
        used = sum(curve.between(*part) for part, curve in here if part)
        cores = node.cpu if busy < width / 2 else min(node.cpu, max(used / busy, _LEAST_CORES))
        if cores >= _ALL * node.cpu:
            cores = node.cpu
        if cores != before:
            yield window[0], cores
        before = cores


def _overlap(stay: Stay, window: tuple[float, float]) -> tuple[float, float] | None:
    part = max(stay.start, window[0]), min(stay.end, window[1])
    return part if part[0] < part[1] else None


def _covered(parts: Sequence[tuple[float, float]]) -> float:
    """Return the length of the union of ``parts``."""
    length, reached = 0.0, -math.inf
    for start, end in sorted(parts):
        length += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return length


class _CpuCurve:
    """CPU seconds of a trial over the sweep's time, straight between what it logged."""

    def __init__(self, trial: PastTrial, began_epoch_s: float) -> None:
        logged = [(point.at - began_epoch_s, point.value) for point in trial.cpu_seconds]
        total = max(trial.total_cpu_s or 0.0, logged[-1][1])
        points = sorted([(trial.submitted_at, 0.0), *logged, (trial.completed_at, total)])
        self._times = [at for at, _ in points]
        self._values = [value for _, value in points]

    @property
    def gap_s(self) -> float:
        """Median time between two points."""
        return statistics.median(b - a for a, b in pairwise(self._times))

    def between(self, start: float, end: float) -> float:
        return max(0.0, self._at(end) - self._at(start))

    def _at(self, time: float) -> float:
        after = bisect_right(self._times, time)
        if after in {0, len(self._times)}:
            return self._values[max(0, after - 1)]
        x0, x1 = self._times[after - 1], self._times[after]
        y0, y1 = self._values[after - 1], self._values[after]
        return y0 + (y1 - y0) * (time - x0) / (x1 - x0)
