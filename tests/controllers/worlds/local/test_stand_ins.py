"""What stands in on this machine for volumes, secrets and GPUs of a cluster's file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from controllers.core.errors import SpeconError
from controllers.worlds.local.stand_ins import stood_in
from controllers.worlds.local.workflow import PodStep, UnsupportedWorkflowError
from controllers.worlds.local.workflow.steps import Mount
from tests.controllers.worlds.local.workflow.workflow_manifests import Manifest, program

DATA = [{"name": "data", "mountPath": "/no/data"}]


def container(name: str = "main", **fields: object) -> Manifest:
    return {"name": name, "container": {"command": ["run"], **fields}}


def step_of(main: Manifest, **spec: Any) -> PodStep:  # noqa: ANN401 - any field of a manifest
    (step,) = program(main, **spec).expand({}, ()).pods
    return step


def mount_of(volume: Mapping[str, Any], **mount: str) -> Mount:
    (found,) = step_of(container(volumeMounts=[{**DATA[0], **mount}]), volumes=[{"name": "data", **volume}]).mounts
    return found


def test_a_claim_is_a_folder_that_all_trials_share_and_an_empty_dir_one_for_each() -> None:
    assert mount_of({"persistentVolumeClaim": {"claimName": "x"}}) == Mount("/no/data", "data")
    assert mount_of({"emptyDir": {}}, subPath="a/b") == Mount("/no/data", "data", "a/b", own=True)


def test_a_folder_of_a_node_is_that_of_this_machine_where_there_is_one(tmp_path: Path) -> None:
    assert mount_of({"hostPath": {"path": str(tmp_path)}}) == Mount("/no/data", "data", folder=str(tmp_path))
    with pytest.raises(UnsupportedWorkflowError, match="is not there on this machine"):
        mount_of({"hostPath": {"path": str(tmp_path / "gone")}})


def test_a_path_that_this_machine_has_is_used_as_it_is(tmp_path: Path) -> None:
    mounts = [{"name": "data", "mountPath": str(tmp_path)}]
    assert step_of(container(volumeMounts=mounts), volumes=[{"name": "data", "emptyDir": {}}]).mounts == ()


@pytest.mark.parametrize("kind", ["configMap", "secret", "projected", "nfs", "csi"])
def test_a_volume_whose_content_is_on_a_cluster_is_refused(kind: str) -> None:
    with pytest.raises(UnsupportedWorkflowError, match="what it holds is on a cluster"):
        mount_of({kind: {}})


@pytest.mark.parametrize("inside", ["../up", "/etc"])
def test_no_sub_path_leads_out_of_a_volume(inside: str) -> None:
    with pytest.raises(UnsupportedWorkflowError, match="only a plain subPath"):
        mount_of({"emptyDir": {}}, subPath=inside)


def test_paths_of_volumes_in_commands_and_variables_become_folders_that_are_made(tmp_path: Path) -> None:
    mounts = (Mount("/mnt/data", "data"), Mount("/mnt/own", "own", own=True))
    args = ("--in=/mnt/data/a.csv", "/mnt/data", "/mnt/database", "x/mnt/data", "a:/mnt/own:/mnt/data/b")
    step = PodStep("s", "t", ("run",), args, env={"DATA": "/mnt/data", "K": "v"}, mounts=mounts)
    found = stood_in(step, tmp_path, "t000", None)
    shared, own = tmp_path / "volumes" / "data", tmp_path / "volumes" / "own" / "t000"
    assert found.args == (
        f"--in={shared}/a.csv", str(shared), "/mnt/database", "x/mnt/data", f"a:{own}:{shared}/b",
    )  # fmt: skip
    assert (found.env["DATA"], found.env["K"]) == (str(shared), "v")
    assert shared.is_dir()
    assert own.is_dir()


def test_a_variable_may_name_the_trials_folder_and_variables_before_it(tmp_path: Path) -> None:
    given = {"TORCH_HOME": "$(SPECON_TRIAL_FOLDER)/torch", "HUB": "$(TORCH_HOME)/hub", "LATE": "$(LAST) $$(HUB)"}
    env = stood_in(
        PodStep("s", "t", (), env={**given, "LAST": "x", "SPECON_TRIAL_FOLDER": "/scratch"}), tmp_path, "t000", None
    ).env
    own = env["SPECON_TRIAL_FOLDER"]
    assert own == str(tmp_path / "files" / "t000")
    assert (env["TORCH_HOME"], env["HUB"], env["LATE"]) == (f"{own}/torch", f"{own}/torch/hub", "$(LAST) $(HUB)")


def test_a_trial_has_a_folder_of_its_own_that_all_its_attempts_share(tmp_path: Path) -> None:
    folders = {stood_in(PodStep("s", "t", ()), tmp_path, "t000", None).env["SPECON_TRIAL_FOLDER"] for _ in range(2)}
    assert folders == {str(tmp_path / "files" / "t000")}
    assert (tmp_path / "files" / "t000").is_dir()


def test_a_secret_may_be_in_a_file_which_each_attempt_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("API_TOKEN", raising=False)
    monkeypatch.setenv("API_TOKEN_FILE", str(tmp_path / "token"))
    secret = {"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "tokens", "key": "api"}}}
    step = step_of(container(env=[secret]))
    with pytest.raises(SpeconError, match=r"API_TOKEN_FILE names .* which cannot be read"):
        stood_in(step, tmp_path, "t000", None)
    (tmp_path / "token").write_text("s3cret\n")
    assert stood_in(step, tmp_path, "t000", None).env["API_TOKEN"] == "s3cret"  # noqa: S105
    assert "s3cret" not in str(step)


def test_memory_limits_and_gpus_are_read() -> None:
    step = step_of(container(resources={"limits": {"memory": "1Gi", "nvidia.com/gpu": "2"}}))
    assert (step.memory_limit, step.gpus, step.gpu_part) == (2.0**30, 2, 1.0)
