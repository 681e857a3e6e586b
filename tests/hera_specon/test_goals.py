import math
from typing import Any

import pytest
from hera.workflows import Workflow

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.core.expressions import gates
from controllers.local_run.checks import check_sweep
from controllers.worlds.local.room import Machine
from controllers.worlds.local.workflow import read_workflow
from hera_specon import Deadline, SpeCon, Sweep, SweepError, Tradl, choice, every, minimize, uniform
from hera_specon.submission.edits import Overrides, edit_manifest


def manifest(**goals: Any) -> dict[str, Any]:  # noqa: ANN401 - settings of Sweep
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        Sweep(
            name="vae",
            image="trainer:1",
            command=["python"],
            space={"lr": uniform(0.1, 0.2)},
            trials=3,
            objective=minimize("loss"),
            **goals,
        )
    found: dict[str, Any] = w.to_dict()
    return found


def templates(**goals: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - settings of Sweep
    return {template["name"]: template for template in manifest(**goals)["spec"]["templates"]}


def notes(built: dict[str, dict[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = built["vae-trial"]["metadata"]["annotations"]
    return {name: value for name, value in found.items() if name not in BASIC}


BASIC = {
    labels.ANNOTATION_OBJECTIVE,
    labels.ANNOTATION_DIRECTION,
    labels.ANNOTATION_RETRIES,
    labels.ANNOTATION_DEFAULT_CPU,
    labels.ANNOTATION_SAFE_TO_EVICT,
}


def test_a_sweep_without_goals_has_no_annotation_of_one() -> None:
    assert notes(templates()) == {}


def test_goals_of_all_trials_are_annotations_in_seconds_and_units_of_the_objective() -> None:
    assert notes(templates(deadline="1h30m", target=0.25, seconds_per_step=2)) == {
        labels.ANNOTATION_DEADLINE: "5400",
        labels.ANNOTATION_TARGET: "0.25",
        labels.ANNOTATION_SECONDS_PER_STEP: "2",
    }


@pytest.mark.parametrize("arrivals", [None, every(10)], ids=["at once", "over time"])
def test_each_trial_may_have_a_deadline_of_its_own(arrivals: object) -> None:
    built = templates(deadline=["10m", 90, 120.5], arrivals=arrivals)
    assert notes(built) == {labels.ANNOTATION_DEADLINE: "{{inputs.parameters.goal-deadline}}"}
    ((step,),) = built["vae"]["steps"]
    assert [item["goal-deadline"] for item in step["withItems"]] == ["600", "90", "120.5"]
    assert {"name": "goal-deadline", "value": "{{item.goal-deadline}}"} in step["arguments"]["parameters"]
    assert {"name": "goal-deadline"} in built["vae-trial"]["inputs"]["parameters"]


def test_goals_are_drawn_anew_for_each_trial_and_again_for_the_same_seed() -> None:
    def drawn(**settings: Any) -> list[str]:  # noqa: ANN401 - settings of Sweep
        ((step,),) = templates(deadline=uniform(60, 600), target=choice(0.1, 0.2), **settings)["vae"]["steps"]
        return [item["goal-deadline"] for item in step["withItems"]]

    assert len(set(drawn())) == 3
    assert drawn() == drawn()
    assert drawn() != drawn(seed=1)


def test_a_hyperparameter_may_be_named_as_a_goal_is() -> None:
    with Workflow(generate_name="a-", entrypoint="a") as w:
        Sweep(
            name="a", image="i", command=["c"], space={"target": choice(1, 2)}, search="grid", target=[0.5, 0.6],
            objective=minimize("loss"),
        )  # fmt: skip
    sweep = w.to_dict()["spec"]["templates"][0]
    assert [(i["target"], i["goal-target"]) for i in sweep["steps"][0][0]["withItems"]] == [("1", "0.5"), ("2", "0.6")]


@pytest.mark.parametrize("value", [0, -60, "-5m", "0s", "yesterday", "", math.nan, math.inf, True, choice(60, 0)])
def test_a_deadline_that_is_past_at_submission_is_refused_with_its_value(value: object) -> None:
    shown = "0" if not isinstance(value, str | int | float) else repr(value)
    with pytest.raises(SweepError, match="deadline= is a time above 0") as caught:
        templates(deadline=value)
    assert str(caught.value).endswith(f"not {shown}")


@pytest.mark.parametrize(("setting", "value"), [("target", math.nan), ("target", "low"), ("seconds_per_step", -1)])
def test_other_goals_that_cannot_be_are_refused_too(setting: str, value: object) -> None:
    with pytest.raises(SweepError, match=f"{setting}= .*{value!r}"):
        templates(**{setting: value})


def test_a_list_must_have_a_goal_for_each_trial() -> None:
    with pytest.raises(SweepError, match="deadline= gives 2 values for 3 trials"):
        templates(deadline=[60, 70])


@pytest.mark.parametrize(
    ("policy", "setting"), [(Deadline(), "deadline"), ([SpeCon(), Tradl()], "target"), ("edf", "deadline")]
)
def test_a_policy_that_goes_by_a_goal_is_refused_without_it(policy: Any, setting: str) -> None:  # noqa: ANN401
    with pytest.raises(SweepError, match=f"needs {setting}=, which the sweep does not set"):
        templates(policy=policy)
    assert templates(policy=policy, **{setting: 5.0})


@pytest.mark.parametrize(("policy", "gate"), [(Deadline(), gates("vae", first=True)), (SpeCon(), gates("vae"))])
def test_first_attempts_are_gated_when_submitted_under_a_policy_that_places_them(policy: Any, gate: str) -> None:  # noqa: ANN401
    sent = edit_manifest(manifest(policy=policy, deadline=60), Overrides())
    (patch,) = [template["podSpecPatch"] for template in sent["spec"]["templates"] if "podSpecPatch" in template]
    assert gate in patch


def test_a_goal_that_cannot_be_is_refused_by_the_local_world_though_a_person_wrote_it() -> None:
    sent = manifest(deadline=60)
    for template in sent["spec"]["templates"]:
        if template["name"] == "vae-trial":
            template["metadata"]["annotations"][labels.ANNOTATION_DEADLINE] = "-60"
    program = read_workflow(sent, "vae", "uid", {})
    with pytest.raises(SpeconError, match=r"deadline must be a finite number above 0, not -60"):
        check_sweep(program, Machine({"node-1": 4.0}, 1e12), "vae.py")
