"""Output parameters: files of pods, handed on by Steps and DAGs, as arguments and items of what comes after."""

from typing import Any

import pytest

from controllers.worlds.local.workflow import StepOutcome, StepStatus, UnsupportedWorkflowError, WorkflowError
from controllers.worlds.local.workflow.steps import OutputFile
from tests.controllers.worlds.local.workflow.workflow_manifests import (
    GOOD,
    Manifest,
    Run,
    call,
    dag,
    pod,
    program,
    steps,
)

MOUNTED: Manifest = {"volumeMounts": [{"name": "out", "mountPath": "/out"}]}
VOLUMES: Manifest = {"volumes": [{"name": "out", "emptyDir": {}}]}
ECHO = pod("use", "{{inputs.parameters.x}}", inputs=("x",))


def maker(name: str = "job", path: str = "/out/x", **source: str) -> Manifest:
    made = pod(name, outputs=given(x={"path": path, **source})) | VOLUMES
    made["container"] |= MOUNTED
    return made


def given(**sources: dict[str, str]) -> Manifest:
    return {"parameters": [{"name": name, "valueFrom": source} for name, source in sources.items()]}


def wrote(**outputs: str) -> StepOutcome:
    return StepOutcome(StepStatus.SUCCEEDED, outputs=outputs)


def test_a_pods_output_is_an_argument_of_a_later_step() -> None:
    last = call("use", "use", arguments={"x": "{{steps.make.outputs.parameters.x}}"})
    run = Run(program(steps([call("make")], [last]), maker(default="none"), ECHO))
    assert run.now.pods[0].outputs == {"x": OutputFile("/out/x", "none")}
    run.end("[0].make", wrote(x="0.1 {deep}"))
    assert [step.args for step in run.now.pods] == [("0.1 {deep}",)]


@pytest.mark.parametrize("root", ["steps", "tasks"])
def test_templates_of_steps_and_tasks_hand_outputs_on(root: str) -> None:
    outputs = given(y={"parameter": f"{{{{{root}.make.outputs.parameters.x}}}}"})
    inner: dict[str, Any] = {"name": "inner", "outputs": outputs}
    inner |= {"steps": [[call("make")]]} if root == "steps" else {"dag": {"tasks": [call("make")]}}
    main = dag(
        call("in", "inner"),
        call("use", "use", arguments={"x": "{{tasks.in.outputs.parameters.y}}"}, depends="in"),
    )
    run = Run(program(main, inner, maker(), ECHO))
    run.end(".in[0].make" if root == "steps" else ".in.make", wrote(x="7"))
    assert [step.args for step in run.now.pods] == [("7",)]


def test_an_output_may_be_the_items_of_a_loop() -> None:
    loop = call("use", "use", arguments={"x": "{{item.param-lr}}"}, withParam="{{steps.make.outputs.parameters.x}}")
    run = Run(program(steps([call("make")], [loop]), maker(), ECHO))
    run.end("[0].make", wrote(x='[{"param-lr": "0.1"}, {"param-lr": "0.2"}]'))
    assert [step.args for step in run.now.pods] == [("0.1",), ("0.2",)]


def test_an_output_that_no_step_has_is_refused_before_anything_runs() -> None:
    last = call("use", "use", arguments={"x": "{{steps.make.outputs.parameters.y}}"})
    with pytest.raises(WorkflowError, match=r"outputs\.parameters\.y}} stands for nothing that is known there"):
        program(steps([call("make")], [last]), maker(), ECHO)
    with pytest.raises(WorkflowError, match=r"parameters\.y}} stands for nothing"):
        program(steps([call("make")], outputs=given(z={"parameter": "{{steps.make.outputs.parameters.y}}"})), maker())


def test_an_output_that_a_skipped_step_would_have_fails_only_what_uses_it() -> None:
    inner = steps(
        [call("make", when="1 == 2")],
        name="inner",
        outputs=given(y={"parameter": "{{steps.make.outputs.parameters.x}}"}),
    )
    run = Run(program(steps([call("in", "inner")]), inner, maker()))
    assert (run.now.finished, run.now.failed) == (True, False)
    last = call("use", "use", arguments={"x": "{{steps.in.outputs.parameters.y}}"})
    run = Run(program(steps([call("in", "inner")], [last]), inner, maker(), ECHO))
    assert run.now.failed
    assert "{{steps.in.outputs.parameters.y}} has no value" in run.now.message


def test_a_file_that_other_steps_could_write_to_is_no_output() -> None:
    with pytest.raises(UnsupportedWorkflowError, match="'/tmp/x' is in none of the step's own: mount an emptyDir"):
        program(steps([call("make")]), maker(path="/tmp/x"))  # noqa: S108 - of a pod


@pytest.mark.parametrize("field", [{"artifacts": [{"name": "a", "path": "/out/a"}]}, {"exitCode": "0"}])
def test_other_outputs_are_refused(field: Manifest) -> None:
    with pytest.raises(UnsupportedWorkflowError, match=r"outputs\."):
        program(steps([call("make")]), pod("job", outputs=field))


def test_trials_after_a_step_with_outputs_are_known_before_anything_runs() -> None:
    trial = pod("trial", "{{inputs.parameters.x}}", inputs=("x",), metadata={"labels": {"hera-specon.io/sweep": "s"}})
    last = call("t", "trial", arguments={"x": "{{steps.make.outputs.parameters.x}}"})
    of = program(steps([call("make")], [last]), maker(), trial)
    assert [planned.step.id for planned in of.trials()] == ["w-x1[1].t"]


def test_a_step_that_told_nothing_has_no_outputs() -> None:
    last = call("use", "use", arguments={"x": "{{steps.make.outputs.parameters.x}}"})
    run = Run(program(steps([call("make")], [last]), maker(), ECHO))
    run.end("[0].make", GOOD)
    assert "{{steps.make.outputs.parameters.x}} has no value" in run.now.message
