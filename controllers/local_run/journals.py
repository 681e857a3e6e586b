"""What the trials of a run on this machine journalled: the truth of how they ended, whatever MLflow has of it."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from controllers.core import labels
from controllers.core.model import Direction, Sample, TrialId
from controllers.core.ports import MetricSource
from controllers.worlds.local.jobs import LocalJob
from mlflow_hooks import contract
from mlflow_hooks.journal import Point, read_points


class LastWord:
    """A source that follows another while a sweep runs, and at its end reads what the trials themselves kept.

    Args:
        source: read while the sweep runs.
        journalled: reads the newest sample of each trial that keeps a journal.
        now: seconds of the sweep's clock.

    Attributes:
        ended: whether all trials have ended.
    """

    def __init__(
        self, source: MetricSource, journalled: Callable[[], Mapping[TrialId, Sample]], now: Callable[[], float]
    ) -> None:
        self._source = source
        self._journalled = journalled
        self._now = now
        self.ended = False

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial."""
        samples = self._source.poll()
        if not self.ended:
            return samples
        return {
            **samples,
            **{trial: self._dated(last, samples.get(trial)) for trial, last in self._journalled().items()},
        }

    def _dated(self, last: Sample, before: Sample | None) -> Sample:
        """Return ``last`` with a time that can be: the clock that stamped it may have been set since ``before``."""
        at = min(last.at, self._now())
        return replace(last, at=at if before is None else max(at, before.at))


def journalled_samples(
    root: Path, jobs: Iterable[LocalJob], to_sweep_time: Callable[[float], float]
) -> dict[TrialId, Sample]:
    """Return the newest sample of each trial that journalled its objective; scripts without our hooks have no journal.

    Args:
        root: where trials keep their state, each in a folder by its id.
        jobs: those of the run.
        to_sweep_time: turns Unix seconds into seconds of the sweep's clock.
    """
    found = {TrialId(job.trial): _sample(root / job.trial, job, to_sweep_time) for job in jobs if job.trial}
    return {trial: sample for trial, sample in found.items() if sample is not None}


def _sample(folder: Path, job: LocalJob, to_sweep_time: Callable[[float], float]) -> Sample | None:
    objective = job.step.annotations[labels.ANNOTATION_OBJECTIVE]
    better = min if job.step.annotations[labels.ANNOTATION_DIRECTION] == Direction.MINIMIZE else max
    newest: dict[str, Point] = {}
    best: float | None = None
    ours = (
        *(contract.METRIC_CPU_SECONDS, contract.METRIC_CPU_WAIT),
        *(contract.METRIC_OBJECTIVE_FIRST, contract.METRIC_STEPS_TOTAL),
    )
    for point in read_points(folder, (objective, *ours)):
        # As MLflow has it: the highest step counts, and of several values there the last.
        if point.step >= newest.get(point.key, point).step:
            newest[point.key] = point
        if point.key == objective and math.isfinite(point.value):
            best = point.value if best is None else better(best, point.value)
    if objective not in newest:
        return None
    cpu, waited, first, total = (newest[key].value if key in newest else None for key in ours)
    return Sample(
        value=newest[objective].value,
        step=newest[objective].step,
        at=to_sweep_time(newest[objective].timestamp / 1000),
        cpu_seconds=cpu,
        first=first,
        steps_total=int(total) if total is not None and 0 < total < 2**53 else None,
        best=best,
        cpu_wait=waited,
    )
