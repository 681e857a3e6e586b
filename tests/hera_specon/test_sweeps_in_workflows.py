"""Sweeps as parts of workflows: steps, tasks, templates, and what a workflow asks for."""

from typing import Any

import pytest
from hera.workflows import DAG, Container, Parameter, Steps, Workflow, WorkflowTemplate, script
from hera.workflows.models import Arguments
from hera.workflows.models import Parameter as ModelParameter

from controllers.core import labels
from controllers.core.expressions import SWEEP_UID
from hera_specon import SweepError, every
from tests.hera_specon.built_sweeps import sweep


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
