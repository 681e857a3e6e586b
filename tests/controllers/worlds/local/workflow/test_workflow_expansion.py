import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.worlds.local.workflow import Delay, PodStep, Program, StepOutcome, StepStatus
from tests.controllers.worlds.local.workflow.workflow_manifests import (
    BAD,
    GOOD,
    Manifest,
    Run,
    call,
    dag,
    names,
    pod,
    program,
    steps,
)

JOB = pod("job")


def said(text: str) -> StepOutcome:
    return StepOutcome(StepStatus.SUCCEEDED, result=text)


def test_a_single_container_bears_the_workflows_name() -> None:
    run = Run(program(pod("main")))
    assert names(run.now) == [""]
    run.end("")
    assert (run.now.finished, run.now.failed) == (True, False)


def test_groups_of_steps_follow_each_other_and_their_steps_run_at_once() -> None:
    run = Run(program(steps([call("a"), call("b")], [call("c")]), JOB))
    assert names(run.now) == ["[0].a", "[0].b"]
    assert run.end("[0].b") == ["[0].a"]
    assert run.end("[0].a") == ["[1].c"]
    assert run.end("[1].c") == []
    assert run.now.finished


def test_a_failed_step_lets_its_group_end_and_then_fails_the_workflow() -> None:
    run = Run(program(steps([call("a"), call("b")], [call("c")]), JOB))
    assert run.end("[0].a", BAD) == ["[0].b"]
    run.end("[0].b")
    assert (run.now.finished, run.now.failed, run.now.message) == (True, True, "w-x1[0].a failed with exit code 1")


def test_continue_on_failed_goes_on_after_a_failure() -> None:
    run = Run(program(steps([call("a", continueOn={"failed": True})], [call("c")]), JOB))
    assert run.end("[0].a", BAD) == ["[1].c"]
    run.end("[1].c")
    assert not run.now.failed


def test_tasks_of_a_dag_start_when_what_they_depend_on_is_done() -> None:
    tasks = [call("a"), call("b"), call("c", dependencies=["a"]), call("d", depends="b && c")]
    run = Run(program(dag(*tasks), JOB))
    assert names(run.now) == [".a", ".b"]
    assert run.end(".a") == [".b", ".c"]
    assert run.end(".b") == [".c"]
    assert run.end(".c") == [".d"]
    run.end(".d")
    assert (run.now.finished, run.now.failed) == (True, False)


def test_a_failed_task_omits_what_follows_it_while_other_branches_go_on() -> None:
    run = Run(program(dag(call("a"), call("b"), call("a2", depends="a"), call("b2", depends="b")), JOB))
    assert run.end(".a", BAD) == [".b"]
    assert run.end(".b") == [".b2"]
    run.end(".b2")
    assert (run.now.finished, run.now.failed) == (True, True)


def test_a_task_after_one_that_may_fail_decides_how_its_dag_ends() -> None:
    run = Run(program(dag(call("a", continueOn={"failed": True}), call("b", depends="a")), JOB))
    assert run.end(".a", BAD) == [".b"]
    run.end(".b")
    assert not run.now.failed


def test_loops_name_their_steps_as_argo_does_and_fill_in_items() -> None:
    items = [{"lr": 0.1, "params": {"lr": 0.1, "deep": True}}, {"lr": 1e-05, "params": {}}]
    loop = call("train", arguments={"x": "{{item.lr}}", "p": "{{item.params}}"}, withItems=items)
    run = Run(program(steps([loop]), pod("job", "{{inputs.parameters.x}} {{inputs.parameters.p}}", inputs=("x", "p"))))
    assert [step.args for step in run.now.pods] == [('0.1 {"lr":0.1,"deep":true}',), ("1e-05 {}",)]
    assert names(run.now) == ['[0].train(0:lr:0.1,params:{"lr":0.1,"deep":true})', "[0].train(1:lr:1e-05,params:{})"]


def test_a_loop_may_go_over_texts_numbers_and_counts() -> None:
    echo = pod("job", "{{inputs.parameters.x}}", inputs=("x",))
    texts = call("t", arguments={"x": "{{item}}"}, withItems=["a (b)", 2, True])
    count = call("c", arguments={"x": "{{item}}"}, withSequence={"count": 2, "start": "3"})
    down = call("d", arguments={"x": "{{item}}"}, withSequence={"start": 2, "end": 1})
    found = Run(program(steps([texts, count, down]), echo)).now
    assert [step.args[0] for step in found.pods] == ["a (b)", "2", "true", "3", "4", "2", "1"]
    assert names(found)[0] == "[0].t(0:a b)"


def test_the_result_of_a_step_becomes_the_items_and_the_arguments_of_a_later_one() -> None:
    loop = call("use", arguments={"x": "{{item.n}}"}, withParam="{{steps.make.outputs.result}}")
    echo = pod("job", "{{inputs.parameters.x}}", inputs=("x",))
    last = call("sum", arguments={"x": "{{steps.use.outputs.result}}"})
    run = Run(program(steps([call("make", "list")], [loop], [last]), pod("list"), echo))
    run.end("[0].make", said('[{"n": 1}, {"n": 2}]'))
    assert [step.args for step in run.now.pods] == [("1",), ("2",)]
    run.end("[1].use(1:n:2)", said("text"))
    run.end("[1].use(0:n:1)", said("10"))
    assert [step.args for step in run.now.pods] == [('[10,"text"]',)]


def test_a_result_that_is_no_list_fails_the_loop_with_the_value() -> None:
    loop = call("use", withParam="{{tasks.make.outputs.result}}", dependencies=["make"])
    run = Run(program(dag(call("make"), loop), JOB))
    run.end(".make", said("oops"))
    assert run.now.failed
    assert "'oops'" in run.now.message


def test_an_output_that_never_came_fails_the_step_that_needs_it() -> None:
    user = call("use", arguments={"x": "{{tasks.make.outputs.result}}"}, depends="make")
    run = Run(program(dag(call("make"), user), JOB))
    run.end(".make")
    assert run.now.failed
    assert "{{tasks.make.outputs.result}} has no value" in run.now.message


def test_an_empty_loop_is_skipped_and_what_follows_runs() -> None:
    run = Run(program(dag(call("none", withItems=[]), call("after", depends="none")), JOB))
    assert names(run.now) == [".after"]


def test_when_skips_a_step_and_what_depends_on_it_runs_all_the_same() -> None:
    flip, heads = call("flip"), call("heads", when="{{tasks.flip.outputs.result}} == heads", depends="flip")
    run = Run(program(dag(flip, heads, call("after", depends="heads")), JOB))
    assert run.end(".flip", said("tails")) == [".after"]
    run.end(".after")
    assert not run.now.failed


def test_nested_templates_get_their_own_arguments() -> None:
    inner = steps([call("leaf", arguments={"x": "<{{inputs.parameters.y}}>"})], name="inner")
    inner["inputs"] = {"parameters": [{"name": "y"}]}
    outer = dag(call("one", "inner", {"y": "1"}), call("two", "inner", {"y": "2"}))
    leaf = pod("job", "{{inputs.parameters.x}} {{node.name}}", inputs=("x",))
    found = Run(program(outer, inner, leaf)).now
    assert [step.args[0] for step in found.pods] == ["<1> w-x1.one[0].leaf", "<2> w-x1.two[0].leaf"]


def test_arguments_come_from_overrides_then_values_then_defaults() -> None:
    arguments = {"parameters": [{"name": "a", "value": "1"}, {"name": "b", "value": 2}, {"name": "c", "default": "3"}]}
    text = "{{workflow.parameters.a}}{{workflow.parameters.b}}{{workflow.parameters.c}}{{inputs.parameters.a}}"
    own = pod("main", text, "{{inputs.parameters.d}}")
    own["inputs"] = {"parameters": [{"name": "a"}, {"name": "d", "default": "4"}]}
    found = program(own, arguments=arguments, parameters={"a": "9"}).expand({}, ())
    assert found.pods[0].args == ("9239", "4")


def test_the_workflows_own_values_and_foreign_braces() -> None:
    text = "{{workflow.name}} {{workflow.uid}} {{workflow.namespace}} {{workflow.labels.team}} {{ jinja }} {{}}"
    assert program(pod("main", text)).expand({}, ()).pods[0].args == ("w-x1 uid-1 lab vision {{ jinja }} {{}}",)


def test_a_script_keeps_its_source_and_a_step_its_shares_names_and_grace() -> None:
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 2}}
    script = {
        "command": ["python"],
        "source": "print({{workflow.parameters.n}})",
        "env": [{"name": "N", "value": "{{workflow.parameters.n}}"}],
        "resources": resources,
    }
    template = {
        "name": "main",
        "script": script,
        "metadata": {
            "labels": {"a": "{{workflow.name}}", "hera-specon.io/sweep": "s"},
            "annotations": {"hera-specon.io/workers": "2", "hera-specon.io/min-workers": "1"},
        },
        "podSpecPatch": json.dumps({"terminationGracePeriodSeconds": 5}),
    }
    found = program(
        template, arguments={"parameters": [{"name": "n", "value": "7"}]}, podMetadata={"labels": {"b": "c"}}
    )
    (step,) = found.expand({}, ()).pods
    assert step == PodStep(
        id="w-x1",
        template="main",
        command=("python",),
        source="print(7)",
        env={"N": "7"},
        labels={"a": "w-x1", "b": "c", "hera-specon.io/sweep": "s"},
        annotations={"hera-specon.io/workers": "2", "hera-specon.io/min-workers": "1"},
        cpu=0.5,
        memory=1024.0**3,
        cpu_limit=2.0,
        grace_s=5.0,
        workers=2,
        min_workers=1,
    )


def test_a_step_without_requests_counts_as_a_core_and_one_with_a_limit_requests_the_limit() -> None:
    limited = pod("main")
    limited["container"]["resources"] = {"limits": {"cpu": "1500m"}}
    steps = [program(template).expand({}, ()).pods[0] for template in (pod("main"), limited)]
    assert [(step.cpu, step.cpu_guessed) for step in steps] == [(1.0, True), (1.5, False)]


def test_each_attempt_of_a_step_with_retries_knows_its_number_and_the_end_of_the_one_before() -> None:
    text = "{{retries}} {{lastRetry.exitCode}} {{workflow.name}}"
    (step,) = program(pod("main", text, retryStrategy={"limit": "3"})).expand({}, ()).pods
    assert step.attempt().args == ("0 0 w-x1",)
    assert step.attempt(2, 75, "Failed").args == ("2 75 w-x1",)


def test_a_suspend_is_a_delay_and_what_follows_waits_for_its_outcome() -> None:
    pause = {
        "name": "pause",
        "inputs": {"parameters": [{"name": "t"}]},
        "suspend": {"duration": "{{inputs.parameters.t}}"},
    }
    run = Run(program(steps([call("wait", "pause", {"t": "1m30s"})], [call("go")]), pause, JOB))
    assert run.now.delays == (Delay("w-x1[0].wait", 90.0),)
    assert names(run.now) == []
    assert run.end("[0].wait") == ["[1].go"]


def test_parallelism_of_a_template_counts_its_running_children() -> None:
    inner = steps([call("x")], [call("y")], name="inner")
    run = Run(program(steps([call("n", "inner", withItems=[0, 1, 2])], parallelism=2), inner, JOB))
    assert names(run.now) == ["[0].n(0:0)[0].x", "[0].n(1:1)[0].x"]
    assert run.end("[0].n(1:1)[0].x") == ["[0].n(0:0)[0].x", "[0].n(1:1)[1].y"]
    assert run.end("[0].n(1:1)[1].y") == ["[0].n(0:0)[0].x", "[0].n(2:2)[0].x"]


def test_parallelism_never_takes_the_place_of_a_step_that_runs() -> None:
    tasks = [call("a"), call("a1", depends="a"), call("a2", depends="a"), call("b"), call("c")]
    run = Run(program(dag(*tasks), JOB, parallelism=2))
    assert names(run.now) == [".a", ".b"]
    assert run.end(".b") == [".a", ".c"]
    assert run.end(".a") == [".a1", ".c"]


def test_fail_fast_starts_nothing_new_after_a_failure_and_ends_with_what_runs() -> None:
    run = Run(program(steps([call("n", withItems=[0, 1, 2])], parallelism=2, failFast=True), JOB))
    assert run.end("[0].n(0:0)", BAD) == ["[0].n(1:1)"]
    run.end("[0].n(1:1)")
    assert (run.now.finished, run.now.failed) == (True, True)


def test_trials_are_known_before_running_with_the_delay_before_each() -> None:
    trial = pod("job", metadata={"labels": {"hera-specon.io/sweep": "s"}})
    pause = {
        "name": "pause",
        "inputs": {"parameters": [{"name": "t"}]},
        "suspend": {"duration": "{{inputs.parameters.t}}s"},
    }
    arrival = steps([call("wait", "pause", {"t": "{{inputs.parameters.t}}"})], [call("trial")], name="arrival")
    arrival["inputs"] = {"parameters": [{"name": "t"}]}
    loop = call("arrive", "arrival", {"t": "{{item}}"}, withItems=[100, 0, 50])
    found = program(dag(call("prepare", "other"), {**loop, "depends": "prepare"}), arrival, pause, trial, pod("other"))
    assert sorted(planned.delay for planned in found.trials()) == [0.0, 50.0, 100.0]


def test_trials_that_hang_on_output_are_not_known_before_running() -> None:
    trial = pod("job", metadata={"labels": {"hera-specon.io/sweep": "s"}})
    loop = call("t", withParam="{{steps.make.outputs.result}}")
    found = program(steps([call("make", "other"), call("sure")], [loop]), trial, pod("other"))
    assert [planned.step.id for planned in found.trials()] == ["w-x1[0].sure"]


@st.composite
def dags(draw: st.DrawFn) -> list[Manifest]:
    size = draw(st.integers(1, 7))
    tasks = []
    for number in range(size):
        needs = draw(st.lists(st.integers(0, number - 1), unique=True, max_size=3)) if number else []
        task = call(f"t{number}", dependencies=[f"t{need}" for need in needs])
        task |= {"withItems": list(range(draw(st.integers(0, 3))))} if draw(st.booleans()) else {}
        tasks.append(task | {"continueOn": {"failed": draw(st.booleans())}})
    return draw(st.permutations(tasks))


@given(dags(), st.integers(1, 3), st.sampled_from(["template", "workflow", "none"]), st.sets(st.integers(0, 6)))
def test_any_dag_runs_each_task_once_after_what_it_needs_and_comes_to_an_end(
    tasks: list[Manifest], most: int, limit: str, failing: set[int]
) -> None:
    main = dag(*tasks, parallelism=most if limit == "template" else None)
    run = Run(program(main, JOB, parallelism=most if limit == "workflow" else None))
    ended: list[str] = []
    for step in run.to_the_end(lambda step: BAD if int(step.id.split(".t")[1][0]) in failing else GOOD):
        assert set(run.running) <= {pod.id for pod in run.now.pods}
        ended.append(step.id.removeprefix("w-x1.").partition("(")[0])
    assert run.now.finished
    assert limit == "none" or run.peak <= most
    needs = {task["name"]: task["dependencies"] for task in tasks}
    for position, name in enumerate(ended):
        later = set(ended[position:])
        assert not later.intersection(needs[name])


@pytest.mark.parametrize("notes", [{"workers": "a"}, {"workers": "0"}, {"workers": "2", "min-workers": "-1"}])
def test_a_number_of_workers_that_is_none_fails_the_step(notes: dict[str, str]) -> None:
    found = of_a_sweep(notes).expand({}, ())
    assert found.failed
    assert repr(list(notes.values())[-1]) in found.message


def test_more_workers_at_least_than_at_most_fail_the_step() -> None:
    found = of_a_sweep({"workers": "2", "min-workers": "3"}).expand({}, ())
    assert found.failed
    assert "hera-specon.io/min-workers is 3, above hera-specon.io/workers, 2" in found.message


def of_a_sweep(notes: dict[str, str]) -> Program:
    annotations = {f"hera-specon.io/{name}": text for name, text in notes.items()}
    return program(pod("main", metadata={"labels": {"hera-specon.io/sweep": "s"}, "annotations": annotations}))
