"""What people see in MLflow: the parent run of a sweep, and each trial's tags."""

import time
from collections.abc import Callable
from dataclasses import replace

from mlflow.entities import RunTag
from mlflow.tracking import MlflowClient

from controllers.mlflow_board import TrialTags, close_sweep, open_sweep
from controllers.model import Assessment, Category, Direction, NodeName, Phase, Snapshot, Trial, TrialId
from mlflow_hooks import contract

A = TrialId("uid.s.a")
RUNNING = Trial(A, Phase.RUNNING, 0.1, 0.1, 0.0, Direction.MINIMIZE, 0.0, (NodeName("node-1"),), 1)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_resumed_sweep_continues_in_its_parent_run(client: MlflowClient) -> None:
    first = open_sweep(client, "uid.s", "resumed", "s · default", "default")
    assert open_sweep(client, "uid.s", "resumed", "s · default", "default") == first
    assert open_sweep(client, "other.s", "resumed", "s · default", "default") != first


def test_a_finished_sweep_shows_its_figures(client: MlflowClient) -> None:
    sweep = open_sweep(client, "uid.s", "finished", "s · default", "default")
    close_sweep(client, sweep, {"specon.makespan_s": 12.5}, None)
    run = client.get_run(sweep.run_id)
    assert (run.info.status, run.data.metrics["specon.makespan_s"]) == ("FINISHED", 12.5)


def test_tags_follow_the_trial_and_only_changes_are_written(client: MlflowClient) -> None:
    run = client.create_run(client.create_experiment("tags")).info.run_id
    writes: list[int] = []

    class Watched:
        """Counts what is written."""

        def log_batch(self, run_id: str, tags: list[RunTag]) -> None:
            writes.append(len(tags))
            client.log_batch(run_id, tags=tags)

    assessed = {A: Assessment(Category.WATCHING, 0.0123)}
    moved = replace(RUNNING, nodes=(NodeName("node-2"),), attempt=2, moves=1)
    with TrialTags(Watched(), lambda: {A: run}) as tags:  # type: ignore[arg-type] # only log_batch is used
        tags.observe(Snapshot(0.0, (RUNNING,), ()), assessed, {A: "because"})
        until(lambda: len(writes) == 1)
        tags.observe(Snapshot(1.0, (RUNNING,), ()), assessed, {A: "because"})
        tags.observe(Snapshot(2.0, (moved,), ()), assessed, {A: "because"})
        until(lambda: len(writes) == 2)
    shown = client.get_run(run).data.tags
    assert writes == [6, 2]
    assert shown[contract.TAG_NODE] == "node-2"
    assert shown[contract.TAG_MOVES] == "1"
    assert (shown[contract.TAG_CATEGORY], shown[contract.TAG_GROWTH]) == ("watching", "0.0123")
    assert shown[contract.TAG_REASON] == "because"
