"""What becomes of a job whose attempt has ended: it is over, goes on from its checkpoint, waits, or is tried again."""

from dataclasses import replace
from typing import Final

from controllers.core.expressions import LEFT
from controllers.core.failures import Failure
from controllers.core.model import Phase
from controllers.worlds.local.admission import Admission
from controllers.worlds.local.attempts import Attempts
from controllers.worlds.local.endings import MOST_BARREN, pause_s
from controllers.worlds.local.gangs import Ended
from controllers.worlds.local.jobs import LocalJob
from mlflow_hooks.contract import EXIT_MIGRATE

LEAVING: Final = frozenset({Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})
"""Phases of a job whose attempt was asked to leave."""
_FAILED: Final = 1
_LEFT: Final = frozenset({*LEFT, 128 + 9})


def with_its_end(job: LocalJob, end: Ended) -> LocalJob:
    """Return a job with the CPU seconds of its attempt, and whether that said that it saved and left."""
    return replace(job, cpu_seconds=job.cpu_seconds + end.cpu_seconds, left=end.code == EXIT_MIGRATE)


class Aftermath:
    """Works out what becomes of jobs whose attempts have ended.

    Args:
        attempts: Tells what an attempt printed, and what its trial has come to.
        admission: Tells what memory it held.
    """

    def __init__(self, attempts: Attempts, admission: Admission) -> None:
        self._attempts = attempts
        self._admission = admission

    def of(self, job: LocalJob, end: Ended, now: float) -> LocalJob:
        """Return what becomes of a job whose attempt has ended by ``now``, in seconds of the sweep's clock."""
        job = with_its_end(job, end)
        peak = self._admission.ended(job, end)
        by_us = job.asked_at is not None or job.overdue(now)
        if not by_us and self._admission.killed_for_memory(job, end, peak):
            return self._out_of_memory(job, end.code, peak, now)
        asked = job.phase in LEAVING
        # An attempt that was asked to leave may end by the signal itself, before its hooks listen or after its grace.
        # What started it asks it too where that is cut off from the controller.
        left = (asked or (end.asked and job.asked_at is None)) and end.code in _LEFT
        # Alone, somebody else has asked it. The workers of a gang leave unasked where they waited in vain for another.
        left = left or (end.code == EXIT_MIGRATE and not job.gang)
        if left:
            job = self._counted(job, asked=asked)
        if end.code == 0:
            return self.over(job, Phase.SUCCEEDED, 0, now)
        if job.phase is Phase.STOPPING:
            return self.over(job, Phase.STOPPED, 0, now)
        if left and job.phase is Phase.SUSPENDING:
            suspensions = job.suspensions + 1
            return replace(job, phase=Phase.SUSPENDED, asked_at=None, exit_code=end.code, suspensions=suspensions)
        if left and (asked or job.barren < MOST_BARREN):
            # The target stays: the next attempt starts there.
            due = job.not_before if asked else now + pause_s(job.barren)
            return replace(job, phase=Phase.PENDING, asked_at=None, exit_code=end.code, failure="", not_before=due)
        return self._failed(job, end.code, now, barren=left)

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

    def _out_of_memory(self, job: LocalJob, code: int, peak: float, now: float) -> LocalJob:
        """Return a job that was killed for memory: it is tried once more, alone, which is no failure of its own."""
        job = replace(job, memory_kills=job.memory_kills + 1, memory_peak=max(peak, job.memory_peak))
        if job.alone:
            return self.over(replace(job, failures=job.failures + 1), Phase.FAILED, code, now)
        return replace(job, phase=Phase.PENDING, targets=(), asked_at=None, not_before=now, exit_code=code, alone=True)

    def _counted(self, job: LocalJob, *, asked: bool) -> LocalJob:
        """Return a job whose attempt left, with what it has come to, and how often in a row it came no further."""
        gained = self._attempts.gained(job)
        barren = 0 if gained > job.gained else job.barren + (not asked)
        return replace(job, gained=max(gained, job.gained), barren=barren)

    def _failed(self, job: LocalJob, code: int, now: float, *, barren: bool) -> LocalJob:
        """Return a job whose attempt failed by itself: its rule counts those, and no interruptions."""
        rule, failed = job.step.retry, job.failures + 1
        # To a rule, the exit code of one that left would tell of a move, and a move is no failure.
        counts_as = _FAILED if barren else code
        if rule is None or not rule.allows(failed, counts_as, duration_s=now - job.started_at):
            return self.over(replace(job, failures=failed), Phase.FAILED, code, now)
        due = now + max(rule.wait_s(failed), pause_s(job.barren) if barren else 0.0)
        return self._again(replace(job, failures=failed), code, due, now)

    def _again(self, job: LocalJob, code: int, due: float, now: float) -> LocalJob:
        """Return a job that failed: it waits until ``due`` for another attempt, or gives up on the same error."""
        words = self._attempts.last_words(job) if job.trial else ""
        failure = Failure(code, words, now - job.started_at).at_once
        if failure and failure == job.failure:
            return self.over(replace(job, given_up=True), Phase.FAILED, code, now)
        waiting = replace(job, phase=Phase.PENDING, targets=(), asked_at=None, not_before=due, exit_code=code)
        return replace(waiting, failure=failure)
