"""Progress out of MLflow: one bulk query for a whole sweep, whatever its number of trials."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.model import Sample, TrialId
from controllers.tracking.runs import FoundRun, Reported, find_runs
from mlflow_hooks import contract

_LOG = logging.getLogger(__name__)


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
            runs = {run.trial: run for run in self._search()}
        except (MlflowException, OSError) as error:
            if not self.away:
                _LOG.warning("MLflow does not answer: %s", str(error)[:200])
            self.away = True
            return {}
        self.away = False
        self.run_ids = {trial: run.run_id for trial, run in runs.items()}
        self.logged = {trial: frozenset(run.metrics) for trial, run in runs.items()}
        objectives = self._objectives()
        samples = {trial: self._sample(run.metrics, objectives.get(trial, "")) for trial, run in runs.items()}
        return {trial: sample for trial, sample in samples.items() if sample is not None}

    def _search(self) -> Sequence[FoundRun]:
        scope = self._scope()
        wanted = f"tags.`{contract.TAG_SWEEP_ID}` LIKE '{scope.sweep_prefix}%' AND tags.`{contract.TAG_TRIAL_ID}` != ''"
        return list(find_runs(self._client, scope.experiment_ids, wanted)) if scope.experiment_ids else []

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


def _value(metrics: Mapping[str, Reported], name: str) -> float | None:
    found = metrics.get(name)
    return None if found is None else found.value


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and value > 0 and value < 2**53 else None
