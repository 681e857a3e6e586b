"""Sweeps of more than a thousand trials hold these in another form, and whatever reads a workflow reads both."""

import json
from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core.labels import INPUT_DELAY, INPUT_TRIAL
from controllers.core.model import TrialId
from controllers.worlds.argo.reading.planned import item_keys, planned_trials
from controllers.worlds.argo.reading.workflows import record_of
from controllers.worlds.local.workflow import read_workflow
from hera_specon import every, tpe
from hera_specon.errors import SubmissionError
from hera_specon.points import points
from hera_specon.submission.extending import extend_manifest
from hera_specon.submission.resuming import continue_manifest
from mlflow_hooks.contract import ENV_PARAMS
from tests.hera_specon.built_sweeps import SPACE, sweep

LARGE = 1001
UID = "uid-old"


def manifest(trials: int, **settings: Any) -> dict[str, Any]:  # noqa: ANN401
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(trials=trials, **settings)
    return {**json.loads(json.dumps(w.to_dict())), "metadata": {"name": "vae-old", "namespace": "lab", "uid": UID}}


def fan_out(document: dict[str, Any]) -> dict[str, Any]:
    (template,) = [one for one in document["spec"]["templates"] if one["name"] == "vae"]
    ((step,),) = template["steps"]
    assert isinstance(step, dict)
    return step


def inputs(document: dict[str, Any]) -> list[dict[str, Any]]:
    """What each trial gets, by the name of its input."""
    keys = item_keys(fan_out(document))
    names = {key: name for name, key in keys.items()}
    return [{names[key]: value for key, value in item.items()} for item in fan_out(document).get("withItems", ())]


def test_up_to_a_thousand_trials_people_can_read_each() -> None:
    assert set(fan_out(manifest(1000))["withItems"][0]) == {"trial", "lr", "activation", "hidden"}


def test_a_large_sweep_does_not_repeat_the_names_of_its_hyperparameters_for_each_trial() -> None:
    step = fan_out(manifest(LARGE))
    assert set(step["withItems"][0]) == {"0", "1", "2", "3"}
    given = {one["name"]: one["value"] for one in step["arguments"]["parameters"]}
    assert given == {"trial": "{{item.0}}", "lr": "{{item.1}}", "activation": "{{item.2}}", "hidden": "{{item.3}}"}


@pytest.mark.parametrize("settings", [{}, {"arrivals": every(5)}, {"deadline": [60.0] * LARGE}])
def test_the_trials_of_a_large_sweep_get_their_own_hyperparameters(settings: dict[str, Any]) -> None:
    program = read_workflow(manifest(LARGE, **settings), name="vae-abc", uid="u1", parameters={})
    trained = [json.loads(trial.step.environment[ENV_PARAMS]) for trial in program.trials()]
    assert trained == list(points(SPACE, "random", LARGE, 0))


@pytest.mark.parametrize(("trials", "second"), [(3, "t001"), (LARGE, "t0001")])
def test_what_a_workflow_plans_is_read_off_either_form(trials: int, second: str) -> None:
    planned = planned_trials(manifest(trials, arrivals=every(5)), ["u1.vae"], {})
    assert len(planned) == trials
    assert (planned[1].id, planned[1].at) == (f"u1.vae.{second}", 5.0)


def test_a_large_sweep_is_given_more_trials() -> None:
    before, after = manifest(LARGE), manifest(LARGE + 2)
    record = record_of(before)
    assert record is not None

    assert inputs(extend_manifest(after, before, record)) == inputs(after)[LARGE:]
    with pytest.raises(SubmissionError, match=r"trial vae\.t0000 of workflow 'vae-old' is another one in the file"):
        extend_manifest(manifest(LARGE + 2, seed=1), before, record)


def test_the_first_new_trial_of_a_large_sweep_does_not_wait() -> None:
    before, after = (manifest(trials, arrivals=every(5)) for trials in (LARGE, LARGE + 2))
    record = record_of(before)
    assert record is not None
    assert [one[INPUT_DELAY] for one in inputs(extend_manifest(after, before, record))] == ["0s", "5s"]


def test_trials_of_a_large_sweep_go_on() -> None:
    before = manifest(LARGE)
    record = record_of(before)
    assert record is not None
    assert inputs(continue_manifest(before, record, {"vae.t0007"}.__contains__, {})) == [inputs(before)[7]]


def test_trials_of_a_large_search_go_on_with_what_it_gave_them() -> None:
    before = manifest(LARGE, search=tpe())
    record = record_of(before)
    assert record is not None
    point: dict[str, float | str] = {"lr": 0.01, "activation": "relu", "hidden": 40}
    found = {TrialId(f"{UID}.vae.t0007"): tuple(point.items())}

    made = continue_manifest(before, record, {"vae.t0007"}.__contains__, found)

    (given,) = inputs(made)
    assert given == {INPUT_TRIAL: "t0007", "params": point, "lr": "0.01", "activation": "relu", "hidden": "40"}
