"""Progress of a sweep's trials out of MLflow: bulk queries for all of them, whatever their number.

Whatever MLflow holds is untrusted data.
"""

import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.model import Sample, TrialId
from controllers.tracking.access import shown
from controllers.tracking.bounded_answers import TooMuchError
from controllers.tracking.metric_source import RUNNING, FoundRun, believed, find_runs
from controllers.tracking.newest_by_time import MARKS, may_go_back, newest_by_time, unknown
from controllers.tracking.reading_plan import ReadingPlan
from controllers.tracking.script_trainings import ScriptTrainings
from controllers.tracking.values import MetricPoint
from mlflow_hooks import contract

_LOG = logging.getLogger(__name__)
_OURS: Final = (
    *(contract.METRIC_CPU_SECONDS, contract.METRIC_CPU_WAIT),
    *(*MARKS, contract.METRIC_STEPS_TOTAL),
)
_POLL_S: Final = 60.0
"""Seconds that all pages together may take: the next sweep is waiting."""
_POINTS_S: Final = 2.0
"""Seconds that asking for the points of runs may take in a look that others wait for; the next one goes on."""
_LAG_S: Final = 15.0
"""Seconds that a report may take from its trial to MLflow."""
_IDS: Final = 100
"""Runs asked for at once by their ids."""
_MOST_FURTHER: Final = 100
"""Metrics that count beside objectives and are read, of all trials together: each of thousands could name others."""
_APART_MS: Final = 2000
"""Milliseconds by which a run may come into MLflow after another that began later."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a sweep's trials are found: their experiments, and what their ``specon.sweep_id`` begins with."""

    experiment_ids: Sequence[str]
    sweep_prefix: str


@dataclass(frozen=True, slots=True)
class _Stamp:
    """A report by its step and its node's clock, and when it was made by ours, in Unix seconds."""

    report: tuple[int, float]
    epoch_s: float


@dataclass(frozen=True, slots=True)
class _Seen:
    """A run as it was read last, ``read_s`` Unix seconds, and what that comes to.

    ``counted`` is the run with the values that were logged last, where these are others.
    """

    run: FoundRun
    counted: FoundRun
    read_s: float
    stamp: _Stamp | None
    sample: Sample | None


class MlflowSource:
    """Reads the newest point of each trial's metrics.

    Args:
        client: a client of the tracking server.
        scope: tells where the trials log to, as far as that is known.
        objectives: name of the objective of each trial known so far.
        to_sweep_time: turns Unix seconds into seconds of the sweep's clock.
        epoch: gives the time in Unix seconds.
        clock: gives seconds that only go forward.
        further: names of the metrics of each trial that count beside its objective; none of trials without any.
    """

    def __init__(  # noqa: PLR0913 - what it reads from and whom it reads of, each named
        self,
        client: MlflowClient,
        scope: Callable[[], Scope],
        objectives: Callable[[], Mapping[TrialId, str]],
        to_sweep_time: Callable[[float], float],
        epoch: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        *,
        further: Callable[[], Mapping[TrialId, tuple[str, ...]]] = dict,
    ) -> None:
        self._further = further
        self._epoch = epoch
        self._clock = clock
        self._client = client
        self._scope = scope
        self._objectives = objectives
        self._to_sweep_time = to_sweep_time
        self._lock = threading.Lock()
        self._plan = ReadingPlan()
        self._trainings = ScriptTrainings(client)
        self._seen: dict[str, _Seen] = {}
        self._told: dict[str, tuple[Sample, Sample]] = {}
        self._newest = 0
        self._samples: Mapping[TrialId, Sample] = {}
        self.run_ids: Mapping[TrialId, str] = {}
        self.logged: Mapping[TrialId, frozenset[str]] = {}
        self.away = False

    def poll(self, *, whole: bool = False) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial; empty, and ``away`` set, if MLflow does not answer.

        Of a trial whose run has ended a while ago it may be half a minute old; with ``whole`` all runs are read. Where
        nothing new was found of a trial, its sample is the same object as before.
        """
        with self._lock:
            try:
                objectives = self._objectives()
                runs_read, gone = self._read(objectives, whole=whole)
                counted = self._counted(runs_read, objectives, whole=whole)
            except (MlflowException, OSError, TooMuchError) as error:
                if not self.away:
                    _LOG.warning("MLflow does not answer: %s", shown(str(error))[:200])
                self.away = True
                return {}
            self.away = False
            self._take([run for run in runs_read if run.run_id in counted], counted, gone, objectives, whole=whole)
            return self._samples

    def _read(self, objectives: Mapping[TrialId, str], *, whole: bool) -> tuple[Sequence[FoundRun], Collection[str]]:
        """Return the runs that were due, and the ids of those that were and are not there any more."""
        scope, began = self._scope(), self._clock()
        if not scope.experiment_ids:
            return [], self._seen.keys()
        if whole or self._plan.whole_is_due(began, len(objectives)):
            runs_read = self._find_runs(scope, "", objectives)
            self._plan.read_whole(began, self._clock(), len(objectives))
            return runs_read, self._seen.keys() - {run.run_id for run in runs_read}
        runs_read = self._find_runs(scope, f" AND attributes.status = '{RUNNING}'", objectives)
        # One that began since may have ended since, too.
        newest = min(self._newest, int(self._epoch() * 1000)) - _APART_MS
        runs_read += self._find_runs(scope, f" AND attributes.start_time > {newest}", objectives)
        due = self._plan.due({run.run_id for run in runs_read}, began)
        for start in range(0, len(due), _IDS):
            ids = ", ".join(f"'{run_id}'" for run_id in due[start : start + _IDS])
            runs_read += self._find_runs(scope, f" AND attributes.run_id IN ({ids})", objectives)
        return runs_read, set(due) - {run.run_id for run in runs_read}

    def _find_runs(self, scope: Scope, condition: str, objectives: Mapping[TrialId, str]) -> list[FoundRun]:
        """Return the runs of the trials in ``objectives``: anybody may give a run the mark of somebody else's sweep."""
        wanted = f"tags.`{contract.TAG_SWEEP_ID}` LIKE '{scope.sweep_prefix}%' AND tags.`{contract.TAG_TRIAL_ID}` != ''"
        further = dict.fromkeys(itertools.chain.from_iterable(self._further().values()))
        metrics = (*dict.fromkeys(objectives.values()), *itertools.islice(further, _MOST_FURTHER), *_OURS)
        give_up = self._clock() + _POLL_S
        runs: list[FoundRun] = []
        for run in find_runs(self._client, scope.experiment_ids, wanted + condition, metrics):
            if run.trial in objectives:
                runs.append(run)
            if self._clock() > give_up:
                message = f"the runs of {scope.sweep_prefix}* take more than {_POLL_S:g} s to read"
                raise TooMuchError(message)
        return runs

    def _counted(
        self, runs_read: Sequence[FoundRun], objectives: Mapping[TrialId, str], *, whole: bool
    ) -> dict[str, FoundRun]:
        """Return the runs by their ids with the values that count, without those for which there was no time."""
        counted: dict[str, FoundRun] = {}
        give_up: float | None = None
        for run in runs_read:
            before = self._seen.get(run.run_id)
            if before is not None and _alike(before.run, run) and not before.counted.unsure:
                counted[run.run_id] = before.counted
            elif not may_go_back(run):
                counted[run.run_id] = run
            elif run.run_id not in counted:
                now = self._clock()
                give_up = now + (_POLL_S if whole else _POINTS_S) if give_up is None else give_up
                if now < give_up:
                    names = (objectives[run.trial], *self._further().get(run.trial, ()))
                    counted[run.run_id] = newest_by_time(self._client, run, names)
                elif whole:
                    counted[run.run_id] = unknown(run, "MLflow takes too long to tell all points")
        return counted

    def _take(
        self,
        runs_read: Sequence[FoundRun],
        counted: Mapping[str, FoundRun],
        gone: Collection[str],
        objectives: Mapping[TrialId, str],
        *,
        whole: bool,
    ) -> None:
        """Keep what was found, and make it known where that is news."""
        now, clock = self._epoch(), self._clock()
        news, further = bool(gone), self._further()
        for run_id in list(gone):
            del self._seen[run_id]
            self._plan.gone(run_id)
        for run in runs_read:
            self._newest = max(self._newest, run.began)
            before = self._seen.get(run.run_id)
            changed = before is None or before.counted.unsure or not _alike(before.run, run)
            if before is not None and not changed:
                self._seen[run.run_id] = replace(before, read_s=now)
            else:
                names = (objectives[run.trial], *further.get(run.trial, ()))
                self._seen[run.run_id] = self._seen_now(run, counted[run.run_id], before, names, now)
            self._plan.read(run.run_id, clock, going_on=run.going_on, changed=changed)
            news |= changed
        if news:
            believed_runs = believed((seen.run for seen in self._seen.values()), objectives)
            runs = {trial: self._seen[run.run_id] for trial, run in believed_runs.items()}
            self.run_ids = {trial: seen.run.run_id for trial, seen in runs.items()}
            self.logged = {trial: seen.run.others | seen.run.metrics.keys() for trial, seen in runs.items()}
            samples = {trial: seen.sample for trial, seen in runs.items() if seen.sample is not None}
            self._samples = {**samples, **self._of_several_attempts(samples, objectives, whole=whole)}

    def _of_several_attempts(
        self, samples: Mapping[TrialId, Sample], objectives: Mapping[TrialId, str], *, whole: bool
    ) -> Mapping[TrialId, Sample]:
        """Return the samples of trials whose scripts made runs in several attempts, with what tells their trainings."""
        of_scripts: dict[TrialId, list[FoundRun]] = {}
        for seen in self._seen.values():
            if seen.run.attempt and seen.run.trial in samples:
                of_scripts.setdefault(seen.run.trial, []).append(seen.run)
        give_up, told = self._clock() + (_POLL_S if whole else _POINTS_S), dict[TrialId, Sample]()
        for trial, runs in of_scripts.items():
            if len({run.attempt for run in runs}) > 1:
                training = self._trainings.of(runs, objectives[trial], lambda: self._clock() < give_up)
                began, before = training.attempts[0], samples[trial]
                sample = replace(before, training=began, begun_again=training.begun_again)
                known, shown = self._told.get(trial, (None, sample))
                # The same object where nothing is new.
                self._told[trial] = before, shown if known is before and shown == sample else sample
                told[trial] = self._told[trial][1]
        return told

    def _seen_now(
        self, run: FoundRun, counted: FoundRun, before: _Seen | None, wanted: Sequence[str], now: float
    ) -> _Seen:
        """Return a run as it is now; ``wanted`` are the objective of its trial and what counts beside it."""
        newest, also = counted.metrics.get(wanted[0]), newest_finite(counted.metrics, wanted[1:])
        stamp = None if newest is None else self._stamped(newest, before, now)
        sample = None if newest is None or stamp is None else self._sample(counted, newest, stamp, also)
        return _Seen(run, counted, now, stamp, sample)

    def _stamped(self, newest: MetricPoint, before: _Seen | None, now: float) -> _Stamp:
        """Return when a report was made, whatever the clock of its node says: after the last look, and before now."""
        known = None if before is None else before.stamp
        if known is not None and known.report == (newest.step, newest.epoch_s):
            return known
        # A run that was not there before may have begun before the last look, as after an outage of MLflow.
        earliest = -math.inf
        if known is not None and before is not None:
            earliest = max(known.epoch_s, before.read_s - _LAG_S)
        return _Stamp((newest.step, newest.epoch_s), min(max(newest.epoch_s, earliest), now))

    def _sample(self, run: FoundRun, newest: MetricPoint, stamp: _Stamp, also: tuple[tuple[str, float], ...]) -> Sample:
        metrics = run.metrics
        total = _value(metrics, contract.METRIC_STEPS_TOTAL)
        return Sample(
            value=newest.value,
            step=newest.step,
            at=self._to_sweep_time(stamp.epoch_s),
            cpu_seconds=_value(metrics, contract.METRIC_CPU_SECONDS),
            first=_value(metrics, contract.METRIC_OBJECTIVE_FIRST),
            steps_total=int(total) if total is not None and 0 < total < 2**53 else None,
            training=run.attempt,
            cpu_wait=_value(metrics, contract.METRIC_CPU_WAIT),
            also=also,
            remark=run.remark,
        )


def newest_finite(metrics: Mapping[str, MetricPoint], names: Iterable[str]) -> tuple[tuple[str, float], ...]:
    """Return the newest values of the metrics of those ``names`` that have a finite one."""
    found = ((name, _value(metrics, name)) for name in names)
    return tuple((name, value) for name, value in found if value is not None and math.isfinite(value))


def _alike(run: FoundRun, other: FoundRun) -> bool:
    """Return whether two readings of a run say the same. A value that is not a number is like another such."""
    if (run.going_on, run.others, run.metrics.keys()) != (other.going_on, other.others, other.metrics.keys()):
        return False
    return all(
        (before.step, before.epoch_s) == (after.step, after.epoch_s)
        and (before.value == after.value or (math.isnan(before.value) and math.isnan(after.value)))
        for name, before in run.metrics.items()
        for after in (other.metrics[name],)
    )


def _value(metrics: Mapping[str, MetricPoint], name: str) -> float | None:
    point = metrics.get(name)
    return None if point is None else point.value
