"""A sweep whose trials have several workers is one step per trial here, however many processes that will be."""

from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.worlds.local.workflow import UnsupportedWorkflowError, read_workflow
from hera_specon import Sweep, choice, minimize
from mlflow_hooks import contract
from tests.controllers.worlds.local.workflow.workflow_manifests import BAD, GOOD, Run


def manifest(**settings: Any) -> dict[str, Any]:  # noqa: ANN401 - as Sweep takes them
    given: dict[str, Any] = {"workers": (2, 3), "retries": 1, **settings}
    with Workflow(name="w", entrypoint="vae") as w:
        Sweep(
            name="vae", image="i", command=["python", "train.py"], space={"lr": choice(0.1, 0.2)}, search="grid",
            objective=minimize("loss"), **given,
        )  # fmt: skip
    found: dict[str, Any] = w.to_dict()
    return found


def of_trials(found: dict[str, Any]) -> dict[str, Any]:
    (template,) = (one for one in found["spec"]["templates"] if one["name"] == "vae-trial")
    return dict(template)


def test_each_trial_is_one_step_with_the_workers_and_hyperparameters_of_its_author() -> None:
    run = Run(read_workflow(manifest(), "w-x1", "uid", {}))
    first, second = run.now.pods
    assert [(step.workers, step.min_workers) for step in (first, second)] == [(3, 2)] * 2
    assert [step.env[contract.ENV_TRIAL_ID] for step in (first, second)] == ["uid.vae.t000", "uid.vae.t001"]
    assert [step.words(step.args) for step in (first, second)] == [("--lr=0.1",), ("--lr=0.2",)]
    attempt = first.attempt(2, 75)
    assert (attempt.environment[contract.ENV_WORKERS_MAX], "{{" in str(attempt)) == ("3", False)
    short = first.id.removeprefix("w-x1")
    assert run.end(short, BAD) == [second.id.removeprefix("w-x1")]
    run.end(second.id.removeprefix("w-x1"), GOOD)
    assert (run.now.finished, run.now.failed) == (True, True)


def test_a_gang_is_forgiven_as_many_failures_as_its_author_allows() -> None:
    for retries, allowed in ((0, [False]), (2, [True, True, False])):
        step = read_workflow(manifest(retries=retries), "w", "uid", {}).expand({}, ()).pods[0]
        assert step.retry is not None
        assert [step.retry.allows(failed, 76) for failed in range(1, len(allowed) + 1)] == allowed


def test_a_gang_of_a_fixed_size_needs_all_its_workers() -> None:
    planned = read_workflow(manifest(workers=4), "w", "uid", {}).trials()
    assert [(trial.step.workers, trial.step.min_workers) for trial in planned] == [(4, 4)] * 2


@pytest.mark.parametrize("what", ["count", "expression", "two"])
def test_another_step_with_retries_is_refused_by_name(what: str) -> None:
    found = manifest()
    template = of_trials(found)
    step = template["steps"][0][0]
    if what == "count":
        step["withSequence"]["count"] = "3"
    elif what == "expression":
        template["retryStrategy"]["expression"] = "true"
    else:
        template["steps"] = [[step, {**step, "name": "b"}]]
    found["spec"]["templates"] = [
        template if one["name"] == template["name"] else one for one in found["spec"]["templates"]
    ]
    with pytest.raises(UnsupportedWorkflowError, match="only a container or script can be retried here"):
        read_workflow(found, "w", "uid", {})


def test_a_worker_with_retries_of_its_own_is_refused() -> None:
    found = manifest()
    for template in found["spec"]["templates"]:
        if template["name"] == "vae-worker":
            template["retryStrategy"] = {"limit": "2"}
    with pytest.raises(UnsupportedWorkflowError, match="a gang is retried as a whole"):
        read_workflow(found, "w", "uid", {})
