import json
from typing import Any

import pytest
from hera.workflows import (
    DAG,
    Artifact,
    Container,
    ExistingVolume,
    NFSVolume,
    Parameter,
    Resources,
    Steps,
    Volume,
    Workflow,
    WorkflowTemplate,
    script,
)
from hera.workflows.models import Arguments, PodSecurityContext, SecurityContext
from hera.workflows.models import Parameter as ModelParameter
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers import labels
from controllers.expressions import GATE_MOVED, SWEEP_UID
from hera_specon import (
    FlowCon,
    SpeCon,
    Sweep,
    SweepError,
    at_random,
    choice,
    every,
    integer,
    log_uniform,
    maximize,
    minimize,
)
from hera_specon.search import points
from hera_specon.space import value_text
from mlflow_hooks import contract

SPACE = {"lr": log_uniform(1e-4, 1e-2), "activation": choice("relu", "tanh"), "hidden": integer(32, 256)}


def sweep(**settings: object) -> Sweep:
    basics: dict[str, Any] = {
        "name": "vae",
        "image": "trainer:1",
        "command": ["python", "-m", "jobs.vae"],
        "space": SPACE,
        "trials": 3,
        "objective": minimize("loss"),
    }
    return Sweep(**basics | settings)


def built(**settings: object) -> dict[str, Any]:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(**settings)
    return {template["name"]: template for template in w.to_dict()["spec"]["templates"]}


def items(templates: dict[str, Any]) -> list[dict[str, Any]]:
    ((step,),) = templates["vae"]["steps"]
    found: list[dict[str, Any]] = step["withItems"]
    return found


def environment(template: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in template["container"]["env"] if "value" in variable}


def fields_of_the_pod(template: dict[str, Any]) -> dict[str, str]:
    variables = [variable for variable in template["container"]["env"] if "valueFrom" in variable]
    return {variable["name"]: variable["valueFrom"]["fieldRef"]["fieldPath"] for variable in variables}


def pod_patch(template: dict[str, Any], gates: str = "[]") -> dict[str, Any]:
    """The podSpecPatch with ``gates`` in the place of the expression of its gates."""
    patch: dict[str, Any] = json.loads(template["podSpecPatch"].replace(GATE_MOVED, gates))
    return patch


def as_argo_puts_it(value: object) -> str:
    """What ``{{item.x}}`` becomes: the item's JSON, a string's without its quotes (item.go of Argo 4.1)."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text[1:-1] if text.startswith('"') else text


def test_a_sweep_is_one_template_to_start_and_one_for_its_trials() -> None:
    assert list(built()) == ["vae", "vae-trial"]


def test_all_trials_are_items_of_one_step_so_they_run_side_by_side() -> None:
    ((step,),) = built()["vae"]["steps"]
    assert step["template"] == "vae-trial"
    assert [item["trial"] for item in step["withItems"]] == ["t000", "t001", "t002"]


def test_a_failed_trial_stops_no_other() -> None:
    template = built()["vae"]
    assert "failFast" not in template
    assert "parallelism" not in template


def test_trial_numbers_of_a_large_sweep_sort_as_they_count() -> None:
    names = [item["trial"] for item in items(built(trials=1001))]
    assert names == sorted(names)
    assert names[-1] == "t1000"


texts = st.text(st.characters(exclude_characters="\"'\\{}", exclude_categories=("C", "Z")), max_size=8)


@given(st.lists(texts | st.integers() | st.floats(-1e9, 1e9), min_size=1, max_size=4, unique=True))
@settings(max_examples=40)
def test_hyperparameters_reach_a_trial_unchanged_through_argos_substitution(options: list[Any]) -> None:
    space = {"x": choice(*options)}
    for item, point in zip(
        items(built(space=space, search="grid", trials=None)), points(space, "grid", None, 0), strict=True
    ):
        assert json.loads(as_argo_puts_it(item[labels.INPUT_PARAMS])) == point
        assert as_argo_puts_it(item["x"]) == value_text(point["x"])


def test_hyperparameters_are_arguments_after_the_authors_own() -> None:
    assert built(args=["--epochs=3"])["vae-trial"]["container"]["args"] == [
        "--epochs=3",
        "--lr={{inputs.parameters.lr}}",
        "--activation={{inputs.parameters.activation}}",
        "--hidden={{inputs.parameters.hidden}}",
    ]


def test_every_input_of_a_trial_gets_an_argument() -> None:
    for arrivals in (None, every(50)):
        templates = built(arrivals=arrivals)
        for template in templates.values():
            for step in (step for group in template.get("steps", ()) for step in group):
                called = templates[step["template"]]
                declared = [parameter["name"] for parameter in called["inputs"]["parameters"]]
                assert [parameter["name"] for parameter in step["arguments"]["parameters"]] == declared


def test_a_trial_is_marked_for_whoever_watches_it() -> None:
    metadata = built(objective=maximize("val/accuracy"))["vae-trial"]["metadata"]
    assert metadata["labels"] == {labels.LABEL_SWEEP: "vae", labels.LABEL_TRIAL: "{{inputs.parameters.trial}}"}
    assert metadata["annotations"] == {
        labels.ANNOTATION_OBJECTIVE: "val/accuracy",
        labels.ANNOTATION_DIRECTION: "maximize",
    }


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


@pytest.mark.parametrize("policy", ["spcon", "specon:alpha=-1", [SpeCon(), SpeCon()], []])
def test_a_policy_that_is_none_is_refused_where_the_sweep_is_written(policy: object) -> None:
    with pytest.raises(ValueError, match=r"policy|alpha"):
        built(policy=policy)


def test_a_trial_finds_its_contract_in_the_environment() -> None:
    assert environment(built()["vae-trial"]) == {
        contract.ENV_SWEEP_ID: f"{SWEEP_UID}.vae",
        contract.ENV_TRIAL_ID: f"{SWEEP_UID}.vae.{{{{inputs.parameters.trial}}}}",
        contract.ENV_PARAMS: "{{inputs.parameters.params}}",
        contract.ENV_OBJECTIVE: "loss",
        contract.ENV_DIRECTION: "minimize",
        contract.ENV_STATE_ROOT: "/mnt/specon",
        contract.ENV_FLUSH: "300",
        "MLFLOW_EXPERIMENT_NAME": "vae",
        "MLFLOW_TRACKING_URI": "http://mlflow:5000",
    }


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


def test_a_trial_requests_a_small_share_of_cpu_and_has_no_limit() -> None:
    assert built()["vae-trial"]["container"]["resources"] == {"requests": {"cpu": "100m"}}


def test_the_grace_period_joins_the_authors_own_patch() -> None:
    patch = pod_patch(built(grace=90, pod_spec_patch="priorityClassName: low")["vae-trial"])
    assert patch["terminationGracePeriodSeconds"] == 90
    assert patch["priorityClassName"] == "low"


def test_a_sweeps_own_gates_and_grace_are_not_patched_over() -> None:
    for patch in ("terminationGracePeriodSeconds: 5", "schedulingGates: []"):
        with pytest.raises(SweepError, match=patch.partition(":")[0]):
            built(pod_spec_patch=patch)


def test_every_container_of_a_trial_requests_cpu() -> None:
    patch = pod_patch(built(resources=Resources(cpu_request="250m"))["vae-trial"])
    assert patch["containers"] == [{"name": "wait", "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}}}]
    assert patch["initContainers"][0]["resources"]["requests"]["cpu"] == "250m"


def test_an_authors_patch_of_argos_containers_stays() -> None:
    own = {"name": "wait", "resources": {"requests": {"cpu": "50m"}}}
    other = {"name": "main", "stdin": True}
    for written, patched in (([own], [own]), ([other], [other, pod_patch(built()["vae-trial"])["containers"][0]])):
        patch = pod_patch(built(pod_spec_patch=json.dumps({"containers": written}))["vae-trial"])
        assert patch["containers"] == patched


def test_an_attempt_is_told_apart_by_its_pods_uid_for_names_come_again_after_a_retry() -> None:
    for templates in (built(), built(arrivals=every(50))):
        found = fields_of_the_pod(templates["vae-trial"])
        assert found == {contract.ENV_ATTEMPT: "metadata.uid", contract.ENV_NODE: "spec.nodeName"}


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
    (volume,), (mount,) = trial["volumes"], trial["container"]["volumeMounts"]
    assert volume == {"name": mount["name"], "persistentVolumeClaim": {"claimName": "lab"}}
    assert mount["mountPath"] == "/state"


def test_any_volume_of_heras_can_hold_the_state_beside_the_authors_own() -> None:
    own = ExistingVolume(name="data", claim_name="data", mount_path="/data")
    nfs = NFSVolume(name="nfs", server="files.lab", path="/state")
    trial = built(volumes=own, state_volume=nfs)["vae-trial"]
    assert [volume["name"] for volume in trial["volumes"]] == ["data", "nfs"]
    assert {mount["mountPath"] for mount in trial["container"]["volumeMounts"]} == {"/data", "/mnt/specon"}


def test_a_volume_claimed_for_each_workflow_can_hold_the_state() -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as workflow:
        sweep(state_volume=Volume(name="state", size="1Gi", access_modes=["ReadWriteMany"]))
    spec = workflow.to_dict()["spec"]
    assert [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]] == ["state"]
    assert spec["templates"][1]["container"]["volumeMounts"] == [{"name": "state", "mountPath": "/mnt/specon"}]


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


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        Parameter(name="data", value="digits"),
        {"data": "digits"},
        [Parameter(name="data", value="digits")],
        Arguments(parameters=[ModelParameter(name="data", value="digits")]),
    ],
)
def test_a_workflow_asks_what_it_continues_after_its_own_arguments(arguments: Any) -> None:  # noqa: ANN401 - as Hera's
    with Workflow(generate_name="vae-", entrypoint="main", arguments=arguments) as workflow:
        first, second = sweep(), sweep(name="other")
        with Steps(name="main"):
            first()
            second()
    parameters = workflow.to_dict()["spec"]["arguments"]["parameters"]
    names = [parameter["name"] for parameter in parameters]
    assert names == [*(["data"] if arguments else []), labels.PARAMETER_CONTINUE]
    assert parameters[-1]["value"] == ""


def test_an_authors_own_value_of_what_to_continue_stays() -> None:
    given: list[Any] = [{labels.PARAMETER_CONTINUE: "u-1"}, Parameter(name=labels.PARAMETER_CONTINUE, value="u-1")]
    for arguments in given:
        with Workflow(generate_name="vae-", entrypoint="vae", arguments=arguments) as workflow:
            sweep()
        (parameter,) = workflow.to_dict()["spec"]["arguments"]["parameters"]
        assert parameter["value"] == "u-1"


def test_what_hera_offers_for_a_container_goes_to_the_trials() -> None:
    trial = built(node_selector={"disk": "ssd"}, working_dir="/src", labels={"team": "vision"})["vae-trial"]
    assert trial["nodeSelector"] == {"disk": "ssd"}
    assert trial["container"]["workingDir"] == "/src"
    assert trial["metadata"]["labels"]["team"] == "vision"


def test_arriving_trials_wait_in_a_template_of_their_own() -> None:
    templates = built(arrivals=every(50))
    assert [item["delay"] for item in items(templates)] == ["0s", "50s", "100s"]
    (wait,), (trial,) = templates["vae-arrival"]["steps"]
    assert wait["template"] == "vae-delay"
    assert trial["template"] == "vae-trial"
    assert templates["vae-delay"]["suspend"] == {"duration": "{{inputs.parameters.delay}}"}


def test_random_arrivals_have_durations_that_go_can_read() -> None:
    delays = [item["delay"] for item in items(built(arrivals=at_random(within=300, seed=1)))]
    assert all(float(delay.removesuffix("s")) <= 300 for delay in delays)


def test_parallelism_limits_the_trials() -> None:
    assert built(parallelism=2)["vae"]["parallelism"] == 2


def test_inputs_of_the_sweep_reach_every_trial() -> None:
    given = [Parameter(name="data", default="digits"), Artifact(name="weights", path="/in/weights")]
    templates = built(inputs=given, arrivals=every(1))
    for name in ("vae", "vae-arrival"):
        step = templates[name]["steps"][-1][0]
        assert {"name": "data", "value": "{{inputs.parameters.data}}"} in step["arguments"]["parameters"]
        assert step["arguments"]["artifacts"] == [{"name": "weights", "from": "{{inputs.artifacts.weights}}"}]
    assert {"name": "data", "default": "digits"} in templates["vae-trial"]["inputs"]["parameters"]


@script(image="python:3.11")
def prepare() -> None:
    print("digits")  # noqa: T201 - its output is its result


def test_a_sweep_is_a_task_between_others() -> None:
    with Workflow(generate_name="vae-", entrypoint="main") as w:
        search = sweep(inputs=[Parameter(name="data")])
        evaluate = Container(name="evaluate", image="trainer:1", command=["true"], inputs=[Parameter(name="sweep")])
        with DAG(name="main"):
            first: Any = prepare()
            first >> search(arguments={"data": first.result}) >> evaluate(arguments={"sweep": search.sweep_id})
    tasks = {task["name"]: task for task in w.to_dict()["spec"]["templates"][-2]["dag"]["tasks"]}
    assert tasks["vae"]["depends"] == "prepare"
    assert tasks["evaluate"]["depends"] == "vae"
    assert tasks["evaluate"]["arguments"]["parameters"][0]["value"] == f"{SWEEP_UID}.vae"


@pytest.mark.parametrize("made", ["before", "inside"])
def test_a_sweep_is_a_step_wherever_it_was_made(made: str) -> None:
    early = sweep(arrivals=every(50)) if made == "before" else None
    with Workflow(generate_name="vae-", entrypoint="main") as w:
        late = early or sweep(arrivals=every(50))
        with Steps(name="main") as main, main.parallel():
            late(name="search")
    names = [template["name"] for template in w.to_dict()["spec"]["templates"]]
    assert sorted(names) == ["main", "vae", "vae-arrival", "vae-delay", "vae-trial"]


def test_a_sweep_made_before_its_workflow_joins_when_called_there() -> None:
    early = sweep()
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        early()
    assert [template["name"] for template in w.to_dict()["spec"]["templates"]] == ["vae", "vae-trial"]


def test_a_sweep_may_live_in_a_workflow_template() -> None:
    with WorkflowTemplate(name="shared") as w:
        sweep()
    assert len(w.to_dict()["spec"]["templates"]) == 2


def test_building_twice_gives_the_same_workflow() -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(args=["--epochs=3"], env={"A": "1"}, arrivals=every(2), pod_spec_patch="priorityClassName: low")
    assert w.to_yaml() == w.to_yaml()


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


def test_two_templates_of_one_name_are_refused() -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep()
        Container(name="vae-trial", image="x", command=["true"])
    with pytest.raises(SweepError, match="'vae-trial'"):
        w.to_yaml()


@pytest.mark.parametrize("entrypoint", [None, "vea"])
def test_a_workflow_that_starts_nowhere_is_refused(entrypoint: str | None) -> None:
    with Workflow(generate_name="vae-", entrypoint=entrypoint) as w:
        sweep()
    with pytest.raises(SweepError, match=repr(entrypoint)):
        w.to_yaml()


def test_a_sweep_runs_once_in_a_workflow_since_its_trials_have_one_identity() -> None:
    with Workflow(generate_name="vae-", entrypoint="main"), Steps(name="main"):
        search = sweep()
        search(name="first")
        with pytest.raises(SweepError, match="once"):
            search(name="second")


def test_a_sweep_is_not_repeated_over_items() -> None:
    with Workflow(generate_name="vae-", entrypoint="main"), Steps(name="main"):
        search = sweep()
        with pytest.raises(SweepError, match="once"):
            search(with_items=[1, 2])


def test_a_sweep_outside_any_workflow_says_so() -> None:
    with pytest.raises(SweepError, match="outside a Workflow"):
        sweep()()
