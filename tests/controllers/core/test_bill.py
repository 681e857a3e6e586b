"""A sweep pays for the parts of nodes that its trials hold, and for what stands idle beside them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.bill import Bill, bill_after, with_costs
from controllers.core.devices import Devices
from controllers.core.model import Node, NodeName, Phase
from controllers.core.results import RunResult, TrialResult
from tests.controllers.policies.policy_fakes import trial

HOUR = 3600.0
DEAR = Node(NodeName("n1"), 4.0, price=8.0)
OTHER = Node(NodeName("n2"), 4.0, price=2.0)
UNPRICED = Node(NodeName("n3"), 4.0)


def test_a_trial_pays_for_its_part_of_the_cores_and_the_rest_is_idle() -> None:
    running = replace(trial("a", "n1"), cpu=1.0)
    bill = bill_after(HOUR, [running], [DEAR], bill_after(0.0, [running], [DEAR], Bill()))
    assert bill.trials == {"a": pytest.approx(2.0)}
    assert bill.idle == pytest.approx(6.0)
    assert bill.spent == pytest.approx(8.0)


def test_what_a_trial_holds_the_most_of_counts() -> None:
    gpus = Devices.of({"nvidia.com/gpu": 4})
    node = replace(DEAR, devices=gpus)
    running = replace(trial("a", "n1"), cpu=1.0, devices=Devices.of({"nvidia.com/gpu": 2}))
    bill = bill_after(HOUR, [running], [node], bill_after(0.0, [running], [node], Bill()))
    assert bill.trials == {"a": pytest.approx(4.0)}


def test_the_time_before_a_look_is_paid_by_what_was_there_then() -> None:
    before = bill_after(0.0, [replace(trial("a", "n1"), cpu=4.0)], [DEAR, OTHER], Bill())
    moved = bill_after(HOUR, [replace(trial("a", "n2"), cpu=4.0)], [DEAR, OTHER], before)
    ended = bill_after(2 * HOUR, [], [DEAR, OTHER], moved)
    assert ended.spent == pytest.approx(8.0 + 2.0)
    assert bill_after(9 * HOUR, [], [DEAR, OTHER], ended).spent == ended.spent


def test_nodes_without_a_trial_of_the_sweep_cost_it_nothing() -> None:
    bill = bill_after(0.0, [trial("a", "n2")], [DEAR, OTHER], Bill())
    assert bill_after(HOUR, [], [DEAR, OTHER], bill).spent == pytest.approx(2.0)


def test_without_prices_nothing_is_told() -> None:
    bill = bill_after(HOUR, [trial("a", "n3")], [UNPRICED], bill_after(0.0, [trial("a", "n3")], [UNPRICED], Bill()))
    assert bill.spent is None
    assert with_costs(RunResult("p", (_result("a"),)), bill, str).cost is None


def test_a_result_has_what_each_trial_cost_and_what_all_did() -> None:
    result = RunResult("p", (_result("a"), _result("b")))
    told = with_costs(result, Bill(trials={"uid.a": 3.0}, idle=0.5), lambda name: name.removeprefix("uid."))  # type: ignore[dict-item]
    assert [one.cost for one in told.trials] == [3.0, 0.0]
    assert told.cost == 3.5
    assert RunResult.from_dict(told.to_dict()).cost == 3.5


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["n1", "n2"]), st.floats(0.0, 9.0)), max_size=6))
def test_a_node_never_costs_more_than_its_price(trials: list[tuple[str, str, float]]) -> None:
    running = [replace(trial(f"{name}{number}", node), cpu=cpu) for number, (name, node, cpu) in enumerate(trials)]
    bill = bill_after(HOUR, [], [DEAR, OTHER], bill_after(0.0, running, [DEAR, OTHER], Bill()))
    used = {node for _, node, _ in trials}
    assert (bill.spent or 0.0) == pytest.approx(sum(node.price or 0.0 for node in (DEAR, OTHER) if node.name in used))


def test_a_trial_that_waits_pays_nothing() -> None:
    waiting = replace(trial("a"), phase=Phase.PENDING)
    assert bill_after(HOUR, [], [DEAR], bill_after(0.0, [waiting], [DEAR], Bill())).spent is None


def _result(name: str) -> TrialResult:
    return TrialResult(name, 0.0, 10.0, "n1", 0, 1, 0.5)
