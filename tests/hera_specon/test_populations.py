"""A sweep under the policy ``population`` is refused where its trials cannot go on from each other's checkpoints."""

from typing import Any

import pytest
from hera.workflows import Workflow

from hera_specon import Population, Sweep, SweepError, integer, log_uniform, minimize, printed, sampler

GIVEN: dict[str, Any] = {
    "name": "net",
    "image": "trainer",
    "command": ["python", "train.py"],
    "space": {"lr": log_uniform(1e-4, 1.0), "width": integer(8, 64)},
    "search": sampler("random"),
    "trials": 4,
    "objective": minimize("loss"),
    "policy": Population(),
}


def build(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - settings of a sweep
    with Workflow(generate_name="net-", entrypoint="net") as w:
        Sweep(**{**GIVEN, **changes})
    made: dict[str, Any] = w.to_dict()
    return made


def test_its_trials_are_told_from_whose_checkpoint_they_go_on() -> None:
    (trial,) = (one for one in build()["spec"]["templates"] if one["name"] == "net-trial")
    (variable,) = (one for one in trial["container"]["env"] if one["name"] == "SPECON_LINEAGE")
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.annotations['hera-specon.io/lineage']"
    assert trial["metadata"]["annotations"]["hera-specon.io/policy"] == "population"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"search": "random"}, "so a search has to give them"),
        ({"state": "s3://bucket/prefix"}, "leave state= out"),
        ({"metrics": printed()}, "needs programs with the hooks"),
        ({"policy": Population(change="rate")}, "no hyperparameter 'rate'"),
        ({"workers": 2, "image": "trainer"}, "no trials of several workers"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SweepError, match=words):
        build(**changes)
