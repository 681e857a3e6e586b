from dataclasses import dataclass, field
from typing import ClassVar

from controllers.core.actions import Action, Assessment, Decision, Migrate, Proposal, Resize
from controllers.core.model import Category, NodeName, Snapshot, TrialId
from controllers.core.policy import dump_state, load_state
from controllers.policies import FlowCon, SpeCon, Stacked
from tests.controllers.policies.policy_fakes import moves, node, resizes, snapshot, trial

A, B = TrialId("a"), TrialId("b")


@dataclass(frozen=True)
class Scripted:
    """A policy that always wants the same, and counts how often it was asked."""

    proposals: tuple[Proposal, ...] = ()
    wake_at: float | None = None
    assessments: dict[TrialId, Assessment] = field(default_factory=dict)
    name: ClassVar[str] = "scripted"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Resize})

    @property
    def state_type(self) -> type[int]:
        return int

    def initial(self) -> int:
        return 0

    def decide(self, snapshot: Snapshot, state: int) -> Decision[int]:
        del snapshot
        return Decision(state + 1, self.proposals, self.wake_at, self.assessments)


def resize(name: TrialId, cpu: float) -> Proposal:
    return Proposal(Resize(name, cpu), "share")


def move(name: TrialId, *where: str) -> Proposal:
    return Proposal(Migrate(name, tuple(map(NodeName, where))), "move")


def decided(*policies: Scripted) -> Decision[tuple[int, ...]]:
    stack = Stacked(policies=policies)
    seen = snapshot(0.0, [trial("a", "w1"), trial("b", "w1")], [node("w1", 3.0), node("w2", 3.0)])
    return stack.decide(seen, stack.initial())


def test_names_and_needs_of_all_are_joined() -> None:
    stack = Stacked(policies=(SpeCon(), FlowCon()))
    assert stack.name == "specon+flowcon"
    assert stack.needs == {Migrate, Resize}


def test_every_policy_goes_on_with_its_own_state_through_json() -> None:
    stack = Stacked(policies=(Scripted(), SpeCon(), Scripted()))
    state = stack.decide(snapshot(0.0, [trial("a", "w1")], [node("w1")]), stack.initial()).state
    assert (state[0], state[2]) == (1, 1)
    assert load_state(stack, dump_state(stack, state)) == state


def test_a_move_wins_over_a_resize_of_the_same_trial_whatever_the_order() -> None:
    shares, moved = Scripted((resize(A, 0.5),)), Scripted((move(A, "w2"),))
    for decision in (decided(shares, moved), decided(moved, shares)):
        assert moves(decision) == [("a", "w2")]
        assert resizes(decision) == {}
        assert [proposal.action for proposal, _ in decision.vetoed] == [Resize(A, 0.5)]


def test_of_two_actions_of_a_kind_on_a_trial_the_first_policy_s_goes() -> None:
    assert resizes(decided(Scripted((resize(A, 0.5),)), Scripted((resize(A, 0.7),)))) == {"a": 0.5}


def test_a_growth_whose_paying_shrink_gives_way_to_a_move_is_left_out() -> None:
    decision = decided(Scripted((move(A, "w2"),)), Scripted((resize(A, 0.5), resize(B, 2.5))))
    assert resizes(decision) == {}
    assert "no room" in decision.vetoed[-1][1]


def test_the_earliest_wake_up_wins_and_none_is_no_wake_up() -> None:
    assert decided(Scripted(wake_at=9.0), Scripted(), Scripted(wake_at=3.0)).wake_at == 3.0
    assert decided(Scripted(), Scripted()).wake_at is None


def test_of_two_assessments_the_first_policy_s_counts() -> None:
    first, second = Assessment(Category.WATCHING, 0.1), Assessment(Category.CONVERGED, 0.2)
    both = decided(Scripted(assessments={A: first}), Scripted(assessments={A: second, B: second}))
    assert both.assessments == {A: first, B: second}


def test_each_reason_begins_with_the_policy_that_gives_it() -> None:
    decision = decided(Scripted((resize(A, 0.5),)), Scripted((resize(A, 0.7), move(B, "w2"))))
    assert {proposal.reason for proposal in decision.proposals} == {"scripted: share", "scripted: move"}
    assert [proposal.reason for proposal, _ in decision.vetoed] == ["scripted: share"]
