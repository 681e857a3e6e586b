"""MLflow as the place to watch: a parent run per sweep, live tags on each trial's run."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from mlflow.entities import RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.model import Assessment, Snapshot, Trial, TrialId
from mlflow_hooks import contract

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SweepRun:
    """Where a sweep stands in MLflow."""

    sweep_id: str
    experiment_id: str
    run_id: str


def open_sweep(client: MlflowClient, sweep_id: str, experiment: str, name: str, policy: str) -> SweepRun:
    """Find or create the parent run of a sweep; a resumed sweep continues in the run it had."""
    found = client.get_experiment_by_name(experiment)
    experiment_id = found.experiment_id if found else client.create_experiment(experiment)
    parents = client.search_runs(
        [experiment_id],
        f"tags.`{contract.TAG_SWEEP_ID}` = '{sweep_id}' AND tags.`specon.policy` = '{policy}'",
        max_results=1,
    )
    if parents:
        client.update_run(parents[0].info.run_id, status="RUNNING")
        return SweepRun(sweep_id, experiment_id, parents[0].info.run_id)
    tags = {contract.TAG_SWEEP_ID: sweep_id, "specon.policy": policy}
    run = client.create_run(experiment_id, run_name=name, tags=tags)
    return SweepRun(sweep_id, experiment_id, run.info.run_id)


def close_sweep(client: MlflowClient, sweep: SweepRun, figures: Mapping[str, float], report: Path | None) -> None:
    """Log what the sweep came to and end its parent run."""
    for key, value in figures.items():
        client.log_metric(sweep.run_id, key, value)
    if report is not None:
        client.log_artifact(sweep.run_id, str(report))
    client.set_terminated(sweep.run_id)


class TrialTags:
    """An observer that keeps each trial's tags up to date, one write per trial and change.

    Writes from a thread of its own: a slow tracking server never holds up a decision, and of
    several changes that wait only the newest is written.
    """

    def __init__(self, client: MlflowClient, run_ids: Callable[[], Mapping[TrialId, str]]) -> None:
        self._client = client
        self._run_ids = run_ids
        self._wanted: dict[TrialId, dict[str, str]] = {}
        self._written: dict[TrialId, dict[str, str]] = {}
        self._changed = threading.Event()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="mlflow-tags", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop = True
        self._changed.set()
        self._thread.join(timeout=15)

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        """Take note of the newest tags; returns at once."""
        self._wanted = {
            trial.id: _tags(trial, assessments.get(trial.id), reasons.get(trial.id)) for trial in snapshot.trials
        }
        self._changed.set()

    def _run(self) -> None:
        while not self._stop:
            self._changed.wait(timeout=5)
            self._changed.clear()
            self._write()

    def _write(self) -> None:
        run_ids = self._run_ids()
        for trial, tags in self._wanted.items():
            known = self._written.get(trial, {})
            news = {key: value for key, value in tags.items() if known.get(key) != value}
            if news and trial in run_ids and self._send(run_ids[trial], news):
                self._written[trial] = {**known, **news}

    def _send(self, run_id: str, tags: Mapping[str, str]) -> bool:
        try:
            self._client.log_batch(run_id, tags=[RunTag(key, value) for key, value in tags.items()])
        except (MlflowException, OSError) as error:
            _LOG.debug("tags not written yet: %s", str(error)[:200])
            return False
        return True


def _tags(trial: Trial, assessment: Assessment | None, reason: str | None) -> dict[str, str]:
    tags = {contract.TAG_CPU: f"{trial.cpu:.3f}", contract.TAG_MOVES: str(trial.moves)}
    if trial.node is not None:
        tags[contract.TAG_NODE] = trial.node
    if assessment is not None:
        tags[contract.TAG_CATEGORY] = assessment.category.value
        if assessment.growth is not None:
            tags[contract.TAG_GROWTH] = f"{assessment.growth:.4g}"
    if reason is not None:
        tags[contract.TAG_REASON] = reason
    return tags
