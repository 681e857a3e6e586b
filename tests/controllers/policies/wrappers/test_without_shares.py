"""Policies where no share can be changed: what goes without, what is refused, and what is held back."""

import pytest

from controllers.core.actions import ACTION_KINDS, Migrate, Proposal, Resize
from controllers.core.errors import SpeconError
from controllers.core.model import NodeName, TrialId
from controllers.driving.assembly import check_policy, goes_without_shares
from controllers.policies import WithoutShares
from controllers.policies.registry import parse_policy
from tests.controllers.policies.policy_fakes import node, snapshot, trial
from tests.controllers.policies.wrappers.test_stacked import Scripted

A, B = TrialId("a"), TrialId("b")
NO_SHARES = frozenset(ACTION_KINDS) - {Resize}
OLD = "the API server of Kubernetes 1.32.9 has no pods/resize: upgrade it to 1.33 or newer"


@pytest.mark.parametrize("spec", ["flowcon", "tradl", "dqoes", "flowcon+tradl"])
def test_a_policy_that_changes_shares_only_is_refused_by_name_with_what_to_do(spec: str) -> None:
    with pytest.raises(SpeconError, match="needs Resize, which the Argo world cannot do here") as refused:
        check_policy(parse_policy(spec), NO_SHARES, "Argo", OLD)
    assert spec.split("+", maxsplit=1)[0] in str(refused.value)
    assert OLD in str(refused.value)
    assert "specon policies" in str(refused.value)


@pytest.mark.parametrize("spec", ["ahead", "deadline", "gandiva", "procon+flowcon+cbalancer"])
def test_a_policy_that_does_more_goes_without(spec: str) -> None:
    policy = parse_policy(spec)
    check_policy(policy, NO_SHARES, "Argo", OLD)
    assert goes_without_shares(policy, NO_SHARES)
    assert not goes_without_shares(policy, frozenset(ACTION_KINDS))


@pytest.mark.parametrize("spec", ["specon", "default", "flowcon"])
def test_nothing_goes_without_what_it_has_or_never_wanted(spec: str) -> None:
    assert not goes_without_shares(parse_policy(spec), frozenset(ACTION_KINDS))
    assert not goes_without_shares(parse_policy(spec), NO_SHARES)


def test_another_action_that_is_missing_still_refuses_a_policy() -> None:
    with pytest.raises(SpeconError, match="needs Migrate, Resize"):
        check_policy(parse_policy("gandiva"), frozenset(), "Argo")


def test_its_resizes_come_back_with_the_reason_and_all_else_is_let_through() -> None:
    shares, move = Proposal(Resize(A, 2.0), "more"), Proposal(Migrate(B, (NodeName("w2"),)), "away")
    policy = WithoutShares(policy=Scripted((shares, move)), why=OLD)
    decided = policy.decide(snapshot(0.0, [trial("a", "w1"), trial("b", "w1")], [node("w1", 3.0)]), policy.initial())
    assert decided.proposals == (move,)
    assert decided.vetoed == ((shares, OLD),)
    assert decided.state == 1
    assert Resize not in policy.needs
