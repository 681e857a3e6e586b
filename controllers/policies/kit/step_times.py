"""How long a trial's steps take, and on how many cores: measured from its reports."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from controllers.core.model import Snapshot, Trial, TrialId
from controllers.core.progress import Mark, mark, mean_cores, reported_since, usable


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


def timed(snapshot: Snapshot, memos: Mapping[TrialId, StepMemo], stale_after: float) -> dict[TrialId, StepMemo]:
    """Return the memos of all trials that have not ended, after a look at their newest reports.

    Args:
        snapshot: What is there.
        memos: As this returned them last.
        stale_after: Seconds after which a report came too late to measure by.
    """
    trials = sorted(snapshot.trials, key=lambda trial: trial.id)
    left = [trial for trial in trials if trial.live or (trial.id in memos and not trial.phase.ended)]
    return {trial.id: _timed(trial, memos.get(trial.id, StepMemo()), snapshot.now, stale_after) for trial in left}


def _timed(trial: Trial, memo: StepMemo, now: float, stale_after: float) -> StepMemo:
    """What lies between two attempts is no training, and steps made again are no progress: it then begins anew."""
    progress = usable(trial.progress, now, stale_after)
    if progress is None or (memo.mark is not None and not reported_since(progress, memo.mark)):
        return memo
    begun = replace(memo, mark=mark(progress), attempt=trial.attempt)
    if memo.mark is None or memo.attempt != trial.attempt or progress.step <= memo.mark.step:
        return begun
    cores, seconds = mean_cores(progress, memo.mark), progress.at - memo.mark.at
    if cores is None:
        return begun
    return replace(begun, latest=StepTime(seconds / (progress.step - memo.mark.step), cores))
