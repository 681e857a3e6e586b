"""Where gated first attempts go: where their owner said, and never nowhere."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Place, Proposal
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies import Default, Guarded, Pinned, SpeCon
from controllers.policies.registry import policy_spec
from tests.controllers.policies.policy_fakes import node, snapshot, trial
from tests.controllers.policies.wrappers.test_stacked import Scripted, move, resize

A, B = TrialId("a"), TrialId("b")
NODES = (node("w1", 4.0), node("w2", 4.0))


def waiting(name: str, **changes: Any) -> Trial:  # noqa: ANN401 - fields of Trial
    return replace(trial(name), **{"phase": Phase.PENDING, "gated": True, "attempt": 0, "workers": 1, **changes})


def placed(pinned: Pinned, *trials: Trial, nodes: tuple[object, ...] = NODES) -> dict[str, str | None]:
    decision = pinned.decide(Snapshot(10.0, trials, nodes), pinned.initial())  # type: ignore[arg-type] # nodes as given
    return {p.action.trial: p.action.node for p in decision.proposals if isinstance(p.action, Place)}


def test_a_gated_trial_goes_to_the_node_it_is_pinned_to() -> None:
    assert placed(Pinned(policy=Default(), first_nodes={A: "w2"}), waiting("a")) == {"a": "w2"}


def test_a_gated_trial_that_nobody_pinned_is_left_to_the_default_scheduler() -> None:
    assert placed(Pinned(policy=Default(), first_nodes={B: "w2"}), waiting("a")) == {"a": None}


@pytest.mark.parametrize(
    "there",
    [(node("w1"),), (node("w1"), node("w2", ready=False)), (node("w1"), node("w2", 0.5))],
    ids=["gone", "not ready", "too small"],
)
def test_a_pin_that_cannot_be_kept_leaves_the_trial_to_the_default_scheduler(there: tuple[object, ...]) -> None:
    assert placed(Pinned(policy=Default(), first_nodes={A: "w2"}), waiting("a"), nodes=there) == {"a": None}


def test_a_pin_is_kept_though_the_node_is_full_for_now() -> None:
    full = trial("b", "w2", cpu=4.0)
    assert placed(Pinned(policy=Guarded(policy=Default()), first_nodes={A: "w2"}), waiting("a"), full) == {"a": "w2"}


def test_a_pin_goes_before_what_the_policy_within_wants_for_that_trial() -> None:
    within = Scripted((Proposal(Place(A, (NodeName("w1"),)), "mine"), Proposal(Place(B, (NodeName("w1"),)), "mine")))
    assert placed(Pinned(policy=within, first_nodes={A: "w2"}), waiting("a"), waiting("b")) == {"a": "w2", "b": "w1"}


def test_a_policy_that_places_trials_may_hold_back_those_that_nobody_pinned() -> None:
    class Admitting(Scripted):
        needs = frozenset({Place})

    assert placed(Pinned(policy=Admitting(), first_nodes={A: "w2"}), waiting("a"), waiting("b")) == {"a": "w2"}


def test_pins_are_by_the_id_that_is_the_same_in_every_run() -> None:
    pinned = Pinned(policy=Default(), first_nodes={"a": "w2"}, short=lambda name: name.removeprefix("uid."))
    assert placed(pinned, waiting("uid.a")) == {"uid.a": "w2"}


def test_the_reason_says_why_a_pin_was_not_kept() -> None:
    pinned = Pinned(policy=Default(), first_nodes={A: "w9"})
    decision = pinned.decide(snapshot(0.0, [waiting("a")], NODES), pinned.initial())
    assert decision.proposals[0].reason == "its first node 'w9' is not there"


def test_it_is_named_written_and_restored_as_the_policy_within() -> None:
    within = SpeCon(alpha=0.5)
    pinned = Pinned(policy=Guarded(policy=within), first_nodes={A: "w2"})
    assert (pinned.name, pinned.needs, policy_spec(pinned)) == ("specon", within.needs, "specon:alpha=0.5")
    assert pinned.initial() == Guarded(policy=within).initial()


names = st.sampled_from([f"t{number}" for number in range(6)])
any_trial = st.builds(
    lambda name, phase, gated, cpu: replace(waiting(name), phase=phase, gated=gated, cpu=cpu, base_cpu=cpu),
    names,
    st.sampled_from(Phase),
    st.booleans(),
    st.sampled_from([0.5, 2.0, 9.0]),
)
any_trials = st.lists(any_trial, unique_by=lambda t: t.id, max_size=6)
any_node = st.builds(
    lambda name, ready: node(name, 4.0, ready=ready), st.sampled_from(["w1", "w2", "w3"]), st.booleans()
)
any_nodes = st.lists(any_node, unique_by=lambda n: n.name, max_size=3)
pins = st.dictionaries(names, st.sampled_from(["w1", "w2", "w3", "elsewhere"]))
others = st.lists(
    st.builds(lambda name: resize(TrialId(name), 1.0), names) | names.map(lambda n: move(TrialId(n), "w1"))
)


@given(trials=any_trials, nodes=any_nodes, first=pins, wanted=others)
def test_every_waiting_trial_is_placed_once_on_a_node_that_takes_it_and_nothing_else_is_touched(
    trials: list[Trial], nodes: list[object], first: dict[str, str], wanted: list[Proposal]
) -> None:
    pinned = Pinned(policy=Scripted(tuple(wanted)), first_nodes=first)
    seen = snapshot(0.0, trials, nodes)  # type: ignore[arg-type] # nodes as drawn
    decision = pinned.decide(seen, pinned.initial())
    gated = {t.id: t for t in trials if t.waits}
    places = [p.action for p in decision.proposals if isinstance(p.action, Place)]
    ready = {n.name: n for n in seen.nodes if n.ready}
    assert sorted(place.trial for place in places) == sorted(gated)
    for place in places:
        if place.node is not None:
            assert place.node == first[place.trial]
            assert gated[place.trial].base_cpu <= ready[place.node].cpu
        elif first.get(place.trial) in ready and gated[place.trial].phase is Phase.PENDING:
            assert gated[place.trial].base_cpu > 4.0
    rest = [p for p in decision.proposals if not isinstance(p.action, Place)]
    assert rest == [p for p in wanted if p.action.trial not in gated]
