"""What owners ask of their trials goes before what policies want, and only as long as they ask."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from controllers.core.actions import Action, Decision, Migrate, Place, Proposal, Stop, Suspend
from controllers.core.asks import MOST_WRITTEN, AsksInText, asks_in, asks_written
from controllers.core.model import Ask, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.core.policy import Policy
from controllers.policies import Default, Guarded, Managed, Pinned
from controllers.policies.kit.settings import NoState
from controllers.policies.wrappers.managed import BY_OWNER, FOR_OTHERS
from tests.controllers.policies.policy_fakes import node, snapshot, trial

A, B = TrialId("a"), TrialId("b")


@dataclass(frozen=True)
class Busybody:
    """Places every trial that waits, and moves every other one."""

    name: ClassVar[str] = "busybody"
    needs: ClassVar[frozenset[type[Action]]] = frozenset({Place, Migrate})
    state_type: ClassVar[type[NoState]] = NoState

    def initial(self) -> NoState:
        return NoState()

    def decide(self, seen: Snapshot, state: NoState) -> Decision[NoState]:
        places = [Proposal(Place(one.id), "it waits") for one in seen.unended if one.waits]
        moves = [Proposal(Migrate(one.id, (NodeName("w2"),)), "why not") for one in seen.unended if one.steady]
        return Decision(state, (*places, *moves))


def wanted(*trials: Trial, policy: Policy[Any] | None = None, **asked: Ask) -> list[Action]:
    nodes = (node("w1"), node("w2"))
    seen = replace(snapshot(60.0, trials, nodes), asked={TrialId(name): ask for name, ask in asked.items()})
    managed = Managed(policy=policy or Busybody())
    return [one.action for one in managed.decide(seen, managed.initial()).proposals]


def suspended(name: str) -> Trial:
    return trial(name, phase=Phase.SUSPENDED, gated=True, suspensions=1)


def test_where_nobody_asks_the_policy_decides() -> None:
    assert wanted(trial("a", "w1"), suspended("b")) == [Place(B), Migrate(A, (NodeName("w2"),))]


def test_a_trial_that_is_to_pause_is_suspended_whatever_the_policy_wants_and_gets_no_place() -> None:
    assert wanted(trial("a", "w1"), a=Ask.PAUSE) == [Suspend(A)]
    assert wanted(suspended("a"), suspended("b"), a=Ask.PAUSE) == [Place(B)]
    leaving = replace(trial("a", "w1"), phase=Phase.SUSPENDING)
    assert wanted(leaving, a=Ask.PAUSE) == []


def test_a_trial_that_is_to_stop_is_stopped_where_it_runs_and_where_it_waits() -> None:
    assert wanted(trial("a", "w1"), suspended("b"), a=Ask.STOP, b=Ask.STOP) == [Stop(A, BY_OWNER), Stop(B, BY_OWNER)]
    moving = replace(trial("a", "w1"), phase=Phase.MOVING)
    assert wanted(moving, a=Ask.STOP) == []


def test_a_trial_that_may_go_on_gets_a_place_under_a_policy_that_places_none() -> None:
    policy = Pinned(policy=Guarded(policy=Default()))
    assert wanted(suspended("a"), policy=policy, a=Ask.PAUSE) == []
    assert wanted(suspended("a"), policy=policy) == [Place(A)]


def test_it_goes_by_the_name_and_the_needs_of_the_policy_within() -> None:
    managed = Managed(policy=Busybody())
    assert (managed.name, managed.needs) == ("busybody", Busybody.needs)


def test_asks_are_read_back_as_they_were_written() -> None:
    asks = {"vae.t007": Ask.STOP, "vae.t001": Ask.PAUSE}
    assert asks_in(asks_written(asks)) == asks


def test_text_that_makes_no_sense_asks_for_nothing() -> None:
    for text in ("", "{", "[1]", '"pause"', "[" * 100_000, " " * (MOST_WRITTEN + 1), '{"a": 1e999, "b": ["stop"]}'):
        assert asks_in(text) == {}
    assert asks_in('{"a": "pause", "b": "explode"}') == {"a": Ask.PAUSE}


def test_the_newest_text_counts() -> None:
    asks = AsksInText()
    asks.take('{"a": "stop"}')
    assert asks.asked() == {"a": Ask.STOP}
    asks.take("")
    assert asks.asked() == {}


def test_a_trial_that_is_to_yield_is_suspended_for_others_and_waits() -> None:
    seen = replace(
        snapshot(60.0, (trial("a", "w1"), suspended("b")), (node("w1"),)), asked={A: Ask.YIELD, B: Ask.YIELD}
    )
    managed = Managed(policy=Busybody())
    assert managed.decide(seen, managed.initial()).proposals == (Proposal(Suspend(A), FOR_OTHERS),)


def test_nobody_but_the_arbiter_asks_a_trial_to_yield() -> None:
    assert asks_in('{"a": "yield", "b": "pause"}') == {"b": Ask.PAUSE}
