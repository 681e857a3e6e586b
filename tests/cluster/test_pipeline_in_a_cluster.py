"""A pipeline whose later steps use what its sweep came to, on a real cluster, with no controller of ours at all."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mlflow.tracking import MlflowClient

from controllers.worlds.argo.calls.untrusted import at
from tests.cluster.sweeps.bench import Bench, Workflow
from workflows import pipeline

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
WITHIN_S = 420
TRIALS = 6


def submitted(bench: Bench, manifest: dict[str, Any]) -> Workflow:
    """Create a workflow by Argo's own API, as ``argo submit`` does."""
    manifest["metadata"] |= {"namespace": bench.namespace}
    created = json.loads(bench.kubectl("create", "--filename=-", "--output=json", text_input=json.dumps(manifest)))
    return Workflow(created["metadata"]["name"], created["metadata"]["uid"], 0, (0.0,) * TRIALS)


def with_mlflow(bench: Bench, spec: dict[str, Any]) -> dict[str, Any]:
    for parameter in spec["arguments"]["parameters"]:
        if parameter["name"] == "mlflow":
            parameter["value"] = bench.tracking.uri_for_pods
    return spec


def outputs(bench: Bench, workflow: Workflow) -> dict[str, str]:
    """Return the outputs of the sweep's own node."""
    nodes: dict[str, Any] = bench.workflow(workflow)["status"]["nodes"]
    (node,) = (node for node in nodes.values() if node.get("templateName") == "search")
    return {parameter["name"]: parameter["value"] for parameter in node["outputs"]["parameters"]}


def assert_trained(bench: Bench, workflow: Workflow) -> str:
    """Assert that the best trial in MLflow was trained again and registered; return the registered version."""
    bench.wait_for_end(workflow, WITHIN_S)
    assert bench.phase(workflow) == "Succeeded", bench.story()
    client, told = MlflowClient(bench.tracking.uri), outputs(bench, workflow)
    experiment = client.get_experiment_by_name("search")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], f"tags.`specon.sweep_id` = '{workflow.uid}.search'")
    best = min((run for run in runs if "loss" in run.data.metrics), key=lambda run: run.data.metrics["loss"])
    assert len({run.data.tags["specon.trial_id"] for run in runs if "specon.trial_id" in run.data.tags}) == TRIALS
    assert (told["run-id"], float(told["value"])) == (best.info.run_id, best.data.metrics["loss"])
    assert json.loads(told["params"]) == {name: float(value) for name, value in best.data.params.items()}
    assert told["param-lr"] == best.data.params["lr"]
    version = client.get_model_version_by_alias("digits", "candidate")
    retrained = client.get_run(str(version.run_id))
    assert {name: float(value) for name, value in retrained.data.params.items()} == json.loads(told["params"])
    return str(version.version)


def test_a_pipeline_trains_the_best_of_its_sweep_again_and_registers_it(bench: Bench) -> None:
    workflow = bench.submit(_WithRates, mlflow=bench.tracking.uri_for_pods)  # type: ignore[arg-type]  # as a module
    assert_trained(bench, workflow)


class _WithRates:
    """The example as ``Bench.submit`` takes a sweep."""

    __file__ = pipeline.__file__
    RATES = (0.0,) * TRIALS


def test_two_runs_of_a_cron_workflow_are_two_sweeps(bench: Bench) -> None:
    cron = pipeline.nightly.to_dict()
    cron["metadata"]["namespace"] = bench.namespace
    cron["spec"]["suspend"] = True
    with_mlflow(bench, cron["spec"]["workflowSpec"])
    bench.kubectl("create", "--filename=-", text_input=json.dumps(cron))
    stored = json.loads(bench.kubectl("get", "cronworkflow", "pipeline", "--output=json"))
    made = [
        submitted(
            bench,
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Workflow",
                "metadata": {
                    "generateName": "pipeline-",
                    "labels": {"workflows.argoproj.io/cron-workflow": "pipeline"},
                },
                "spec": stored["spec"]["workflowSpec"],
            },
        )
        for _ in range(2)
    ]
    versions = [assert_trained_alone(bench, workflow) for workflow in made]
    assert versions[0] != versions[1]


def assert_trained_alone(bench: Bench, workflow: Workflow) -> str:
    """Assert that a run of the pipeline read its own sweep; return the id of its best run."""
    bench.wait_for_end(workflow, WITHIN_S)
    assert bench.phase(workflow) == "Succeeded", bench.story()
    told = outputs(bench, workflow)
    run = MlflowClient(bench.tracking.uri).get_run(told["run-id"])
    assert run.data.tags["specon.sweep_id"] == f"{workflow.uid}.search"
    return told["run-id"]


@pytest.fixture
def reference(bench: Bench, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The pipeline as a template of the namespace, or of the whole cluster, for workflows to refer to."""
    of_cluster = request.param == "ClusterWorkflowTemplate"
    template, name = pipeline.w.to_dict(), f"pipeline-of-{bench.namespace}"
    template |= {"kind": request.param, "metadata": {"name": name}}
    with_mlflow(bench, template["spec"])
    bench.kubectl("create", "--filename=-", text_input=json.dumps(template))
    yield {"workflowTemplateRef": {"name": name, **({"clusterScope": True} if of_cluster else {})}}
    bench.kubectl("delete", request.param, name, "--wait=false")


@pytest.mark.parametrize("reference", ["WorkflowTemplate", "ClusterWorkflowTemplate"], indirect=True)
def test_two_runs_of_a_template_are_two_sweeps_and_a_controller_steers_both(
    bench: Bench, reference: dict[str, Any]
) -> None:
    # The controller may read templates of neither kind: it goes by what Argo keeps of them in the workflows.
    bench.controller().start().wait_ready()
    made = [
        submitted(
            bench,
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Workflow",
                "metadata": {"generateName": "pipeline-"},
                "spec": reference,
            },
        )
        for _ in range(2)
    ]
    assert len({assert_trained_alone(bench, workflow) for workflow in made}) == 2
    client = MlflowClient(bench.tracking.uri)
    experiment = client.get_experiment_by_name("search")
    assert experiment is not None
    for workflow in made:
        parents = client.search_runs([experiment.experiment_id], f"tags.`specon.workflow` = '{workflow.uid}'")
        assert parents, at(bench.workflow(workflow), "metadata", "annotations")


def test_a_failed_trial_fails_the_sweep_unless_it_is_called_to_go_on(bench: Bench) -> None:
    manifest = pipeline.w.to_dict()
    templates = {template["name"]: template for template in manifest["spec"]["templates"]}
    # The first trial dies before it trains, each time.
    command = templates["search-trial"]["container"]["command"]
    dies = 'test "$SPECON_TRIAL_ID" = "${SPECON_TRIAL_ID%.t000}" || exit 3; exec "$0" "$@"'
    templates["search-trial"]["container"]["command"] = ["sh", "-c", dies, *command]
    templates["search-trial"]["retryStrategy"] = {"limit": 0}
    with_mlflow(bench, manifest["spec"])
    strict = submitted(bench, json.loads(json.dumps(manifest)))
    (step,) = templates["search"]["steps"][0]
    step["continueOn"] = {"failed": True, "error": True}
    for entry in templates["search-best"]["script"]["env"]:
        if entry["name"] == "SPECON_ALL_SUCCEEDED":
            entry["value"] = "false"
    tolerant = submitted(bench, manifest)
    for workflow in (strict, tolerant):
        bench.wait_for_end(workflow, WITHIN_S)
    assert [bench.phase(workflow) for workflow in (strict, tolerant)] == ["Failed", "Succeeded"], bench.story()
    trials = json.loads(outputs(bench, tolerant)["trials"])
    assert len(trials) == TRIALS - 1
    assert outputs(bench, tolerant)["trial"] != "t000"
