"""Progress out of MLflow: one bulk query for a whole sweep, whatever its number of trials."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.model import Sample, TrialId
from controllers.ports import MetricSource
from mlflow_hooks import contract

_LOG = logging.getLogger(__name__)
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Reported:
    """One metric's newest point as MLflow keeps it."""

    value: float
    step: int
    epoch_s: float


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a sweep's trials are found: their experiments, and what their ``specon.sweep_id`` begins with."""

    experiment_ids: Sequence[str]
    sweep_prefix: str


class MlflowSource:
    """Reads the newest point of each trial's metrics. Whatever MLflow holds is untrusted data.

    Args:
        client: a client of the tracking server.
        scope: tells where the trials log to, as far as that is known.
        objectives: name of the objective of each trial known so far.
        to_sweep_time: turns Unix seconds into seconds of the sweep's clock.
    """

    def __init__(
        self,
        client: MlflowClient,
        scope: Callable[[], Scope],
        objectives: Callable[[], Mapping[TrialId, str]],
        to_sweep_time: Callable[[float], float],
    ) -> None:
        self._client = client
        self._scope = scope
        self._objectives = objectives
        self._to_sweep_time = to_sweep_time
        self.run_ids: Mapping[TrialId, str] = {}
        self.logged: Mapping[TrialId, frozenset[str]] = {}
        self.away = False

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return the newest sample of each trial; empty, and ``away`` set, if MLflow does not answer."""
        try:
            runs = {_trial_of(run): run for run in self._search()}
        except (MlflowException, OSError) as error:
            if not self.away:
                _LOG.warning("MLflow does not answer: %s", str(error)[:200])
            self.away = True
            return {}
        self.away = False
        metrics = {trial: _metrics(run) for trial, run in runs.items()}
        self.run_ids = {trial: run.info.run_id for trial, run in runs.items()}
        self.logged = {trial: frozenset(found) for trial, found in metrics.items()}
        objectives = self._objectives()
        samples = {trial: self._sample(found, objectives.get(trial, "")) for trial, found in metrics.items()}
        return {trial: sample for trial, sample in samples.items() if sample is not None}

    def _search(self) -> list[Run]:
        scope = self._scope()
        experiments = list(scope.experiment_ids)
        wanted = f"tags.`{contract.TAG_SWEEP_ID}` LIKE '{scope.sweep_prefix}%' AND tags.`{contract.TAG_TRIAL_ID}` != ''"
        runs: list[Run] = []
        token: str | None = None
        while experiments:
            page = self._client.search_runs(experiments, wanted, max_results=_PAGE, page_token=token)
            runs.extend(page)
            token = page.token
            if not token:
                break
        return runs

    def _sample(self, metrics: Mapping[str, Reported], objective: str) -> Sample | None:
        newest = metrics.get(objective)
        if newest is None:
            return None
        return Sample(
            value=newest.value,
            step=newest.step,
            at=self._to_sweep_time(newest.epoch_s),
            cpu_seconds=_value(metrics, contract.METRIC_CPU_SECONDS),
            first=_value(metrics, contract.METRIC_OBJECTIVE_FIRST),
            steps_total=_whole(_value(metrics, contract.METRIC_STEPS_TOTAL)),
        )


class BackgroundSource:
    """Polls another source on a thread, so that a slow tracking server never holds up a tick."""

    def __init__(self, source: MetricSource, period_s: float) -> None:
        self._source = source
        self._period_s = period_s
        self._newest: Mapping[TrialId, Sample] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mlflow-source", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def poll(self) -> Mapping[TrialId, Sample]:
        """Return what the last query found; its age shows in each sample's ``at``."""
        return self._newest

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            found = self._source.poll()
            if found:
                self._newest = found
            # A sweep of thousands of trials takes seconds to read; it must not take all of a core.
            self._stop.wait(max(self._period_s, time.monotonic() - began))


def _trial_of(run: Run) -> TrialId:
    return TrialId(run.data.tags[contract.TAG_TRIAL_ID])


def _metrics(run: Run) -> dict[str, Reported]:
    # run.data.metrics drops step and timestamp; the protobuf form keeps them.
    return {m.key: Reported(m.value, m.step, m.timestamp / 1000) for m in run.data.to_proto().metrics}


def _value(metrics: Mapping[str, Reported], name: str) -> float | None:
    found = metrics.get(name)
    return None if found is None else found.value


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and value > 0 and value < 2**53 else None
