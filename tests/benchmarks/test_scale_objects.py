"""What the benchmark at scale puts into a cluster is what a controller takes for trials of a sweep."""

import base64
import gzip
import json
from dataclasses import replace

import pytest

from benchmarks.scale.argo import Attempt, attempt_nodes, pod_of, status_nodes, status_of
from benchmarks.scale.manifest import Json, SweepManifest, sweep_manifest
from benchmarks.scale.size import Size, SizeError
from controllers.core.labels import GATE_PLACEMENT
from controllers.worlds.argo.reading.pods import project_pod
from controllers.worlds.argo.reading.workflows import project_workflow

UID = "0f0e0d0c-0000-4000-8000-000000000001"
BEGAN = 1_700_000_000.0


@pytest.fixture(scope="module")
def sweep() -> SweepManifest:
    return sweep_manifest(3, 4, "specon+flowcon", "http://mlflow:5000")


def attempts(sweep: SweepManifest) -> list[Attempt]:
    return [Attempt(sweep, UID, trial, node=f"n{number}") for number, trial in enumerate(sweep.trials)]


def as_stored(sweep: SweepManifest, status: Json) -> Json:
    metadata = {**sweep.body["metadata"], "uid": UID, "creationTimestamp": "2023-11-14T22:13:20Z"}
    return {**sweep.body, "metadata": metadata, "status": status}


def test_a_pod_is_taken_for_its_trial(sweep: SweepManifest) -> None:
    record = project_pod(pod_of(attempts(sweep)[2]))
    assert record is not None
    assert record.definition is not None
    assert (record.definition.id, record.definition.policy) == (f"{UID}.vae.t002", "specon+flowcon")
    assert (record.workflow_uid, record.attempt, record.node, record.gated) == (UID, 1, "n2", False)
    assert record.share.wanted == 0.1


def test_the_attempt_after_a_move_waits_for_the_controller(sweep: SweepManifest) -> None:
    pod = pod_of(attempts(sweep)[0].next())
    record = project_pod(pod)
    assert record is not None
    assert (record.attempt, record.node, record.gated) == (2, "", True)
    assert pod["spec"]["schedulingGates"] == [{"name": GATE_PLACEMENT}]


def test_steps_and_pods_are_of_the_same_trials(sweep: SweepManifest) -> None:
    first = attempts(sweep)
    workflow = project_workflow(as_stored(sweep, status_of(status_nodes(sweep, first, BEGAN), BEGAN, 0)))
    assert workflow is not None
    assert [s.id for s in workflow.sweeps] == [f"{UID}.vae"]
    assert {step.definition.id for step in workflow.steps.values()} == {f"{UID}.vae.t00{n}" for n in range(4)}
    defined = [step.definition for step in workflow.steps.values()]
    for attempt in first:
        record = project_pod(pod_of(attempt))
        assert record is not None
        assert record.definition in defined


def test_a_move_shows_in_the_workflow_as_one(sweep: SweepManifest) -> None:
    before = attempts(sweep)[0]
    after = replace(before.next(), node="n7")
    nodes = status_nodes(sweep, [before], BEGAN) | attempt_nodes([before, after], "2023-11-14T22:13:20Z")
    workflow = project_workflow(as_stored(sweep, status_of(nodes, BEGAN, 0)))
    assert workflow is not None
    (step,) = workflow.steps.values()
    assert [(one.node, one.exit_code) for one in step.attempts] == [("n0", 75), ("n7", None)]


def test_nodes_are_packed_where_argo_would_pack_them(sweep: SweepManifest) -> None:
    nodes = status_nodes(sweep, attempts(sweep), BEGAN)
    assert status_of(nodes, BEGAN, 0)["nodes"] == nodes
    packed = status_of(nodes, BEGAN, 1024 * 1024)
    assert packed["nodes"] is None
    assert json.loads(gzip.decompress(base64.b64decode(packed["compressedNodes"]))) == nodes


@pytest.mark.parametrize(("nodes", "trials", "sweeps"), [(0, 1, 1), (1, 0, 1), (1, 1, 0), (10, 25, 2), (1, 9, 1)])
def test_sizes_that_do_not_fit_together_are_refused(nodes: int, trials: int, sweeps: int) -> None:
    with pytest.raises(SizeError):
        Size(nodes=nodes, trials=trials, sweeps=sweeps)
