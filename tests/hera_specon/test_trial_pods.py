"""The pods of a sweep's trials: marks, environment, requests, rights and volumes."""

import json

import pytest
from hera.workflows import ExistingVolume, NFSVolume, Resources, Volume, Workflow
from hera.workflows.models import PodSecurityContext, SecurityContext, Toleration

from controllers.core import labels
from controllers.core.expressions import SWEEP_UID
from hera_specon import FlowCon, SpeCon, every, maximize
from hera_specon.errors import SweepError
from hera_specon.submission.edits import Overrides, edit_manifest
from mlflow_hooks import contract
from tests.hera_specon.built_sweeps import built, environment, fields_of_the_pod, pod_patch, sweep

RUN_CONTEXT = {
    contract.TAG_TRIAL_ID: "$(SPECON_TRIAL_ID)",
    contract.TAG_SWEEP_ID: "$(SPECON_SWEEP_ID)",
    contract.TAG_ATTEMPT: "$(SPECON_ATTEMPT)",
    "mlflow.runName": "{{inputs.parameters.trial}}",
}


def test_a_trial_is_marked_for_whoever_watches_it() -> None:
    metadata = built(objective=maximize("val/accuracy"))["vae-trial"]["metadata"]
    assert metadata["labels"] == {labels.LABEL_SWEEP: "vae", labels.LABEL_TRIAL: "{{inputs.parameters.trial}}"}
    assert metadata["annotations"] == {
        labels.ANNOTATION_OBJECTIVE: "val/accuracy",
        labels.ANNOTATION_DIRECTION: "maximize",
        labels.ANNOTATION_RETRIES: "3",
        labels.ANNOTATION_DEFAULT_CPU: "true",
        labels.ANNOTATION_SAFE_TO_EVICT: "true",
    }


def test_an_author_may_keep_autoscalers_off_their_trials() -> None:
    own = {labels.ANNOTATION_SAFE_TO_EVICT: "false", "karpenter.sh/do-not-disrupt": "true"}
    annotations = built(annotations=own)["vae-trial"]["metadata"]["annotations"]
    assert own.items() <= annotations.items()


@pytest.mark.parametrize(
    ("policy", "written"),
    [
        (SpeCon(alpha=0.02), "specon:alpha=0.02"),
        ([SpeCon(alpha=0.02), FlowCon()], "specon:alpha=0.02+flowcon"),
        ("flowcon + specon: alpha=0.02", "flowcon+specon:alpha=0.02"),
    ],
)
def test_the_policy_travels_with_every_trial(policy: object, written: str) -> None:
    annotations = built(policy=policy)["vae-trial"]["metadata"]["annotations"]
    assert annotations[labels.ANNOTATION_POLICY] == written


def test_a_trial_finds_its_contract_in_the_environment() -> None:
    assert environment(built()["vae-trial"]) == {
        contract.ENV_SWEEP_ID: f"{SWEEP_UID}.vae",
        contract.ENV_TRIAL_ID: f"{SWEEP_UID}.vae.{{{{inputs.parameters.trial}}}}",
        contract.ENV_PARAMS: '{"lr": {{inputs.parameters.lr}}, "activation": "{{inputs.parameters.activation}}", '
        '"hidden": {{inputs.parameters.hidden}}}',
        contract.ENV_OBJECTIVE: "loss",
        contract.ENV_DIRECTION: "minimize",
        contract.ENV_STATE_ROOT: "/mnt/specon",
        contract.ENV_FLUSH: "300",
        contract.ENV_GRACE: "60",
        contract.ENV_LEAVE_FILE: "/var/run/hera-specon/leave",
        contract.ENV_GRACE: "60",
        "MLFLOW_EXPERIMENT_NAME": "vae",
        "MLFLOW_TRACKING_URI": "http://mlflow:5000",
        contract.ENV_TRACKING: "$(MLFLOW_TRACKING_URI)",
        contract.ENV_RUN_CONTEXT: json.dumps(RUN_CONTEXT),
    }


def test_the_runs_that_a_program_makes_have_the_tags_of_the_sweeps_author_too() -> None:
    found = built(env={"MLFLOW_RUN_CONTEXT": '{"team": "x"}'})["vae-trial"]
    assert json.loads(environment(found)[contract.ENV_RUN_CONTEXT]) == {"team": "x", **RUN_CONTEXT}
    variables = [variable["name"] for variable in found["container"]["env"]]
    # Kubernetes fills in only what stands before.
    assert variables[-1] == contract.ENV_RUN_CONTEXT
    assert variables.count(contract.ENV_RUN_CONTEXT) == 1


def test_the_address_of_mlflow_that_submit_gives_is_the_hooks_too() -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as made:
        sweep()
    sent = edit_manifest(made.to_dict(), Overrides(tracking_uri="http://mlflow.lab:80"))
    (trial,) = [template for template in sent["spec"]["templates"] if template["name"] == "vae-trial"]
    seen: dict[str, str] = {}
    for variable in trial["container"]["env"]:
        value = variable.get("value", "of the pod")
        for name, known in seen.items():  # as Kubernetes does: what stands before
            value = value.replace(f"$({name})", known)
        assert "$(" not in value
        seen[variable["name"]] = value
    assert seen["MLFLOW_TRACKING_URI"] == seen[contract.ENV_TRACKING] == "http://mlflow.lab:80"


@pytest.mark.parametrize("text", ["team=x", "[1]", "7"])
def test_tags_of_runs_that_are_no_json_object_are_named(text: str) -> None:
    with pytest.raises(SweepError, match=r"MLFLOW_RUN_CONTEXT is .* no JSON object of tags"):
        built(env={"MLFLOW_RUN_CONTEXT": text})


def test_the_environment_follows_the_settings() -> None:
    found = environment(
        built(state_root="/state", experiment="thesis", mlflow_tracking_uri="http://mlflow.lab:80", env={"OMP": "1"})[
            "vae-trial"
        ]
    )
    assert found[contract.ENV_STATE_ROOT] == "/state"
    assert found["MLFLOW_EXPERIMENT_NAME"] == "thesis"
    assert found["MLFLOW_TRACKING_URI"] == "http://mlflow.lab:80"
    assert found["OMP"] == "1"


def test_a_trial_requests_a_core_and_has_no_limit() -> None:
    assert built()["vae-trial"]["container"]["resources"] == {"requests": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("resources", "guessed"),
    [
        (None, True),
        (Resources(memory_request="1Gi", memory_limit="2Gi"), True),
        (Resources(cpu_limit=2), False),
        (Resources(cpu_request=1), False),
    ],
)
def test_a_trial_says_whether_its_author_named_the_cores(resources: Resources | None, *, guessed: bool) -> None:
    notes = built(resources=resources)["vae-trial"]["metadata"]["annotations"]
    assert (notes.get(labels.ANNOTATION_DEFAULT_CPU) == "true") is guessed


def test_the_grace_period_joins_the_authors_own_patch() -> None:
    patch = pod_patch(built(grace=90, pod_spec_patch="priorityClassName: low")["vae-trial"])
    assert patch["terminationGracePeriodSeconds"] == 90
    assert patch["priorityClassName"] == "low"


def test_every_container_of_a_trial_requests_cpu() -> None:
    patch = pod_patch(built(resources=Resources(cpu_request="250m"))["vae-trial"])
    helper = {"name": "wait", "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}}}
    assert patch["containers"] == [helper, {"name": "main"}]
    assert patch["initContainers"] == [{**helper, "name": "init"}], "with more, no resize could take the pod below that"


def test_a_gpu_arrives_in_the_pods_as_hera_writes_it_and_lets_them_onto_nodes_kept_for_it() -> None:
    for resources, kind, count in (
        (Resources(cpu_request=2, gpus=1), "nvidia.com/gpu", "1"),
        (Resources(cpu_request=2, gpus=0.5), "nvidia.com/gpu", "0.5"),  # type: ignore[arg-type]  # Hera takes it
        (Resources(cpu_request=2, gpus="2", gpu_flag="amd.com/gpu"), "amd.com/gpu", "2"),
        (
            Resources(cpu_request=2, custom_resources={"requests": {"a.b/c": "3"}, "limits": {"a.b/c": "3"}}),
            "a.b/c",
            "3",
        ),
        (Resources(cpu_request=2, custom_resources={"limits": {"a.b/c": "3"}}), "a.b/c", "3"),
    ):
        trial = built(resources=resources)["vae-trial"]
        assert trial["container"]["resources"]["limits"] == {kind: count}
        assert trial["container"]["resources"]["requests"]["cpu"] == "2"
        assert trial["tolerations"] == [{"key": kind, "operator": "Exists", "effect": "NoSchedule"}]


def test_an_authors_own_toleration_of_a_devices_taint_stays() -> None:
    own = Toleration(key="nvidia.com/gpu", operator="Equal", value="a100")
    trial = built(resources=Resources(cpu_request=1, gpus=1), tolerations=[own])["vae-trial"]
    assert trial["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "a100"}]


def test_an_authors_patch_of_argos_containers_stays() -> None:
    own = {"name": "wait", "resources": {"requests": {"cpu": "50m"}}}
    other = {"name": "main", "stdin": True}
    for written, patched in (([own], [own]), ([other], [other, pod_patch(built()["vae-trial"])["containers"][0]])):
        patch = pod_patch(built(pod_spec_patch=json.dumps({"containers": written}))["vae-trial"])
        assert patch["containers"] == [*patched, {"name": "main"}]


def test_an_attempt_is_told_apart_by_its_pods_uid_for_names_come_again_after_a_retry() -> None:
    for templates in (built(), built(arrivals=every(50))):
        found = fields_of_the_pod(templates["vae-trial"])
        assert found == {
            contract.ENV_ATTEMPT: "metadata.uid",
            contract.ENV_NODE: "spec.nodeName",
            contract.ENV_RUN: f"metadata.annotations['{labels.ANNOTATION_RUN}']",
        }


def test_a_trial_runs_without_rights_unless_its_author_says_otherwise() -> None:
    trial = built()["vae-trial"]
    assert trial["securityContext"]["runAsNonRoot"]
    assert trial["securityContext"]["runAsUser"] > 0
    assert trial["container"]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    given = built(
        pod_security_context=PodSecurityContext(run_as_user=7), security_context=SecurityContext(privileged=True)
    )["vae-trial"]
    assert given["securityContext"] == {"runAsUser": 7}
    assert given["container"]["securityContext"] == {"privileged": True}


def test_the_workflows_own_security_context_is_not_overridden() -> None:
    with Workflow(
        generate_name="vae-", entrypoint="vae", security_context=PodSecurityContext(run_as_user=7)
    ) as workflow:
        sweep()
    spec = workflow.to_dict()["spec"]
    assert spec["securityContext"] == {"runAsUser": 7}
    assert "securityContext" not in spec["templates"][1]


def test_the_claim_of_the_state_is_mounted_where_checkpoints_go() -> None:
    trial = built(state_claim="lab", state_root="/state")["vae-trial"]
    (volume, _), (mount, _) = trial["volumes"], trial["container"]["volumeMounts"]
    assert volume == {"name": mount["name"], "persistentVolumeClaim": {"claimName": "lab"}}
    assert mount["mountPath"] == "/state"


def test_a_store_of_objects_holds_the_state_and_the_pod_has_a_folder_of_its_own() -> None:
    trial = built(state="s3://bucket/sweeps", grace=45)["vae-trial"]
    (volume, _), (mount, _) = trial["volumes"], trial["container"]["volumeMounts"]
    assert volume == {"name": mount["name"], "emptyDir": {}}
    assert mount["mountPath"] == "/mnt/specon"
    told = {variable["name"]: variable.get("value") for variable in trial["container"]["env"]}
    assert (told["SPECON_STATE_STORE"], told["SPECON_GRACE_S"]) == ("s3://bucket/sweeps", "45")
    assert "SPECON_STATE_STORE" not in str(built(state_claim="lab"))


def test_any_volume_of_heras_can_hold_the_state_beside_the_authors_own() -> None:
    own = ExistingVolume(name="data", claim_name="data", mount_path="/data")
    nfs = NFSVolume(name="nfs", server="files.lab", path="/state")
    trial = built(volumes=own, state_volume=nfs)["vae-trial"]
    assert [volume["name"] for volume in trial["volumes"]] == ["data", "nfs", "specon-leave"]
    mounted = {mount["mountPath"] for mount in trial["container"]["volumeMounts"]}
    assert mounted == {"/data", "/mnt/specon", "/var/run/hera-specon"}


def test_a_volume_claimed_for_each_workflow_can_hold_the_state() -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as workflow:
        sweep(state_volume=Volume(name="state", size="1Gi", access_modes=["ReadWriteMany"]))
    spec = workflow.to_dict()["spec"]
    assert [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]] == ["state"]
    assert spec["templates"][1]["container"]["volumeMounts"][0] == {"name": "state", "mountPath": "/mnt/specon"}


@pytest.mark.parametrize("workers", [1, (1, 4)])
def test_a_trial_sees_by_one_annotation_and_no_other_that_it_is_asked_to_leave(workers: object) -> None:
    templates = built(workers=workers)
    trial = templates.get("vae-worker", templates["vae-trial"])
    (volume,), (mount,) = trial["volumes"], trial["container"]["volumeMounts"]
    field = {"fieldPath": "metadata.annotations['hera-specon.io/leave']"}
    assert volume == {"name": mount["name"], "downwardAPI": {"items": [{"path": "leave", "fieldRef": field}]}}
    # A subPath would never be renewed.
    assert mount == {"name": volume["name"], "mountPath": "/var/run/hera-specon", "readOnly": True}
    assert environment(trial)[contract.ENV_LEAVE_FILE] == "/var/run/hera-specon/leave"


@pytest.mark.parametrize(
    ("name", "path"), [("specon-leave", "/elsewhere"), ("mine", "/var/run/hera-specon")], ids=["name", "place"]
)
def test_a_volume_of_the_authors_in_the_place_of_that_one_is_named(name: str, path: str) -> None:
    with pytest.raises(SweepError, match=f"{name if name == 'specon-leave' else path}"):
        built(volumes=ExistingVolume(name=name, claim_name="data", mount_path=path))


def test_what_hera_offers_for_a_container_goes_to_the_trials() -> None:
    trial = built(node_selector={"disk": "ssd"}, working_dir="/src", labels={"team": "vision"})["vae-trial"]
    assert trial["nodeSelector"] == {"disk": "ssd"}
    assert trial["container"]["workingDir"] == "/src"
    assert trial["metadata"]["labels"]["team"] == "vision"


@pytest.mark.parametrize(
    ("resources", "cpu"),
    [
        (None, "1"),
        (Resources(memory_request="1Gi"), "1"),
        (Resources(memory_limit="1Gi"), "1"),
        (Resources(memory_request="1Gi", memory_limit="2Gi"), "1"),
        (Resources(ephemeral_request="1Gi"), "1"),
        (Resources(ephemeral_limit="1Gi"), "1"),
        (Resources(gpus=1), "1"),
        (Resources(), "1"),
        (Resources(cpu_limit=2), "2"),
        (Resources(cpu_limit="500m", memory_request="1Gi"), "500m"),
        (Resources(cpu_request=0.5), "0.5"),
    ],
)
def test_each_field_of_resources_may_stand_alone(resources: Resources | None, cpu: str) -> None:
    found = built(resources=resources)["vae-trial"]["container"]["resources"]
    assert str(found["requests"]["cpu"]) == cpu
    given = {} if resources is None else resources.build().model_dump(mode="json", exclude_none=True)
    for side, amounts in given.items():
        assert amounts.items() <= {**found[side], **({"cpu": amounts["cpu"]} if "cpu" in amounts else {})}.items()
