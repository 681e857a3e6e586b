"""Hyperparameters as pods and Argo's record of their steps carry them: in the trial's environment, as JSON."""

import pytest

from controllers.worlds.argo.reading.definitions import TrialDefinition
from controllers.worlds.argo.reading.pods import project_pod
from controllers.worlds.argo.reading.workflows import record_of
from mlflow_hooks import contract
from tests.controllers.worlds.argo.objects import Json, pod, steps, template, workflow


def of_pod(params: str) -> TrialDefinition:
    made = pod()
    made["spec"]["containers"][1]["env"].append({"name": contract.ENV_PARAMS, "value": params})
    found = project_pod(made)
    assert found is not None
    assert found.definition is not None
    return found.definition


def test_a_pod_tells_its_trials_parameters() -> None:
    assert of_pod('{"width": 64, "kind": "cnn"}').parameters == (("kind", "cnn"), ("width", 64.0))


@pytest.mark.parametrize("params", ["", "{", "[]", '{"a": [1]}', '{"a": NaN}', '{"a": "' + "x" * 60_000 + '"}'])
def test_parameters_that_cannot_be_cost_the_trial_nothing_else(params: str) -> None:
    assert of_pod(params).parameters == ()


def test_argos_record_of_a_step_tells_them_where_its_pod_is_gone() -> None:
    made: Json = template()
    made["container"]["env"].append({"name": contract.ENV_PARAMS, "value": "{{inputs.parameters.params}}"})
    nodes = steps("a", "Running", ("n1", None))
    for one in nodes.values():
        one["inputs"] = {"parameters": [{"name": "params", "value": '{"width": 64}'}]}
    record = record_of(workflow(nodes, templates=[made]))
    assert record is not None
    assert [step.definition.parameters for step in record.steps.values()] == [(("width", 64.0),)]
