"""What a sweep came to as arguments of later steps: what is written, and what is refused at once."""

from typing import Any

import pytest
from hera.workflows import DAG, Container, CronWorkflow, Parameter, Steps, Workflow, WorkflowTemplate
from hera.workflows.models import ContinueOn

from hera_specon import Sweep, SweepError, choice, log_uniform, maximize, minimize, subject_to
from hera_specon.submission.edits import Overrides, edit_manifest

Manifest = dict[str, Any]


def sweep(**settings: Any) -> Sweep:  # noqa: ANN401 - those of Sweep
    given: dict[str, Any] = {
        "name": "search",
        "image": "trainer:1",
        "command": ["python3", "-m", "jobs.vae"],
        "space": {"lr": log_uniform(1e-4, 1e-1), "optim.model": choice("a", "b")},
        "trials": 3,
        "objective": minimize("loss"),
    }
    return Sweep(**{**given, **settings})


def later(*names: str) -> Container:
    inputs = [Parameter(name=name) for name in names]
    return Container(name="later", image="any", command=["use"], inputs=inputs)


def templates(workflow: Workflow) -> dict[str, Manifest]:
    spec = workflow.to_dict()["spec"]
    return {template["name"]: template for template in spec.get("workflowSpec", spec)["templates"]}


def environment(template: Manifest) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in template["script"]["env"]}


def arguments(step: Manifest) -> dict[str, str]:
    return {parameter["name"]: parameter["value"] for parameter in step["arguments"]["parameters"]}


def test_a_sweep_whose_outputs_nothing_uses_has_no_last_step() -> None:
    with Workflow(generate_name="w-", entrypoint="main") as w:
        search = sweep()
        with Steps(name="main"):
            search()
    found = templates(w)
    assert found.keys() == {"search", "search-trial", "main"}
    assert "outputs" not in found["search"]


def test_outputs_are_arguments_of_later_steps() -> None:
    with Workflow(generate_name="w-", entrypoint="main") as w:
        search, use = sweep(register="vae"), later("lr", "model", "all", "value", "run", "where", "trials", "uri")
        with Steps(name="main"):
            search(name="find")
            best = search.best
            use(
                arguments={
                    "lr": best.params["lr"],
                    "model": best.params["optim.model"],
                    "all": best.params,
                    "value": best.value,
                    "run": best.run_id,
                    "where": best.checkpoint,
                    "trials": best.trials,
                    "uri": best.model_uri,
                }
            )
    found = templates(w)
    ((_,), (step,)) = found["main"]["steps"]
    of = "steps.find.outputs.parameters"
    assert arguments(step) == {
        "lr": f"{{{{{of}.param-lr}}}}",
        "model": f"{{{{{of}.param-optim_model}}}}",
        "all": f"{{{{{of}.params}}}}",
        "value": f"{{{{{of}.value}}}}",
        "run": f"{{{{{of}.run-id}}}}",
        "where": f"{{{{{of}.checkpoint}}}}",
        "trials": f"{{{{{of}.trials}}}}",
        "uri": f"{{{{{of}.model-uri}}}}",
    }
    given = {parameter["name"] for parameter in found["search"]["outputs"]["parameters"]}
    assert {tag.removeprefix(f"{{{{{of}.").removesuffix("}}") for tag in arguments(step).values()} <= given
    assert given == {parameter["name"] for parameter in found["search-best"]["outputs"]["parameters"]}
    assert environment(found["search-best"])["SPECON_REGISTER"] == "vae@best"


def test_in_a_dag_outputs_are_those_of_the_task() -> None:
    with Workflow(generate_name="w-", entrypoint="main") as w:
        search, use = sweep(), later("all")
        with DAG(name="main"):
            search() >> use(arguments={"all": search.best.params})
    task = next(task for task in templates(w)["main"]["dag"]["tasks"] if task["name"] == "later")
    assert arguments(task) == {"all": "{{tasks.search.outputs.parameters.params}}"}


def test_the_best_few_are_a_list_to_fan_out_over() -> None:
    with Workflow(generate_name="w-", entrypoint="main") as w:
        search, use = sweep(), later("lr")
        with Steps(name="main"):
            search()
            use(arguments={"lr": "{{item.param-lr}}"}, with_param=search.top(3))
    found = templates(w)
    assert found["main"]["steps"][1][0]["withParam"] == "{{steps.search.outputs.parameters.top-3}}"
    assert environment(found["search-best"])["SPECON_TOP"] == "3"


def test_the_front_of_several_objectives_is_an_output_and_constraints_are_told() -> None:
    several = {"objective": None, "objectives": [minimize("loss"), maximize("val accuracy")]}
    with Workflow(generate_name="w-", entrypoint="main") as w:
        search, use = sweep(**several, constraints=[subject_to("memory", "<=", 512)]), later("lr")
        with Steps(name="main"):
            search()
            use(arguments={"lr": "{{item.param-lr}}"}, with_param=search.front)
    found = templates(w)
    assert found["main"]["steps"][1][0]["withParam"] == "{{steps.search.outputs.parameters.front}}"
    assert "front" in {parameter["name"] for parameter in found["search"]["outputs"]["parameters"]}
    told = environment(found["search-best"])
    assert told["SPECON_FURTHER"] == "maximize val accuracy"
    assert told["SPECON_CONSTRAINTS"] == "memory <= 512"


def test_one_objective_has_no_front_and_says_so() -> None:
    with Workflow(generate_name="w-", entrypoint="main") as w:
        search = sweep(answer=True)
        with Steps(name="main"):
            search()
            with pytest.raises(SweepError, match=r"front of sweep 'search' needs objectives=\[\.\.\.\]"):
                _ = search.front
    found = templates(w)
    assert "front" not in {parameter["name"] for parameter in found["search"]["outputs"]["parameters"]}
    assert not {"SPECON_FURTHER", "SPECON_CONSTRAINTS"} & environment(found["search-best"]).keys()


def test_the_last_step_runs_in_the_trials_image_as_their_user_and_is_told_no_trials_own_values() -> None:
    with Workflow(generate_name="w-", entrypoint="search") as w:
        sweep(answer=True, env={"MLFLOW_TRACKING_USERNAME": "me", "OF_TRIAL": "{{inputs.parameters.lr}}"})
    found = templates(w)
    script = found["search-best"]["script"]
    assert (script["image"], script["command"]) == ("trainer:1", ["python3"])
    assert found["search-best"]["securityContext"] == found["search-trial"]["securityContext"]
    told = environment(found["search-best"])
    assert (told["MLFLOW_TRACKING_USERNAME"], told["SPECON_NAMES"]) == ("me", '["lr", "optim.model"]')
    assert not {"OF_TRIAL", "SPECON_TRIAL_ID", "MLFLOW_RUN_CONTEXT"} & told.keys()
    assert found["search"]["steps"][1] == [{"name": "best", "template": "search-best"}]


def test_another_image_may_run_the_last_step() -> None:
    with Workflow(generate_name="w-", entrypoint="search") as w:
        sweep(answer=True, answer_image="python:3.12-slim", command=["./train"])
    script = templates(w)["search-best"]["script"]
    assert (script["image"], script["command"]) == ("python:3.12-slim", ["python"])


def test_a_sweep_that_may_fail_answers_for_the_trials_that_did_not() -> None:
    with Workflow(generate_name="w-", entrypoint="main") as w:
        search, use = sweep(), later("all")
        with Steps(name="main"):
            search(continue_on=ContinueOn(failed=True))
            use(arguments={"all": search.best.params})
    found = templates(w)
    assert found["search"]["steps"][0][0]["continueOn"] == {"failed": True, "error": True}
    assert environment(found["search-best"])["SPECON_ALL_SUCCEEDED"] == "false"


def test_a_hyperparameter_that_there_is_not_is_refused_at_once_with_those_there_are() -> None:
    with Workflow(generate_name="w-", entrypoint="main"):
        search = sweep()
        with Steps(name="main"):
            search()
            with pytest.raises(SweepError, match=r"best.params\['lrr'\]: .* it has lr, optim.model"):
                search.best.params["lrr"]
            with pytest.raises(SweepError, match=r"best\.model_uri needs register="):
                _ = search.best.model_uri
            with pytest.raises(SweepError, match="from 1 to 100, not 0"):
                search.top(0)


def test_an_answer_before_the_sweep_is_called_is_refused() -> None:
    with Workflow(generate_name="w-", entrypoint="main"):
        search = sweep()
        with Steps(name="main"), pytest.raises(SweepError, match="before a Steps or a DAG runs it: call the sweep"):
            _ = search.best


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ("", "register= is a model's name"),
        ("a/b", "register= is a model's name"),
        ("a:1", "register= is a model's name"),
        (3, "register= is a model's name"),
        ("vae@latest", "takes no alias 'latest'"),
        ("vae@v1", "takes no alias 'v1'"),
        ("vae@", "takes no alias ''"),
    ],
)
def test_a_model_that_the_registry_would_not_take_is_refused(given: object, wrong: str) -> None:
    with pytest.raises(SweepError, match=wrong):
        sweep(register=given)


@pytest.mark.parametrize("kind", [WorkflowTemplate, CronWorkflow])
def test_templates_and_cron_workflows_may_hold_sweeps_with_outputs(kind: type[Workflow]) -> None:
    settings: dict[str, Any] = {"schedules": ["0 3 * * *"]} if kind is CronWorkflow else {}
    with kind(name="w", entrypoint="main", **settings) as w:
        search, use = sweep(), later("all")
        with Steps(name="main"):
            search()
            use(arguments={"all": search.best.params})
    found = templates(w)
    assert found.keys() == {"search", "search-trial", "search-best", "later", "main"}
    # Argo fills in the uid of each workflow that it makes: two of them are two sweeps.
    assert "workflow.uid" in environment(found["search-best"])["SPECON_SWEEP_ID"]


def test_the_command_line_sends_the_last_step_to_the_image_and_the_mlflow_that_it_names() -> None:
    with Workflow(generate_name="w-", entrypoint="search") as w:
        sweep(answer=True)
    edited = edit_manifest(w.to_dict(), Overrides(image="mine:2", tracking_uri="http://here:5000"))
    (last,) = (t for t in edited["spec"]["templates"] if t["name"] == "search-best")
    assert last["script"]["image"] == "mine:2"
    assert environment(last)["MLFLOW_TRACKING_URI"] == "http://here:5000"


def test_a_large_sweep_leaves_its_hyperparameters_to_mlflow() -> None:
    with Workflow(generate_name="w-", entrypoint="search") as w:
        sweep(answer=True, trials=3000)
    assert environment(templates(w)["search-best"])["SPECON_POINTS"] == "[]"
