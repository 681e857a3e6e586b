"""MLflow as the place to watch: a parent run per sweep, live tags on each trial's run."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from mlflow.entities import Run, RunStatus, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.model import Assessment, Snapshot, Trial, TrialId
from mlflow_hooks import contract

_LOG = logging.getLogger(__name__)
Compose = Callable[[Trial, Assessment | None, str | None], dict[str, str]]


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
    parent = _parent(client, sweep_id, experiment_id, policy)
    if parent is not None:
        client.update_run(parent.info.run_id, status="RUNNING")
        return SweepRun(sweep_id, experiment_id, parent.info.run_id)
    tags = {contract.TAG_SWEEP_ID: sweep_id, "specon.policy": policy}
    run = client.create_run(experiment_id, run_name=name, tags=tags)
    return SweepRun(sweep_id, experiment_id, run.info.run_id)


def sweep_is_closed(client: MlflowClient, sweep_id: str, experiment: str, policy: str) -> bool:
    """Return whether the sweep has a parent run, and that has ended."""
    found = client.get_experiment_by_name(experiment)
    parent = _parent(client, sweep_id, found.experiment_id, policy) if found else None
    return parent is not None and RunStatus.is_terminated(RunStatus.from_string(parent.info.status))


def close_sweep(
    client: MlflowClient,
    sweep: SweepRun,
    figures: Mapping[str, float],
    report: Path | None,
    status: Literal["FINISHED", "FAILED", "KILLED"] = "FINISHED",
) -> None:
    """Log what the sweep came to and end its parent run."""
    for key, value in figures.items():
        client.log_metric(sweep.run_id, key, value)
    if report is not None:
        client.log_artifact(sweep.run_id, str(report))
    client.set_terminated(sweep.run_id, status)


def _parent(client: MlflowClient, sweep_id: str, experiment_id: str, policy: str) -> Run | None:
    wanted = f"tags.`{contract.TAG_SWEEP_ID}` = '{sweep_id}' AND tags.`specon.policy` = '{policy}'"
    found = client.search_runs([experiment_id], wanted, max_results=1)
    return found[0] if found else None


class TrialTags:
    """An observer that keeps each trial's tags up to date, one write per trial and change.

    Writes from a thread of its own: a slow tracking server never holds up a decision, and of
    several changes that wait only the newest is written.

    Args:
        client: a client of the tracking server.
        run_ids: tells the MLflow run of each trial that has one.
        compose: makes a trial's tags of what is known of it: itself, what a policy thinks, why it was acted on.
    """

    def __init__(
        self, client: MlflowClient, run_ids: Callable[[], Mapping[TrialId, str]], compose: Compose | None = None
    ) -> None:
        self._client = client
        self._run_ids = run_ids
        self._compose = compose or trial_tags
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
            trial.id: self._compose(trial, assessments.get(trial.id), reasons.get(trial.id))
            for trial in snapshot.trials
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
            if self._stop:
                return
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


def trial_tags(trial: Trial, assessment: Assessment | None, reason: str | None) -> dict[str, str]:
    """Return what a trial's MLflow run shows of it: share, node, moves, category, growth, and the newest reason."""
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
