"""The parent run of each sweep in MLflow."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from mlflow.entities import Run, RunStatus
from mlflow.tracking import MlflowClient

from controllers.core.errors import SpeconError
from controllers.core.objectives import missing_objectives
from controllers.core.results import RunResult
from controllers.tracking.homes import NAMESPACE_TAG, home_of
from controllers.tracking.logins import ForeignAddressError, check_artifacts
from mlflow_hooks import contract

_POLICY: Final = "specon.policy"
_SPEC: Final = "specon.policy_spec"
_WORKFLOW: Final = "specon.workflow"
_MOST_TAG: Final = 4000
"""Characters of a tag that any tracking server takes."""
_FRONT: Final = "specon.front"
"""The trials on the Pareto front, as a JSON list, on a sweep of several objectives that is over."""
_MISSING: Final = "specon.missing_objective"
"""Which trials never logged their objective, and what they logged instead; on a sweep that is over, where some did
so."""


@dataclass(frozen=True, slots=True)
class SweepRun:
    """Where a sweep stands in MLflow."""

    sweep_id: str
    experiment_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Steering:
    """What steers a sweep: with the sweep's id, the identity of its parent run.

    Attributes:
        title: what the run is called when it is made.
        policy: name of the policy.
        workflow: uid of the workflow, since one that continues another's sweep has a clock of its own.
        namespace: that of the workflow; empty on one machine.
        spec: the policy with its parameters, as ``parse_policy`` takes it; not a part of the identity.
    """

    title: str
    policy: str
    workflow: str
    namespace: str = ""
    spec: str = ""


class ForeignSweepError(SpeconError):
    """A sweep belongs to another namespace, whose runs nobody else may write to, or its artifacts to another server."""


class ElsewhereError(ForeignSweepError):
    """A sweep is at home in another namespace: this one's workflow is left alone."""


def check_home(client: MlflowClient, sweep_uid: str, steering: Steering) -> None:
    """Check that a workflow may continue the sweeps whose ids begin with ``sweep_uid``.

    Raises:
        ElsewhereError: A workflow of another namespace began them.
    """
    home = home_of(client, sweep_uid)
    if home not in {None, steering.namespace}:
        message = f"sweep {sweep_uid} belongs to namespace {home!r}, not to {steering.namespace!r}"
        raise ElsewhereError(message)


def open_sweep(client: MlflowClient, sweep_id: str, experiment: str, steering: Steering) -> SweepRun:
    """Find or create the parent run of a sweep; a resumed sweep continues in the run it had.

    Raises:
        ForeignSweepError: A workflow of another namespace began it, or its artifacts would go to another server.
    """
    existing = client.get_experiment_by_name(experiment)
    experiment_id = existing.experiment_id if existing else client.create_experiment(experiment)
    begun = f"tags.`{contract.TAG_SWEEP_ID}` = '{sweep_id}' AND tags.`{NAMESPACE_TAG}` != ''"
    for run in client.search_runs([experiment_id], begun, max_results=1, order_by=["attributes.start_time ASC"]):
        home = run.data.tags[NAMESPACE_TAG]
        # People who train on a machine of their own have a login of MLflow, and need no controller's.
        if steering.namespace and home != steering.namespace:
            message = f"sweep {sweep_id} belongs to namespace {home!r}, not to {steering.namespace!r}"
            raise ForeignSweepError(message)
    parent = _parent(client, sweep_id, experiment_id, steering)
    if parent is not None:
        # It may have ended: Argo was told to retry its workflow, or its owner resumed it.
        _check_home(client, parent, steering)
        client.update_run(parent.info.run_id, status="RUNNING")
        if _MISSING in parent.data.tags:
            client.delete_tag(parent.info.run_id, _MISSING)
        return SweepRun(sweep_id, experiment_id, parent.info.run_id)
    tags = {contract.TAG_SWEEP_ID: sweep_id, _POLICY: steering.policy, _WORKFLOW: steering.workflow}
    tags |= {NAMESPACE_TAG: steering.namespace} if steering.namespace else {}
    tags |= {_SPEC: steering.spec[:_MOST_TAG]} if steering.spec else {}
    run = client.create_run(experiment_id, run_name=steering.title, tags=tags)
    _check_home(client, run, steering)
    return SweepRun(sweep_id, experiment_id, run.info.run_id)


def _check_home(client: MlflowClient, run: Run, steering: Steering) -> None:
    """Refuse to keep a controller's record where somebody else would get its login."""
    if not steering.namespace:
        return
    try:
        check_artifacts(client, run.info.run_id, str(run.info.artifact_uri))
    except ForeignAddressError as error:
        raise ForeignSweepError(str(error)) from error


def sweep_is_closed(client: MlflowClient, sweep_id: str, experiment: str, steering: Steering) -> bool:
    """Return whether the sweep has a parent run, and that has ended."""
    existing = client.get_experiment_by_name(experiment)
    parent = _parent(client, sweep_id, existing.experiment_id, steering) if existing else None
    return parent is not None and RunStatus.is_terminated(RunStatus.from_string(parent.info.status))


def close_sweep(
    client: MlflowClient,
    sweep: SweepRun,
    result: RunResult | None,
    records: Iterable[Path] = (),
    status: Literal["FINISHED", "FAILED", "KILLED"] = "FINISHED",
) -> None:
    """Log what the sweep came to and which trial was the best, keep its ``records`` as artifacts, and end its run.

    Without a ``result`` there is nothing to log.
    """
    if result is not None:
        figures = {
            "specon.makespan_s": result.makespan_s,
            "specon.mean_completion_s": result.mean_completion_s,
            "specon.median_completion_s": result.median_completion_s,
        }
        if result.cost is not None:
            figures["specon.cost"] = result.cost
        name = sweep.sweep_id.rpartition(".")[2]
        for best in result.ranking().get(name, ())[:1]:
            figures["specon.best_objective"] = best.final_metric or 0.0
            # Tags, since a sweep that goes on may find a better one, and parameters of a run never change.
            client.set_tag(sweep.run_id, "specon.best_trial", best.id)
            client.set_tag(sweep.run_id, "specon.best_params", json.dumps(best.params)[:_MOST_TAG])
        if (front := result.fronts().get(name)) is not None:
            client.set_tag(sweep.run_id, _FRONT, _as_many_as_fit([trial.id for trial in front]))
        for key, value in figures.items():
            client.log_metric(sweep.run_id, key, value)
        own = replace(result, trials=tuple(trial for trial in result.trials if trial.sweep == name))
        if lines := missing_objectives(own).lines:
            client.set_tag(sweep.run_id, _MISSING, "; ".join(lines)[:_MOST_TAG])
    for record in records:
        client.log_artifact(sweep.run_id, str(record))
    client.set_terminated(sweep.run_id, status)


def _as_many_as_fit(names: list[str]) -> str:
    """Return the first of ``names`` that a tag holds, as JSON: each trial's own run tells of it, too."""
    while len(text := json.dumps(names)) > _MOST_TAG:
        names = names[: len(names) * _MOST_TAG // len(text)]
    return text


def _parent(client: MlflowClient, sweep_id: str, experiment_id: str, steering: Steering) -> Run | None:
    wanted = {contract.TAG_SWEEP_ID: sweep_id, _POLICY: steering.policy, _WORKFLOW: steering.workflow}
    question = " AND ".join(f"tags.`{name}` = '{value}'" for name, value in wanted.items())
    runs = client.search_runs([experiment_id], question, max_results=1)
    return runs[0] if runs else None
