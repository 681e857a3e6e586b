"""What is refused where a sweep is written."""

from typing import Any

import pytest
from hera.workflows import NFSVolume, Parameter, Resources, Workflow

from controllers.core import labels
from controllers.core.errors import SpeconError
from hera_specon import SpeCon, SweepError, every
from mlflow_hooks import contract
from tests.authoring.built_sweeps import built, sweep


@pytest.mark.parametrize("policy", ["spcon", "specon:alpha=-1", [SpeCon(), SpeCon()], []])
def test_a_policy_that_is_none_is_refused_where_the_sweep_is_written(policy: object) -> None:
    with pytest.raises(SpeconError, match=r"policy|alpha"):
        built(policy=policy)


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"name": "VAE"}, "'VAE'"),
        ({"name": "v" * 56}, "v" * 56),
        ({"name": None}, "None"),
        ({"command": None}, "command="),
        ({"trials": 0}, "trials="),
        ({"grace": 0}, "grace="),
        ({"retries": -1}, "-1"),
        ({"resources": Resources(memory_request="1Gi")}, "cpu_request"),
        ({"retry_strategy": {"limit": 3}}, "retries="),
        ({"env": {contract.ENV_TRIAL_ID: "x"}}, contract.ENV_TRIAL_ID),
        ({"labels": {labels.LABEL_SWEEP: "x"}}, labels.LABEL_SWEEP),
        ({"annotations": {labels.ANNOTATION_POLICY: "x"}, "policy": "specon"}, labels.ANNOTATION_POLICY),
        ({"pod_spec_patch": "terminationGracePeriodSeconds: 5"}, "terminationGracePeriodSeconds"),
        ({"pod_spec_patch": "just text"}, "just text"),
        ({"pod_spec_patch": "{"}, "no YAML"),
        ({"parallelism": 2, "arrivals": every(5)}, "parallelism"),
        ({"inputs": [Parameter(name="delay")], "arrivals": every(5)}, "'delay'"),
    ],
)
def test_a_wrong_setting_is_refused_where_the_sweep_is_written(settings: dict[str, Any], shown: str) -> None:
    with Workflow(generate_name="vae-", entrypoint="vae"), pytest.raises(SweepError) as caught:
        sweep(**settings)
    assert shown in str(caught.value)


def test_a_sweeps_own_gates_and_grace_are_not_patched_over() -> None:
    for patch in ("terminationGracePeriodSeconds: 5", "schedulingGates: []"):
        with pytest.raises(SweepError, match=patch.partition(":")[0]):
            built(pod_spec_patch=patch)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"state_claim": "a", "state_volume": NFSVolume(server="s", path="/p")}, "one of them"),
        ({"state_volume": {"name": "x"}}, "hera.workflows"),
        ({"state_volume": NFSVolume(server="s", path="/p", mount_path="/else")}, "/else"),
    ],
)
def test_a_state_volume_that_is_none_is_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SweepError, match=complaint):
        built(**settings)
