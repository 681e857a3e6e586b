"""What becomes of a job whose attempt has ended: ``after_attempt``, by what this machine knows of the end."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from controllers.core.after_attempt import (
    EXIT_TERMINATED,
    AttemptEnd,
    AttemptHistory,
    EndedBy,
    Failure,
    Following,
    Then,
    after_attempt,
)
from controllers.core.labels import LABEL_SWEEP
from controllers.core.model import Phase, Sample, TrialId
from controllers.core.progress import came_to_its_end, tells_another_length
from controllers.worlds.local.admission import Admission
from controllers.worlds.local.attempts import Attempts
from controllers.worlds.local.gangs import Ended
from controllers.worlds.local.job_book import JobBook
from controllers.worlds.local.jobs import LocalJob
from mlflow_hooks.contract import EXIT_MIGRATE

ASKED: Final = {Phase.MOVING: EndedBy.MOVE, Phase.SUSPENDING: EndedBy.PAUSE, Phase.STOPPING: EndedBy.STOP}
"""What an attempt was asked to leave for, by the phase of its job."""
_OVER: Final = {Then.SUCCEEDED: Phase.SUCCEEDED, Then.STOPPED: Phase.STOPPED, Then.FAILED: Phase.FAILED}
_FAILED: Final = 1


def with_its_end(job: LocalJob, end: Ended) -> LocalJob:
    """Return a job with the CPU seconds of its attempt, and whether that said that it saved and left."""
    return replace(job, cpu_seconds=job.cpu_seconds + end.cpu_seconds, left=end.code == EXIT_MIGRATE)


class Aftermath:
    """Works out what becomes of jobs whose attempts have ended.

    Args:
        attempts: Tells what an attempt printed, and what its trial has come to.
        admission: Tells what memory it held.
        jobs: All jobs.
        newest: Returns the newest sample of each trial, where anybody reads their metrics.
    """

    def __init__(
        self,
        attempts: Attempts,
        admission: Admission,
        jobs: JobBook,
        newest: Callable[[], Mapping[TrialId, Sample]],
    ) -> None:
        self._attempts = attempts
        self._admission = admission
        self._jobs = jobs
        self._newest = newest

    def of(self, job: LocalJob, end: Ended, now: float) -> LocalJob:
        """Return what becomes of a job whose attempt has ended by ``now``, in seconds of the sweep's clock."""
        job = with_its_end(job, end)
        peak = self._admission.ended(job, end)
        by = self._ended_by(job, end, peak, now)
        if by is EndedBy.MEMORY:
            job = replace(job, memory_kills=job.memory_kills + 1, memory_peak=max(peak, job.memory_peak))
        history = AttemptHistory(job.failures, job.barren, job.gained, job.failure, job.alone)
        follows = after_attempt(history, self._end(job, end, by, now), job.step.retry)
        counts = follows.history
        job = replace(
            job,
            failures=counts.failures,
            barren=counts.barren,
            gained=counts.gained,
            failure=counts.failure,
            alone=counts.alone,
            given_up=follows.given_up,
        )
        # What ended with 0 and was not through is as good as ended by the request.
        code = end.code if end.code or follows.then is Then.SUCCEEDED else EXIT_TERMINATED
        if follows.then in _OVER:
            return self.over(job, _OVER[follows.then], 0 if follows.then is Then.STOPPED else code, now)
        return self._going_on(replace(job, asked_at=None, exit_code=code), follows)

    def over(self, job: LocalJob, phase: Phase, code: int, now: float) -> LocalJob:
        """Return a job that is over by ``phase``, with what a step that is no trial printed and put out."""
        # Later steps may read what a step printed; what a trial comes to is in MLflow.
        over = replace(job, phase=phase, ended_at=now, asked_at=None, targets=(), exit_code=code)
        if job.trial:
            return over
        outputs = self._attempts.outputs(job) if phase is Phase.SUCCEEDED else {}
        if outputs is None:
            return replace(over, phase=Phase.FAILED, exit_code=_FAILED, result=self._attempts.output(job))
        return replace(over, result=self._attempts.output(job), outputs=outputs)

    def _ended_by(self, job: LocalJob, end: Ended, peak: float, now: float) -> EndedBy:
        """Return what made an attempt end, which held ``peak`` bytes at most."""
        if job.phase in ASKED:
            return ASKED[job.phase]
        by_us = job.asked_at is not None or job.overdue(now)
        if not by_us and self._admission.killed_for_memory(job, end, peak):
            return EndedBy.MEMORY
        # What started it asks it too where that is cut off from the controller.
        return EndedBy.LOSS if end.asked and job.asked_at is None else EndedBy.ITSELF

    def _end(self, job: LocalJob, end: Ended, by: EndedBy, now: float) -> AttemptEnd:
        lasted_s = now - job.started_at
        if end.code == 0 and by is EndedBy.ITSELF:
            return AttemptEnd(Failure(0, "", lasted_s), now)
        words = self._attempts.last_words(job) if job.trial and end.code else ""
        return AttemptEnd(
            Failure(end.code, words, lasted_s),
            now,
            by,
            through=end.code == 0 and (not job.trial or end.through or self._through(job)),
            gained=self._attempts.gained(job),
            leaves=bool(job.trial) and not job.gang,
        )

    def _through(self, job: LocalJob) -> bool:
        """Return whether the metrics of a trial, and of those beside it, tell that it has come to its end."""
        newest, sweep = self._newest(), job.step.labels.get(LABEL_SWEEP)
        ended = {
            TrialId(other.trial): other.params
            for other in self._jobs.trials()
            if other.phase is Phase.SUCCEEDED and other.step.labels.get(LABEL_SWEEP) == sweep
        }
        others = [
            newest[trial]
            for trial, params in ended.items()
            if trial in newest and not tells_another_length(job.params, params, newest[trial])
        ]
        return came_to_its_end(newest.get(TrialId(job.trial)), others)

    @staticmethod
    def _going_on(job: LocalJob, follows: Following) -> LocalJob:
        """Return a job that goes on: it waits until somebody lets it, or until its next attempt is due."""
        if follows.then is Then.WAITS:
            return replace(job, phase=Phase.SUSPENDED, suspensions=job.suspensions + 1)
        # The target stays where it has left: the next attempt starts there.
        targets = job.targets if follows.left else ()
        return replace(job, phase=Phase.PENDING, targets=targets, not_before=follows.at)
