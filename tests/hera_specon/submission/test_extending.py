"""A workflow for the trials that a sweep was given later, as a part of the same sweep."""

from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core.labels import INPUT_DELAY, INPUT_TRIAL, PARAMETER_CONTINUE
from controllers.worlds.argo.reading.workflows import record_of
from hera_specon import every, tpe
from hera_specon.errors import SubmissionError
from hera_specon.submission.extending import extend_manifest
from hera_specon.submission.resuming import continue_manifest
from tests.hera_specon.built_sweeps import sweep


def manifest(*sweeps: dict[str, Any]) -> dict[str, Any]:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        for settings in sweeps or ({},):
            sweep(**settings)
    return {**w.to_dict(), "metadata": {"name": "vae-old", "namespace": "lab", "uid": "uid-old"}}


def extend(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    record = record_of(before)
    assert record is not None
    return extend_manifest(after, before, record)


def steps(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The step that starts the trials of each sweep."""
    found = {template["name"]: template for template in document["spec"]["templates"]}
    fans = (name.removesuffix("-trial") for name in found if name.endswith("-trial"))
    return {name: found[name]["steps"][0][0] for name in fans}


def test_only_the_new_trials_are_left_and_belong_to_the_sweep_before() -> None:
    before, after = manifest({"trials": 3}), manifest({"trials": 5})

    made = extend(after, before)

    assert steps(made)["vae"]["withItems"] == steps(after)["vae"]["withItems"][3:]
    assert [item[INPUT_TRIAL] for item in steps(made)["vae"]["withItems"]] == ["t003", "t004"]
    given = {one["name"]: one["value"] for one in made["spec"]["arguments"]["parameters"]}
    assert given[PARAMETER_CONTINUE] == "uid-old"
    assert len(steps(after)["vae"]["withItems"]) == 5, "the manifest that was given is left as it was"


def test_the_first_new_trial_does_not_wait_for_those_that_are_trained() -> None:
    after, before = (manifest({"trials": trials, "arrivals": every(15)}) for trials in (5, 3))
    made = extend(after, before)

    assert [item[INPUT_DELAY] for item in steps(made)["vae"]["withItems"]] == ["0s", "15s"]


def test_a_sweep_without_new_trials_beside_one_with_some_starts_none() -> None:
    beside = {"name": "gru"}
    made = extend(manifest({"trials": 4}, beside), manifest({"trials": 3}, beside))

    assert "withItems" not in steps(made)["gru"]
    assert steps(made)["gru"]["withParam"] == "[]", "Argo runs a step with an empty withItems once"
    assert len(steps(made)["vae"]["withItems"]) == 1


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({}, {}, "has all trials of the file already"),
        ({"trials": 3}, {"trials": 4, "seed": 7}, "trial vae.t000 of workflow 'vae-old' is another one in the file"),
        ({"trials": 4}, {"trials": 3}, "trial vae.t003 of workflow 'vae-old' is another one in the file"),
        (
            {"trials": 3, "search": tpe()},
            {"trials": 4, "search": tpe()},
            "a search in a new workflow would know nothing of the trials before",
        ),
    ],
)
def test_what_is_no_extension_is_refused(before: dict[str, Any], after: dict[str, Any], why: str) -> None:
    with pytest.raises(SubmissionError, match=why):
        extend(manifest(after), manifest(before))


def test_a_sweep_of_which_no_trial_goes_on_starts_none_in_the_workflow_that_continues() -> None:
    before = manifest({"trials": 3}, {"name": "gru"})
    record = record_of(before)
    assert record is not None

    made = continue_manifest(before, record, {"vae.t001"}.__contains__, {})

    assert [item[INPUT_TRIAL] for item in steps(made)["vae"]["withItems"]] == ["t001"]
    assert steps(made)["gru"]["withParam"] == "[]"
