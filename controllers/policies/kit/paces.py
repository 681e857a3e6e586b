"""How fast a trial trains, measured from its reports: how long its steps take, and how that depends on its cores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from controllers.core.model import Snapshot, Trial, TrialId
from controllers.core.progress import Mark, mark, mean_cores, reported_since, usable

SIMILAR = 0.15
"""Two measurements are of the same use of cores if they differ by less than this part: the newer one counts."""
MOST_POINTS = 8
UNUSED = 0.25
"""Part of a share that must stay unused before the trial is taken to be unable to use more."""

# Beyond the next three, reports make no sense: whatever trials report, all that follows from their pace stays finite.
LEAST_STEP_S: Final = 1e-9
MOST_STEP_S: Final = 1e12
MOST_CORES: Final = 1e9

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds that a step took on average between two reports, and the cores that were used meanwhile."""

    seconds: float
    cores: float

    @property
    def core_seconds(self) -> float:
        """Core seconds of a step."""
        return self.seconds * self.cores


@dataclass(frozen=True, slots=True)
class StepMemo:
    """The newest step time, and the report that the next one is measured from, with the attempt that made it."""

    latest: StepTime | None = None
    mark: Mark | None = None
    attempt: int = 0


def time_steps(snapshot: Snapshot, memos: Mapping[TrialId, StepMemo], stale_after: float) -> dict[TrialId, StepMemo]:
    """Return the memos of all trials that have not ended, after a look at their newest reports.

    Args:
        snapshot: What is there.
        memos: As this returned them last.
        stale_after: Seconds after which a report came too late to measure by.
    """
    left = [trial for trial in snapshot.unended if trial.live or trial.id in memos]
    return {trial.id: _time_step(trial, memos.get(trial.id, StepMemo()), snapshot.now, stale_after) for trial in left}


def _time_step(trial: Trial, memo: StepMemo, now: float, stale_after: float) -> StepMemo:
    progress = usable(trial.progress, now, stale_after)
    if progress is None or (memo.mark is not None and not reported_since(progress, memo.mark)):
        return memo
    begun = replace(memo, mark=mark(progress), attempt=trial.attempt)
    if memo.mark is None or memo.attempt != trial.attempt or progress.step <= memo.mark.step:
        # The time between two attempts is no training, and steps made again are no progress: measure from here.
        return begun
    cores, seconds = mean_cores(progress, memo.mark), progress.at - memo.mark.at
    if cores is None:
        return begun
    of_step = min(max(seconds / (progress.step - memo.mark.step), LEAST_STEP_S), MOST_STEP_S)
    return replace(begun, latest=StepTime(of_step, min(cores, MOST_CORES)))


@dataclass(frozen=True, slots=True)
class Pace:
    """What was measured of a trial's speed so far.

    ``points`` are pairs (cores used, steps per second), both rising. ``most`` is how many cores it can use at most,
    None while it has used all that it was sure of. ``cpu`` is what it requested at the newest report.
    """

    points: Points = ()
    most: float | None = None
    cpu: float = 0.0

    @property
    def measured(self) -> bool:
        """Whether any speed is known."""
        return bool(self.points)

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


def update_pace(trial: Trial, pace: Pace, before: StepMemo, after: StepMemo) -> Pace:
    """Return ``pace`` with what was measured of ``trial``, which runs on one node, between two looks at its steps."""
    if after.mark == before.mark:
        return pace
    updated = replace(pace, cpu=trial.cpu)
    if before.mark is None or after.mark is None or after.latest is None:
        return updated
    if before.attempt != after.attempt or after.mark.step <= before.mark.step:
        # Measured over two attempts, or steps made again.
        return updated
    cores = after.latest.cores
    return replace(updated, points=_with(pace.points, cores, 1 / after.latest.seconds), most=_most(pace, cores, trial))


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
