"""How many workers a trial has."""

import re
from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core import labels
from hera_specon import Sweep, SweepError, choice, minimize
from mlflow_hooks import contract


def trial_of(workers: Any, **settings: Any) -> dict[str, Any]:  # noqa: ANN401 - authors pass what they like
    space = {"x": choice(1)}
    with Workflow(generate_name="a-", entrypoint="a", **settings) as w:
        Sweep(
            name="a",
            image="i",
            command=["c"],
            space=space,
            search="grid",
            objective=minimize("loss"),
            workers=workers,
        )
    trial: dict[str, Any] = next(t for t in w.to_dict()["spec"]["templates"] if "container" in t)
    return trial


def annotations(workers: Any) -> dict[str, str]:  # noqa: ANN401 - as above
    found: dict[str, str] = trial_of(workers)["metadata"]["annotations"]
    return found


def environment(workers: Any) -> dict[str, str]:  # noqa: ANN401 - as above
    return {one["name"]: one.get("value", "") for one in trial_of(workers)["container"]["env"]}


def test_a_gang_is_announced_on_its_pods_and_one_worker_is_not_mentioned() -> None:
    assert annotations(4)[labels.ANNOTATION_WORKERS] == "4"
    assert labels.ANNOTATION_WORKERS not in annotations(1)


def test_an_elastic_trial_says_the_least_and_the_most_of_its_workers() -> None:
    found = annotations((1, 4))
    assert (found[labels.ANNOTATION_MIN_WORKERS], found[labels.ANNOTATION_WORKERS]) == ("1", "4")
    assert labels.ANNOTATION_MIN_WORKERS not in annotations((4, 4))


def test_training_programs_are_told_how_many_workers_a_trial_may_have() -> None:
    assert environment((1, 4))[contract.ENV_WORKERS_MAX] == "4"
    assert contract.ENV_WORKERS_MAX not in environment(1)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "two", True, 65, (0, 2), (1, 65), (1, 2, 3), (1, "four")])
def test_a_number_of_workers_that_makes_no_sense_is_refused(workers: object) -> None:
    with pytest.raises(SweepError, match=re.escape(f"from 1 to 64, or two such as (1, 4), not {workers!r}")):
        annotations(workers)


def test_the_least_above_the_most_is_refused_with_the_right_order() -> None:
    with pytest.raises(SweepError, match=re.escape("as in (1, 4), not (4, 1)")):
        annotations((4, 1))


def test_a_workflow_that_limits_its_pods_runs_no_gangs() -> None:
    with pytest.raises(SweepError, match=re.escape("Workflow(parallelism=3) limits pods")):
        trial_of((1, 4), parallelism=3)
    assert trial_of(1, parallelism=3)
