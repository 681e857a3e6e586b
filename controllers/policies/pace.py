"""How fast a trial trains, and how that depends on the cores it uses: measured from its reports."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from controllers.model import Progress, Trial
from controllers.progress import Mark, mark, mean_cores, reported_since

SIMILAR = 0.15
"""Two measurements are of the same use of cores if they differ by less than this part: the newer one counts."""
MOST_POINTS = 8
UNUSED = 0.25
"""Part of a share that must stay unused before the trial is taken to be unable to use more."""

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Pace:
    """What was measured of a trial's speed so far.

    ``points`` are pairs (cores used, steps per second), both rising. ``most`` is how many cores it can use at most,
    None while it has used all that it was sure of. ``latest`` is the newest speed, in steps per second. ``mark`` is
    the report that the next measurement begins at, with the ``attempt`` and the ``cpu`` requested then.
    """

    points: Points = ()
    most: float | None = None
    latest: float | None = None
    mark: Mark | None = None
    attempt: int = 0
    cpu: float = 0.0

    @property
    def measured(self) -> bool:
        """Whether any speed is known."""
        return bool(self.points)

    @property
    def seconds_per_step(self) -> float | None:
        """Seconds that a step took of late, None before that was measured."""
        return None if self.latest is None else 1 / self.latest

    def rate(self, cores: float) -> float:
        """Return steps per second with ``cores`` cores.

        Between measurements it is interpolated. Beyond them the trial is taken to go on as it did between the last
        two, and with one alone to be as efficient as there, up to ``most``.
        """
        cores = cores if self.most is None else min(cores, self.most)
        for (c0, r0), (c1, r1) in pairwise(((0.0, 0.0), *self.points)):
            if cores <= c1:
                return r0 + (r1 - r0) * (cores - c0) / (c1 - c0)
        c1, r1 = self.points[-1]
        return r1 + _slope(self.points) * (cores - c1)

    def cores_for(self, rate: float) -> float:
        """Return the fewest cores that give ``rate`` steps per second; infinite where no number does."""
        for (c0, r0), (c1, r1) in pairwise(((0.0, 0.0), *self.points)):
            if rate <= r1:
                return c0 + (c1 - c0) * (rate - r0) / (r1 - r0)
        (c1, r1), slope = self.points[-1], _slope(self.points)
        cores = c1 + (rate - r1) / slope if slope > 0 else math.inf
        return cores if self.most is None or cores <= self.most else math.inf


def measured(trial: Trial, pace: Pace, progress: Progress) -> Pace:
    """Return ``pace`` after a look at the newest report of ``trial``, which runs on one node.

    What lies between two attempts is no training, and steps that are made again are no progress: the measurement
    then begins anew.
    """
    if pace.mark is None or pace.attempt != trial.attempt:
        return _begun(trial, pace, progress)
    if not reported_since(progress, pace.mark):
        return pace
    steps, seconds = progress.step - pace.mark.step, progress.at - pace.mark.at
    if steps <= 0 or seconds <= 0:
        return _begun(trial, pace, progress)
    share = trial.cpu * len(trial.nodes)
    cores = mean_cores(progress, pace.mark) or share
    rate = steps / seconds
    points = _with(pace.points, cores, rate)
    return _begun(trial, replace(pace, points=points, most=_most(pace, cores, trial), latest=rate), progress)


def _begun(trial: Trial, pace: Pace, progress: Progress) -> Pace:
    return replace(pace, mark=mark(progress), attempt=trial.attempt, cpu=trial.cpu)


def _with(points: Points, cores: float, rate: float) -> Points:
    """Add a measurement; older ones that are of the same use, or contradict it, go."""
    kept = [
        (c, r)
        for c, r in points
        if abs(c - cores) > SIMILAR * cores and ((c < cores and r < rate) or (c > cores and r > rate))
    ]
    return tuple(sorted([*kept, (cores, rate)]))[-MOST_POINTS:]


def _most(pace: Pace, cores: float, trial: Trial) -> float | None:
    share = min(pace.cpu, trial.cpu) * len(trial.nodes)
    if cores < share * (1 - UNUSED):
        return cores
    known = pace.most
    return None if known is None or cores > known * (1 + UNUSED) else known


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Return further steps per second for a further core, at the end of what was measured."""
    c1, r1 = points[-1]
    c0, r0 = points[-2] if len(points) > 1 else (0.0, 0.0)
    return min((r1 - r0) / (c1 - c0), r1 / c1)
