from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Action
from controllers.policies import Default, FlowCon, Guarded, SpeCon, Stacked
from controllers.policies.kit.settings import RULE_OF, PolicyParameterError, PolicySettings
from controllers.policies.registry import (
    POLICIES,
    PolicyOrderError,
    UnknownPolicyError,
    describe,
    parse_policy,
    policy_spec,
)
from tests.controllers.policies.wrappers.test_stacked import Scripted

NAMES = ", ".join(sorted(POLICIES))
unit = st.floats(0, 1, exclude_min=True, exclude_max=True)
seconds = st.floats(0, exclude_min=True, allow_infinity=False)
specons = st.builds(
    SpeCon,
    alpha=unit,
    interval=seconds,
    strict=st.booleans(),
    normalise=st.sampled_from(["range", "none"]),
    rebalance_when=st.sampled_from(["converged", "migrated"]),
)
flowcons = st.builds(FlowCon, alpha=unit, interval=seconds, beta=st.floats(1, allow_infinity=False))


def test_a_name_alone_is_the_policy_with_its_defaults() -> None:
    assert parse_policy("default") == Default()
    assert parse_policy(" specon ") == SpeCon(alpha=0.01, interval=30)


def test_parameters_follow_a_colon_and_policies_a_plus() -> None:
    both = parse_policy("specon:alpha=0.02, strict=false + flowcon:interval=2e+1,alpha=0.1")
    assert both == Stacked(policies=(SpeCon(alpha=0.02, strict=False), FlowCon(interval=20, alpha=0.1)))


@given(specons, flowcons)
def test_the_line_of_a_policy_reads_back_as_the_same_policy(specon: SpeCon, flowcon: FlowCon) -> None:
    for policy in (specon, flowcon, Stacked(policies=(specon, flowcon)), Default()):
        assert parse_policy(policy_spec(policy)) == policy


def test_the_line_leaves_defaults_out_and_guards_too() -> None:
    assert policy_spec(Guarded(policy=SpeCon(interval=15))) == "specon:interval=15"
    assert policy_spec(Stacked(policies=(SpeCon(), FlowCon()))) == "specon+flowcon"


def test_a_policy_without_a_name_here_has_no_line() -> None:
    with pytest.raises(UnknownPolicyError, match="Scripted"):
        policy_spec(Scripted())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("specn", f"unknown policy 'specn'; did you mean 'specon'? valid: {NAMES}"),
        ("", f"unknown policy ''; valid: {NAMES}"),
        ("specon+", f"unknown policy ''; valid: {NAMES}"),
        ("specon+specon", "policy 'specon' is named twice in 'specon+specon'"),
    ],
)
def test_a_name_that_is_not_valid_is_refused_with_those_that_are(spec: str, message: str) -> None:
    with pytest.raises(UnknownPolicyError) as caught:
        parse_policy(spec)
    assert str(caught.value) == message


@pytest.mark.parametrize("placing", ["dragon", "ahead", "specon+kais"])
def test_a_policy_that_suspends_comes_before_those_that_place(placing: str) -> None:
    earlier = placing.rpartition("+")[2]
    with pytest.raises(PolicyOrderError, match=f"{earlier} would start again what promote suspends; put promote first"):
        parse_policy(f"{placing}+promote:rungs=best")
    assert policy_spec(parse_policy(f"promote:rungs=best+{placing}")) == f"promote:rungs=best+{placing}"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("specon:alpha=2", "specon: alpha must be a number in (0, 1), got 2"),
        ("specon:alpha=nan", "specon: alpha must be a number in (0, 1), got nan"),
        ("flowcon:interval=soon", "flowcon: interval must be a number in (0, inf), got soon"),
        ("specon:strict=maybe", "specon: strict must be true or false, got maybe"),
        ("specon:normalise=some", "specon: normalise must be one of range, none, got some"),
        ("specon:alpha", "specon: 'alpha' has no value; write alpha=VALUE"),
        ("specon:alpha=1,alpha=2", "specon: alpha is given twice, as 1 and 2"),
        ("default:a=1", "default: no parameter 'a'; valid: none"),
        ("shortest-remaining:work=3", "shortest-remaining: no parameter 'work'; valid: none"),
    ],
)
def test_a_parameter_that_is_not_valid_is_refused_with_its_value(spec: str, message: str) -> None:
    with pytest.raises(PolicyParameterError) as caught:
        parse_policy(spec)
    assert str(caught.value) == message


def test_authors_get_the_same_errors_as_the_command_line() -> None:
    with pytest.raises(PolicyParameterError, match=r"alpha must be a number in \(0, 1\), got 2"):
        SpeCon(alpha=2)
    with pytest.raises(PolicyParameterError, match="no parameter 'alhpa'; did you mean 'alpha'"):
        SpeCon(alhpa=0.1)  # type: ignore[call-arg]  # the slip under test


def test_a_policy_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        SpeCon().alpha = 0.5


def test_every_policy_describes_itself_and_each_of_its_parameters() -> None:
    known = {info.name: info for info in describe()}
    assert sorted(known) == NAMES.split(", ")
    for info in known.values():
        assert info.summary
        assert info.source
        for parameter in info.parameters:
            assert parameter.description
            assert parameter.constraint.startswith(("a number", "one of", "true or"))
    assert dict(known["procon"].rules)["placement"].startswith("least remaining contention")
    assert dict(known["procon"].rules)["shares"] == "as requested"
    alpha = known["specon"].parameters[0]
    assert (alpha.name, alpha.default, alpha.constraint) == ("alpha", 0.01, "a number in (0, 1)")


def test_what_a_policy_is_made_of_is_said_for_every_kind_of_action_that_it_takes_and_no_other() -> None:
    assert set(RULE_OF) == set(get_args(Action))
    for policy in POLICIES.values():
        taken = {rule for action, (rule, _) in RULE_OF.items() if action in policy.needs}
        assert taken == {rule for rule, _ in RULE_OF.values() if getattr(policy, rule)}, policy.name


def test_bounds_of_either_kind_and_none_are_told_apart() -> None:
    class Odd(PolicySettings):
        name = "odd"
        free: float = 0.0

    assert [parameter.constraint for parameter in Odd.parameters()] == ["a number"]
    assert {p.name: p.constraint for p in FlowCon.parameters()}["min_change"] == "a number in [0, 1)"
