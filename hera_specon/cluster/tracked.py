"""What MLflow knows of the trials of some sweeps: progress, and what the controller wrote on their runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.errors import SpeconError
from controllers.core.model import Assessment, Category, Progress, TrialId
from mlflow_hooks import contract

_PAGE: Final = 1000
_MOST_RUNS: Final = 20_000
_MOST_TEXT: Final = 300
_MOST_ERROR: Final = 100
RECOMMENDED: Final = "specon.recommended."
"""Begins the tags of a controller that acts on nothing; the rest is that of the tag it stands for."""


class TrackingError(SpeconError):
    """MLflow does not answer, or its address is none."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """A trial's run: its newest metrics by name with their steps, and its tags. All of it is untrusted."""

    metrics: Mapping[str, tuple[float, int]]
    tags: Mapping[str, str]

    def assessment(self) -> Assessment | None:
        """Return what a policy thinks of the trial, None where none has said."""
        told = self._told(contract.TAG_CATEGORY)
        category = Category(told) if told in set(Category) else None
        outlook = self._told(contract.TAG_OUTLOOK)[:_MOST_TEXT]
        if category is None and not outlook:
            return None
        return Assessment(category, _finite(self._told(contract.TAG_GROWTH)), outlook)

    def reason(self) -> str:
        """Return why it was acted on last."""
        return self._told(contract.TAG_REASON)[:_MOST_TEXT]

    def progress(self, objective: str) -> Progress | None:
        """Return how far it has come, None where it has not logged its objective; times are left out."""
        newest = self.metrics.get(objective)
        if newest is None or not math.isfinite(newest[0]):
            return None
        value, step = newest
        total = self.metrics.get(contract.METRIC_STEPS_TOTAL, (0.0, 0))[0]
        steps_total = int(total) if 0 < total < 2**53 else None
        return Progress(first=value, best=value, latest=value, step=step, at=0.0, steps_total=steps_total)

    def _told(self, tag: str) -> str:
        return self.tags.get(tag) or self.tags.get(RECOMMENDED + tag.removeprefix("specon."), "")


def open_tracking(uri: str) -> MlflowClient:
    """Return a client of the tracking server at ``uri``.

    Raises:
        TrackingError: It is no server's address. A file that a manifest names is not opened.
    """
    if urlsplit(uri).scheme not in {"http", "https"}:
        message = f"{uri!r} is no address of an MLflow server, such as http://127.0.0.1:5000"
        raise TrackingError(message)
    return MlflowClient(uri)


def tracked_trials(client: MlflowClient, sweeps: Mapping[str, str]) -> Mapping[TrialId, Tracked]:
    """Return what is known of each trial of ``sweeps``, which gives the experiment of each sweep id.

    Raises:
        TrackingError: MLflow does not answer.
    """
    try:
        experiments = [found for name in sorted(set(sweeps.values())) if (found := client.get_experiment_by_name(name))]
        ids = [experiment.experiment_id for experiment in experiments]
        runs = [run for sweep in sweeps for run in _runs(client, ids, sweep)] if ids else []
    except (MlflowException, OSError) as error:
        message = f"MLflow does not answer ({str(error)[:_MOST_ERROR]})"
        raise TrackingError(message) from error
    return {TrialId(run.data.tags[contract.TAG_TRIAL_ID]): _tracked(run) for run in runs}


def _runs(client: MlflowClient, experiments: Sequence[str], sweep: str) -> Iterator[Run]:
    # An id comes from the cluster; its form was checked, so it can't end the quotes.
    wanted = f"tags.`{contract.TAG_SWEEP_ID}` = '{sweep}' AND tags.`{contract.TAG_TRIAL_ID}` != ''"
    token: str | None = None
    left = _MOST_RUNS
    while left > 0:
        page = client.search_runs(list(experiments), wanted, max_results=min(_PAGE, left), page_token=token)
        yield from page
        left -= len(page)
        token = page.token
        if not token:
            return


def _tracked(run: Run) -> Tracked:
    # run.data.metrics drops the step; the protobuf form keeps it.
    metrics = {metric.key: (metric.value, metric.step) for metric in run.data.to_proto().metrics}
    return Tracked(metrics, run.data.tags)


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
