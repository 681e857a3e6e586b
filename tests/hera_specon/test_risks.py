"""What a policy may cost is told, and only figures that were measured."""

import pytest
from hera.workflows import Workflow

from controllers.policies.registry import parse_policy
from hera_specon import tpe
from hera_specon.risks import MeasuredRisk, deaf_searches, policies_in, risks, rungs
from tests.hera_specon.built_sweeps import sweep


def test_only_policies_that_may_end_the_best_trial_have_a_risk() -> None:
    assert risks([parse_policy("promote"), parse_policy("ahead"), parse_policy("default")]) == []
    (told,) = risks([parse_policy("promote:rungs=best"), parse_policy("promote:rungs=best+ahead")])
    assert told.startswith("promote:rungs=best ends trials early")
    assert risks([parse_policy("optuna:pruner=median")])


def test_what_was_not_measured_is_said_to_be_so() -> None:
    (told,) = risks([parse_policy("promote:rungs=fast")], {})
    assert "is not measured" in told
    measured = {"promote:rungs=fast": MeasuredRisk(200, 0.07, 0.012, "docs/experiments/best-models.md")}
    (told,) = risks([parse_policy("promote:rungs=fast")], measured)
    assert "in 7 % of 200 simulated sweeps" in told
    assert "1.2 %" in told


def test_a_promise_is_told_as_what_it_is_and_not_as_what_was_measured() -> None:
    (told,) = risks([parse_policy("promote:finish=fast"), parse_policy("promote:finish=fast+ahead")])
    assert told.startswith("promote:finish=fast ends trials early")
    assert "in about 20 % of all sweeps, on average over kinds of training" in told
    (told,) = risks([parse_policy("promote:risk=0.1")])
    assert told.startswith("promote:risk=0.1 ends")
    (told,) = rungs([parse_policy("promote:finish=best")])
    assert told.startswith("promote:finish=best trains two trials to their end and the others to 8 %")


def test_the_rungs_of_a_policy_are_told_as_parts_of_the_training() -> None:
    assert rungs([parse_policy("ahead")]) == []
    (told,) = rungs([parse_policy("promote:rungs=best+ahead")])
    assert "after 16, 32, 64 % of their training" in told
    assert rungs(policies_in(["promote:rungs=fast", "a policy of a later version"])) != []


@pytest.mark.parametrize("settings", [{"search": tpe()}, {}])
@pytest.mark.parametrize("policy", ["promote+ahead", "ahead"])
def test_whoever_joins_a_search_and_promote_is_told_that_the_search_learns_nothing(
    settings: dict[str, object], policy: str
) -> None:
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(**settings)
    told = deaf_searches(w.to_dict(), [parse_policy(policy)])
    assert len(told) == (settings != {} and policy.startswith("promote"))
    assert all("of vae before" in line for line in told)
