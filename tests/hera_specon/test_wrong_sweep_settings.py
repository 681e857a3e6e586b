"""What is refused where a sweep is written."""

from typing import Any

import pytest
from hera.workflows import NFSVolume, Parameter, Resources, Workflow

from controllers.core import labels
from controllers.policies.kit.settings import PolicyError
from hera_specon import SpeCon, SweepError, every
from mlflow_hooks import contract
from tests.hera_specon.built_sweeps import built, sweep

MANY = [f"example.com/d{number}" for number in range(65)]


def resources_with(custom: dict[str, Any]) -> Resources:
    return Resources(cpu_request=1, custom_resources=custom)


@pytest.mark.parametrize("policy", ["spcon", "specon:alpha=-1", [SpeCon(), SpeCon()], []])
def test_a_policy_that_is_none_is_refused_where_the_sweep_is_written(policy: object) -> None:
    with pytest.raises(PolicyError, match=r"policy|alpha"):
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
        ({"keep": "bset"}, "one of 'all', 'newest', 'best', 'none', not 'bset'"),
        ({"resources": Resources(cpu_request=1, gpus=-1)}, "'-1' of nvidia.com/gpu"),
        ({"resources": Resources(cpu_request=1, gpus="1.5")}, "'1.5' of nvidia.com/gpu"),
        ({"resources": Resources(cpu_request=1, gpus="0.5", gpu_flag="amd.com/gpu")}, "'0.5' of amd.com/gpu, which"),
        ({"resources": Resources(cpu_request=1, gpus="0.0")}, "'0.0' of nvidia.com/gpu, which is no whole number"),
        ({"resources": Resources(cpu_request=1, gpus=2000)}, "'2000' of nvidia.com/gpu, which is no whole number"),
        ({"resources": Resources(cpu_request=1, gpus="9" * 500)}, f"asks for '{'9' * 59} of nvidia.com/gpu"),
        ({"resources": Resources(cpu_request=1, gpus=1, gpu_flag="gpu")}, "'gpu', but the name of a device"),
        ({"resources": resources_with({"nvidia.com/gpu": 1})}, "{'nvidia.com/gpu': 1}"),
        ({"resources": resources_with({"limits": {"a.b/c": 1}})}, "{'limits': {'a.b/c': 1}}"),
        ({"resources": resources_with({"requests": {"a.b/c": "1"}})}, "'1' of a.b/c with a limit of None"),
        ({"resources": resources_with({"requests": {"a.b/c": "1"}, "limits": {"a.b/c": "2"}})}, "a limit of '2'"),
        ({"resources": resources_with({"limits": dict.fromkeys(MANY, "1")})}, "65 kinds of devices, more than 64"),
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
        ({"state": "s3://b/p", "state_claim": "a"}, "state='s3://b/p' and state_claim='a' are given"),
        ({"state": "ftp://b/p"}, "'ftp://b/p' is no store for checkpoints; one is 'mlflow', or begins with s3://"),
        ({"state": "s3://"}, "'s3://' names no bucket; write it as s3://bucket/prefix"),
        ({"state": "file://server"}, "names no folder; write it as file:///mnt/shared/prefix"),
        ({"state": "s3://key@bucket/p"}, "names no bucket"),
        ({"state": 7}, "state=7 is no store"),
        ({"state_volume": NFSVolume(server="s", path="/p", mount_path="/else")}, "/else"),
    ],
)
def test_a_state_volume_that_is_none_is_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SweepError, match=complaint):
        built(**settings)
