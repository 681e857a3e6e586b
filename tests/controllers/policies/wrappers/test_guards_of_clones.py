"""The guards and clones: only a suspended trial becomes one, of another trial of its sweep that has not failed."""

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from controllers.core.actions import Action, Clone, Decision, Place, Proposal
from controllers.core.model import Phase, Snapshot, TrialId
from controllers.policies import Guarded
from controllers.policies.kit.settings import NoState
from tests.controllers.policies.policy_fakes import node, snapshot, trial

WAITS = trial("a", phase=Phase.SUSPENDED, gated=True)
PARENT = trial("b", "x")


class Wants:
    """A policy that wants the same actions each time."""

    name: ClassVar[str] = "wants"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Clone, Place})
    state_type: ClassVar[type[NoState]] = NoState

    def __init__(self, *actions: Action) -> None:
        self.actions = actions

    def initial(self) -> NoState:
        return NoState()

    def decide(self, _snapshot: Snapshot, state: NoState) -> Decision[NoState]:
        return Decision(state, tuple(Proposal(action, "so") for action in self.actions))


def passed(*actions: Action, a: Any = WAITS, b: Any = PARENT) -> list[Action]:  # noqa: ANN401 - trials
    guards = Guarded(policy=Wants(*actions))
    decision = guards.decide(snapshot(1.0, (a, b), (node("x"),)), guards.initial())
    return [one.action for one in decision.proposals]


CLONE = Clone(TrialId("a"), TrialId("b"))


def test_a_suspended_trial_becomes_a_clone_of_one_that_runs_or_waits_too() -> None:
    assert passed(CLONE) == [CLONE]
    assert passed(CLONE, b=replace(WAITS, id=TrialId("b"))) == [CLONE]


def test_it_is_placed_at_a_later_look() -> None:
    assert passed(CLONE, Place(TrialId("a"))) == [CLONE]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (trial("a", "x"), PARENT),
        (trial("a", phase=Phase.PENDING, gated=True), PARENT),
        (replace(WAITS, max_workers=2), PARENT),
        (WAITS, replace(PARENT, sweep="other")),
        (WAITS, replace(PARENT, phase=Phase.FAILED, nodes=())),
        (WAITS, trial("c", "x")),
    ],
    ids=["runs", "has not begun", "gang", "other sweep", "failed parent", "no parent"],
)
def test_any_other_is_held_back(a: Any, b: Any) -> None:  # noqa: ANN401 - trials
    assert passed(CLONE, a=a, b=b) == []


def test_nobody_is_its_own_parent() -> None:
    assert passed(Clone(TrialId("a"), TrialId("a"))) == []
