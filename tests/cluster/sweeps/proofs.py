"""That a sweep is whole after whatever was done to it, as MLflow, the disk and the API server tell it."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Final

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from controllers.core import labels
from controllers.worlds.argo.calls.api import CONFIG_MAPS, PODS
from controllers.worlds.argo.calls.untrusted import at
from mlflow_hooks import contract
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.descent_sweep import NAME

MOVED: Final = contract.EXIT_MIGRATE


def check_whole(bench: Bench, workflow: Workflow, *, on_volume: bool = True) -> None:
    """Check that the workflow succeeded and that of each trial nothing was lost, doubled or left behind.

    ``on_volume``: whether the trials keep their journals on the bench's volume, and not in a bucket.
    """
    assert bench.phase(workflow) == "Succeeded", bench.story()
    bench.wait(lambda: _all_finished(bench, workflow), "MLflow knows that all trials have finished", 30)
    client, runs = MlflowClient(bench.tracking.uri), runs_of(bench, workflow)
    assert sorted(runs) == sorted(_ids(workflow)), "a trial without an MLflow run, or a run without a trial"
    for trial, rate in zip(_ids(workflow), workflow.rates, strict=True):
        (run,) = runs[trial]
        _check_history(client, run, _losses(rate, workflow.steps))
        if on_volume:
            check_journal(bench.state / trial, workflow.steps)
    _check_attempts(bench, workflow)
    check_nothing_waits(bench)


def check_nothing_left(bench: Bench, workflow: Workflow) -> None:
    """Delete the workflow and check that nothing of ours stays."""
    bench.delete(workflow)
    bench.wait(lambda: not bench.has_workflow(workflow), "the workflow is gone", 30)
    bench.wait(lambda: not _names(bench, PODS.path(bench.namespace), labels.LABEL_TRIAL), "its pods are gone", 60)
    bench.wait(
        lambda: not _names(bench, CONFIG_MAPS.path(bench.namespace), labels.LABEL_STATE), "its ConfigMaps are gone", 60
    )


def check_nothing_waits(bench: Bench) -> None:
    """Check that no pod of a trial is left behind a gate."""
    pods = bench.api.get(PODS.path(bench.namespace), {"labelSelector": labels.LABEL_TRIAL})["items"]
    assert [pod["metadata"]["name"] for pod in pods if at(pod, "spec", "schedulingGates")] == []


def check_journal(folder: Path, steps: int) -> None:
    """Check that the attempts of a trial wrote each step to its disk once, in order, whichever wrote it."""
    points = [json.loads(line) for line in (folder / "points.jsonl").read_text().splitlines()]
    assert [point["step"] for point in points if point["key"] == "loss"] == list(range(steps))


def moves(bench: Bench, workflow: Workflow, trial: str | None = None) -> int:
    """Return how often a trial left a node with exit code 75 and went on on another, by its pods."""
    found = 0
    for name in workflow.trials if trial is None else (trial,):
        attempts = [pod for pod in bench.pods.of(workflow.name, name) if "started" in pod.moments]
        pairs = pairwise(attempts)
        found += sum(before.exit_code == MOVED and before.node != after.node for before, after in pairs)
    return found


def resizes(bench: Bench, workflow: Workflow) -> int:
    """Return how often the CPU request of a running container was seen to change."""
    return sum(len(pod.shares) - 1 for pod in bench.pods.all(workflow.name) if pod.shares)


def runs_of(bench: Bench, workflow: Workflow, sweep: str = NAME) -> dict[str, list[Run]]:
    """Return the MLflow runs of each trial of a sweep of this name, by its whole id."""
    client = MlflowClient(bench.tracking.uri)
    experiment = client.get_experiment_by_name(sweep)
    found: dict[str, list[Run]] = {}
    if experiment is None:
        return found
    wanted = f"tags.`{contract.TAG_TRIAL_ID}` LIKE '{workflow.uid}.%'"
    for run in client.search_runs([experiment.experiment_id], wanted):
        found.setdefault(run.data.tags[contract.TAG_TRIAL_ID], []).append(run)
    return found


def _check_attempts(bench: Bench, workflow: Workflow) -> None:
    """Each trial has one pod that succeeded: its newest; each before it ended, or was lost with its node.

    Kubernetes deletes the pods of a node that is silent for long. Where Argo was away meanwhile, it never reads the end
    of one that had just succeeded, and starts it again: that attempt finds nothing left to train. So does the attempt
    after one whose trainer succeeded while Argo's own container beside it failed, without the API server.
    """
    for trial in workflow.trials:
        *earlier, last = bench.pods.of(workflow.name, trial)
        assert (last.phase, last.exit_code) == ("Succeeded", 0), f"{trial}: {last.name} is {last.phase}"
        again = [pod for pod in earlier if pod.phase == "Succeeded" and not pod.given_up]
        assert not again, f"{trial} was run again after it had succeeded: {'; '.join(map(str, (*earlier, last)))}"


def _check_history(client: MlflowClient, run: Run, losses: list[float]) -> None:
    assert run.info.status == "FINISHED"
    history = sorted(
        client.get_metric_history(run.info.run_id, "loss"), key=lambda point: (point.step, point.timestamp)
    )
    assert [point.step for point in history] == list(range(len(losses))), "a step is missing or there twice"
    assert [point.value for point in history] == losses, "the training went on from something else than its checkpoint"
    assert run.data.metrics["loss"] == losses[-1]
    for once in (contract.METRIC_OBJECTIVE_FIRST, contract.METRIC_STEPS_TOTAL):
        assert len(client.get_metric_history(run.info.run_id, once)) == 1, once


def _losses(rate: float, steps: int) -> list[float]:
    """Return what the descent logs, computed as it does."""
    x, found = 1.0, []
    for _ in range(steps):
        x -= rate * x
        found.append(x**2)
    return found


def _ids(workflow: Workflow) -> list[str]:
    return [f"{workflow.uid}.{NAME}.{trial}" for trial in workflow.trials]


def _all_finished(bench: Bench, workflow: Workflow) -> bool:
    runs = [run for found in runs_of(bench, workflow).values() for run in found]
    return len(runs) >= len(workflow.trials) and all(run.info.status == "FINISHED" for run in runs)


def _names(bench: Bench, path: str, label: str) -> list[str]:
    return [item["metadata"]["name"] for item in bench.api.get(path, {"labelSelector": label})["items"]]
