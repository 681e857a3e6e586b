from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.expressions import SWEEP_UID, gates, main_container
from controllers.core.labels import GATE_PLACEMENT, PARAMETER_CONTINUE
from controllers.worlds.local.workflow import UnsupportedWorkflowError, WorkflowError, read_workflow
from controllers.worlds.local.workflow.fields import IGNORED
from tests.controllers.worlds.local.workflow.workflow_manifests import (
    Manifest,
    call,
    dag,
    pod,
    program,
    steps,
    workflow,
)

STATE = [{"name": "SPECON_STATE_ROOT", "value": "/state/specon"}]


def problems(*templates: Manifest, **spec: Any) -> tuple[str, ...]:  # noqa: ANN401 - any field of a manifest
    with pytest.raises(WorkflowError) as caught:
        program(*templates, **spec)
    return caught.value.problems


def container(**fields: object) -> Manifest:
    return {"name": "main", "container": {"command": ["run"], **fields}}


def test_every_field_that_cannot_be_honoured_is_named_at_once_by_its_path() -> None:
    main = pod("main", sidecars=[{"name": "x"}], memoize={"key": "x"})
    main["container"] |= {"workingDir": "/src", "resources": {"limits": {"amd.com/gpu": 1}}}
    main["container"]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    with pytest.raises(UnsupportedWorkflowError) as caught:
        program(main, onExit="bye", volumes=[{"name": "data", "configMap": {}}])
    assert {problem.partition(":")[0] for problem in caught.value.problems} == {
        "spec.onExit",
        "spec.templates[0].container.volumeMounts[0]",
        "spec.templates[0].sidecars",
        "spec.templates[0].memoize",
        "spec.templates[0].container.workingDir",
        "spec.templates[0].container.resources.limits.amd.com/gpu",
    }
    assert str(caught.value).count("\n") == 5


def test_a_secret_is_taken_from_the_environment_and_asked_for_where_it_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = {"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "tokens", "key": "api"}}}
    monkeypatch.delenv("API_TOKEN", raising=False)
    (problem,) = problems(container(env=[secret]))
    assert problem.endswith("set the environment variable API_TOKEN, or API_TOKEN_FILE to the file that holds it")
    monkeypatch.setenv("API_TOKEN", "s3cret")
    (step,) = program(container(env=[secret])).expand({}, ()).pods
    assert "s3cret" not in str(step)


def test_devices_are_refused_with_what_was_asked_for_and_what_to_do() -> None:
    for asked, told in (({"amd.com/gpu": 2}, "'2' is"), ({"a.b/c": "9" * 90}, f"'{'9' * 20}' is")):
        (problem,) = problems(container(resources={"requests": asked}))
        path = f"spec.templates[0].container.resources.requests.{next(iter(asked))}"
        assert problem.startswith(f"{path}: {told} asked for")
        assert "only nvidia.com/gpu are given out here: use a cluster" in problem


@pytest.mark.parametrize(
    "path",
    [
        "spec.templateDefaults",
        "spec.workflowTemplateRef",
        "spec.hooks",
        "spec.synchronization",
        "spec.activeDeadlineSeconds",
        "spec.suspend",
        "spec.shutdown",
        "spec.retryStrategy",
        "spec.fieldOfTheFuture",
    ],
)
def test_what_the_workflow_as_a_whole_asks_of_a_cluster_is_refused(path: str) -> None:
    (problem,) = problems(pod("main"), **{path.removeprefix("spec."): {"any": "thing"}})
    assert problem.startswith(f"{path}: ")


@pytest.mark.parametrize(
    "field",
    [
        "sidecars",
        "initContainers",
        "daemon",
        "memoize",
        "activeDeadlineSeconds",
        "executorFuture",
    ],
)
def test_what_a_template_asks_of_a_cluster_is_refused(field: str) -> None:
    (problem,) = problems(pod("main") | {field: {"any": "thing"}})
    assert problem.startswith(f"spec.templates[0].{field}: ")


def test_how_long_an_attempt_may_last_is_taken_as_a_number_or_as_text() -> None:
    for written in (90, "90"):
        (step,) = program(pod("main", activeDeadlineSeconds=written)).expand({}, ()).pods
        assert step.timeout_s == 90.0
    (step,) = program(pod("main", timeout="1m30s", activeDeadlineSeconds=100)).expand({}, ()).pods
    assert step.timeout_s == 90.0
    assert "must be a whole number" in problems(pod("main", activeDeadlineSeconds="soon"))[0]
    assert "is not a duration" in problems(pod("main", timeout="soon"))[0]


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind in ("spec", "template") for field in IGNORED[kind]])
def test_fields_that_do_no_harm_are_ignored(kind: str, field: str) -> None:
    spec, template = ({field: {"any": "thing"}}, {}) if kind == "spec" else ({}, {field: {"any": "thing"}})
    assert len(program(pod("main") | template, **spec).expand({}, ()).pods) == 1


def test_every_ignored_field_has_a_reason() -> None:
    assert all(reason.strip() for reasons in IGNORED.values() for reason in reasons.values())


def test_the_volume_of_the_trials_state_needs_no_stand_in() -> None:
    mounts = [{"name": "state", "mountPath": "/state"}]
    claims = [{"metadata": {"name": "state"}, "spec": {}}]
    (step,) = program(container(env=STATE, volumeMounts=mounts), volumeClaimTemplates=claims).expand({}, ()).pods
    assert step.mounts == ()


def test_a_variable_from_a_secret_is_refused_unless_the_local_world_sets_it_itself() -> None:
    source = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert program(container(env=[{"name": "SPECON_NODE", "valueFrom": source}])).expand({}, ()).pods[0].env == {}
    (problem,) = problems(container(env=[{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]))
    assert problem.startswith(
        "spec.templates[0].container.env[0].valueFrom: it is a Secret: set the environment variable TOKEN"
    )


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        ("schedulerName: mine", "podSpecPatch.schedulerName"),
        ('{"terminationGracePeriodSeconds": "soon"}', "podSpecPatch.terminationGracePeriodSeconds"),
        ("terminationGracePeriodSeconds: {{retries}}", "podSpecPatch"),
        ("{", "podSpecPatch"),
        ('{"schedulingGates": [{"name": "someone.else/gate"}]}', "podSpecPatch.schedulingGates"),
        ('{"containers": [{"name": "main", "resources": {}}]}', "podSpecPatch.containers"),
        ('{"initContainers": [{"name": "init", "image": "mine"}]}', "podSpecPatch.initContainers"),
    ],
)
def test_a_pod_spec_patch_may_only_set_what_has_a_meaning_here_or_does_no_harm(patch: str, path: str) -> None:
    assert problems(pod("main", podSpecPatch=patch))[0].startswith(f"spec.templates[0].{path}: ")


@pytest.mark.parametrize("held", [gates("a"), gates("b-2", first=True), f'[{{"name": "{GATE_PLACEMENT}"}}]'])
def test_gates_and_argos_own_containers_are_left_aside(held: str) -> None:
    containers = f'"containers": [{{"name": "wait", "resources": {{}}}}, {main_container("b-2")}]'
    patch = f'{{{containers}, "initContainers": [{{"name": "init"}}], "terminationGracePeriodSeconds": 7, '
    patch += f'"schedulingGates": {held}}}'
    assert program(pod("main", podSpecPatch=patch)).expand({}, ()).pods[0].grace_s == 7


def test_a_run_on_one_machine_continues_no_other_workflow() -> None:
    declared = {"parameters": [{"name": PARAMETER_CONTINUE, "value": "uid-0"}]}
    main = container(env=[{"name": "SPECON_TRIAL_ID", "value": f"{SWEEP_UID}.vae.t000"}])
    assert program(main, arguments=declared).expand({}, ()).pods[0].env == {"SPECON_TRIAL_ID": "uid-1.vae.t000"}


@pytest.mark.parametrize(
    ("step", "path"),
    [
        (call("a", templateRef={"name": "x", "template": "y"}), "templateRef"),
        (call("a", hooks={"exit": {"template": "job"}}), "hooks"),
        (call("a", inline={"container": {}}), "inline"),
        (call("a", when="x in (y)"), "when"),
        (call("a", withSequence={"count": "{{workflow.name}}"}), "withSequence"),
        (call("a", withSequence={"count": 2, "format": "%02d"}), "withSequence.format"),
    ],
)
def test_what_a_step_asks_beyond_the_honoured_part_is_refused(step: Manifest, path: str) -> None:
    found = problems(steps([step]), pod("job"))
    assert found[0].startswith(f"spec.templates[0].steps[0][0].{path}: ")


@pytest.mark.parametrize("depends", ["a || b", "a.Failed", "!a", "(a && b)"])
def test_a_depends_of_more_than_names_joined_by_and_is_refused_with_its_text(depends: str) -> None:
    found = problems(dag(call("a"), call("b"), call("c", depends=depends)), pod("job"))
    assert found[0].startswith("spec.templates[0].dag.tasks[2].depends: ")
    assert repr(depends) in found[0]


def test_expression_tags_and_templates_that_call_themselves_are_refused() -> None:
    (problem,) = problems(pod("main", "{{= 1 + 1 }}"))
    assert "{{= 1 + 1}}" in problem
    (problem,) = problems(steps([call("again", "main")]))
    assert "main -> main" in problem


def test_a_suspend_that_waits_for_a_person_is_refused() -> None:
    (problem,) = problems({"name": "main", "suspend": {}})
    assert problem.startswith("spec.templates[0].suspend.duration: ")


def test_other_kinds_of_object_are_refused() -> None:
    manifest = workflow(pod("main")) | {"kind": "CronWorkflow"}
    with pytest.raises(UnsupportedWorkflowError, match="'CronWorkflow'"):
        read_workflow(manifest, "w", "u", {})


@pytest.mark.parametrize(
    ("templates", "complaint"),
    [
        ([steps([call("a", "gone")])], "there is no template 'gone'"),
        ([dag(call("a", depends="b"), call("b", depends="a")), pod("job")], "wait for each other"),
        ([dag(call("a", depends="z")), pod("job")], "there is no task 'z'"),
        ([steps([call("a")], [call("a")]), pod("job")], "'a' is the name of more than one"),
        ([pod("main"), pod("main")], "'main' is the name of another template too"),
        ([steps([call("a b")]), pod("job")], "'a b' must consist of"),
        ([steps([call("a")]), pod("job", inputs=("x",))], "gives no 'x', which template 'job' needs"),
        ([pod("main", "{{inputs.parameters.y}}")], "{{inputs.parameters.y}} stands for nothing"),
        ([pod("main", "{{retries}}")], "{{retries}} stands for nothing"),
        ([pod("main", "{{workflow.parameters.y}}")], "{{workflow.parameters.y}} stands for nothing"),
        ([steps([call("a", arguments={"x": "{{item}}"})]), pod("job")], "{{item}} stands for nothing"),
        (
            [steps([call("a", arguments={"x": "{{item.z}}"}, withItems=[{"y": 1}])]), pod("job")],
            "{{item.z}} stands for",
        ),
        (
            [steps([call("a"), call("b", arguments={"x": "{{steps.a.outputs.result}}"})]), pod("job")],
            "{{steps.a.outputs.result}} stands for nothing",
        ),
        ([{"name": "main"}], "must have one of container, script, steps, dag, suspend, has none"),
        ([{"name": "main", "container": {"image": "x"}}], "command: is needed"),
        ([container(resources={"requests": {"cpu": "lots"}})], "resources.requests.cpu: 'lots' is not a quantity"),
        ([{"name": "main", "suspend": {"duration": "soon"}}], "suspend.duration: 'soon'"),
        ([steps([call("a", withParam="{}")]), pod("job")], "withParam: '{}' is not a JSON list"),
        ([steps([call("a", withItems=[1], withParam="[1]")]), pod("job")], "withItems and withParam"),
        ([pod("main", retryStrategy={"limit": "many"})], "retryStrategy.limit: must be a whole number, not 'many'"),
        ([pod("main", retryStrategy={"expression": "lastRetry.exitCode == 75"})], "retryStrategy.expression: '1' =="),
        ([pod("main", parallelism=-1)], "parallelism: must be a whole number, not -1"),
    ],
)
def test_a_malformed_workflow_is_refused_with_what_is_wrong(templates: list[Manifest], complaint: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        program(*templates)
    assert not isinstance(caught.value, UnsupportedWorkflowError)
    assert complaint in str(caught.value)


def test_parameters_must_be_known_valued_and_among_their_choices() -> None:
    declared = {"parameters": [{"name": "a"}, {"name": "b", "value": "x", "enum": ["x", "y"]}]}
    with pytest.raises(WorkflowError) as caught:
        program(pod("main"), arguments=declared, parameters={"c": "1", "b": "z"})
    text = str(caught.value)
    assert "parameter 'c': is not one of the workflow's arguments (a, b)" in text
    assert "parameter 'a': has no value" in text
    assert "'z' is none of x, y" in text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "template", "steps", "dag", "tasks", "container", "command", "inputs", "withItems"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(st.lists(json_values, max_size=3), json_values)
def test_any_nonsense_is_refused_as_a_workflow_error_or_read(templates: list[object], arguments: object) -> None:
    manifest = workflow() | {"spec": {"entrypoint": "main", "templates": templates, "arguments": arguments}}
    try:
        read_workflow(manifest, "w", "u", {}).expand({}, ())
    except WorkflowError as error:
        assert error.problems  # noqa: PT017 - either outcome is right, but not an error without a word
