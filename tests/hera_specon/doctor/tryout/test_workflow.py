import json
from typing import Any

from hera.workflows import Parameter, Workflow

from controllers.core.labels import DOMAIN, GATE_PLACEMENT
from hera_specon.doctor.tryout.workflow import image_workflow, program_text, sweep_workflow
from hera_specon.pod_spec import USER
from tests.hera_specon.built_sweeps import sweep

HOW: dict[str, Any] = {"name": "specon-doctor-1", "cpu": 0.05, "timeout_s": 120}


def made(*, gated: bool = True, **settings: object) -> dict[str, Any]:
    with Workflow(generate_name="vae-", entrypoint="vae", arguments=Parameter(name="tag", value="2")) as w:
        sweep(**settings)
    return sweep_workflow(w.to_dict(), gated=gated, **HOW)


def template(workflow: dict[str, Any]) -> dict[str, Any]:
    (found,) = workflow["spec"]["templates"]
    assert isinstance(found, dict)
    return found


def variables(workflow: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value") for entry in template(workflow)["container"]["env"]}


def test_the_pod_has_what_a_trials_has() -> None:
    workflow = made(
        state_claim="specon-state",
        image="trainer:{{workflow.parameters.tag}}",
        env={"AWS_ENDPOINT_URL": "http://s3"},
        node_selector={"disk": "ssd"},
        labels={"team": "vision"},
        service_account_name="trains",
    )
    one = template(workflow)
    assert one["container"]["image"] == "trainer:{{workflow.parameters.tag}}"
    assert one["container"]["volumeMounts"][0]["mountPath"] == "/mnt/specon"
    assert one["nodeSelector"] == {"disk": "ssd"}
    assert one["serviceAccountName"] == "trains"
    assert one["metadata"]["labels"] == {"team": "vision"}
    assert one["securityContext"]["runAsUser"] == USER
    assert workflow["spec"]["arguments"]["parameters"][0]["name"] == "tag"
    told = variables(workflow)
    assert told["AWS_ENDPOINT_URL"] == "http://s3"
    assert told["MLFLOW_TRACKING_URI"] == "http://mlflow:5000"
    assert told["SPECON_STATE_ROOT"] == "/mnt/specon"


def test_the_pod_is_nobodys_trial() -> None:
    workflow = made(workers=2)
    text = json.dumps(workflow)
    assert "inputs.parameters" not in text
    assert not {name for name in variables(workflow) if name.startswith("SPECON_")} - {"SPECON_STATE_ROOT"}
    marks = template(workflow)["metadata"]
    assert not [name for kind in marks.values() for name in kind if name.startswith(DOMAIN)]


def test_a_controller_of_argo_that_wants_a_label_finds_it() -> None:
    with Workflow(
        generate_name="vae-", entrypoint="vae", labels={"workflows.argoproj.io/controller-instanceid": "a"}
    ) as w:
        sweep()
    made_labels = sweep_workflow(w.to_dict(), gated=True, **HOW)["metadata"]["labels"]
    assert made_labels["workflows.argoproj.io/controller-instanceid"] == "a"


def test_a_gate_is_there_only_where_it_can_be_opened() -> None:
    with_gate, without = (json.loads(template(made(gated=gated))["podSpecPatch"]) for gated in (True, False))
    assert with_gate["schedulingGates"] == [{"name": GATE_PLACEMENT}]
    assert "schedulingGates" not in without


def test_argo_removes_what_a_doctor_that_was_killed_has_left() -> None:
    spec = made()["spec"]
    assert spec["activeDeadlineSeconds"] == 180
    assert spec["ttlStrategy"]["secondsAfterCompletion"] == 60


def test_a_pod_without_a_sweep_runs_as_nobody_in_particular_and_with_no_rights() -> None:
    one = template(image_workflow("trainer:1", None, gated=False, **HOW))
    assert one["securityContext"]["runAsNonRoot"] is True
    assert one["container"]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert json.loads(one["container"]["args"][0])["mlflow"] is False


def test_the_program_holds_nothing_that_argo_or_kubernetes_would_fill_in() -> None:
    assert "{{" not in program_text()
    assert "$(" not in program_text()
