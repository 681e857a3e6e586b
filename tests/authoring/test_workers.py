"""How many workers a trial has."""

from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core import labels
from hera_specon import Sweep, SweepError, choice, minimize


def annotations(workers: Any) -> dict[str, str]:  # noqa: ANN401 - authors pass what they like
    space = {"x": choice(1)}
    with Workflow(generate_name="a-", entrypoint="a") as w:
        Sweep(
            name="a",
            image="i",
            command=["c"],
            space=space,
            search="grid",
            objective=minimize("loss"),
            workers=workers,
        )
    trial = next(t for t in w.to_dict()["spec"]["templates"] if t["name"] == "a-trial")
    found: dict[str, str] = trial["metadata"]["annotations"]
    return found


def test_a_gang_is_announced_on_its_pods_and_one_worker_is_not_mentioned() -> None:
    assert annotations(4)[labels.ANNOTATION_WORKERS] == "4"
    assert labels.ANNOTATION_WORKERS not in annotations(1)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "two"])
def test_a_number_of_workers_that_makes_no_sense_is_refused(workers: object) -> None:
    with pytest.raises(SweepError, match=str(workers)):
        annotations(workers)
