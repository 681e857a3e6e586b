import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.devices import Devices
from controllers.worlds.kube_scheduler import BalanceRule, NodeLoad, PlacementError, choose, image_locality, scores

GIB = 1024.0**3


def node(
    name: str, cpu_requested: float, memory_requested: float, *, cpu: float = 4.0, memory: float = 10_000.0
) -> NodeLoad:
    return NodeLoad(name, cpu, memory, cpu_requested, memory_requested)


def test_even_use_of_equal_nodes_scores_as_kubernetes_works_it_out() -> None:
    # cpu: (4000-3000)*100/4000 = 25, memory: (10000-5000)*100/10000 = 50, LeastAllocated (25+50)/2 = 37;
    # shares 0.75 and 0.5, deviation 0.125, BalancedAllocation int(87.5) = 87.
    assert scores(3.0, 5000.0, [node("machine1", 0, 0)]) == {"machine1": 37 + 87}


def test_a_larger_node_is_scored_by_its_own_size() -> None:
    # cpu: (6000-3000)*100/6000 = 50, memory: 50; shares 0.5 and 0.5, so no deviation.
    assert scores(3.0, 5000.0, [node("machine2", 0, 0, cpu=6.0)]) == {"machine2": 50 + 100}


def test_what_pods_on_the_node_request_counts_with_the_new_pod() -> None:
    # cpu: (10000-6000)*100/10000 = 40, memory: (20000-10000)*100/20000 = 50, LeastAllocated 45;
    # shares 0.6 and 0.5, deviation 0.05, BalancedAllocation 95.
    assert scores(3.0, 5000.0, [node("a", 3.0, 5000.0, cpu=10.0, memory=20_000.0)]) == {"a": 45 + 95}


def test_a_pod_without_requests_counts_a_tenth_of_a_core_and_200_mib_and_its_balance_is_not_scored() -> None:
    # cpu: (1000-100)*100/1000 = 90, memory: (1000-200)*100/1000 = 80.
    assert scores(0.0, 0.0, [node("a", 0, 0, cpu=1.0, memory=1000.0 * 1024 * 1024)]) == {"a": 85}


def test_pods_without_requests_on_a_node_make_it_less_free() -> None:
    empty, busy = node("a", 0, 0, memory=4 * GIB), node("b", 0, 0, memory=4 * GIB)
    found = scores(0.0, 0.0, [empty, replace(busy, pods_without_cpu=4, pods_without_memory=4)])
    assert found["a"] > found["b"]


def test_from_1_36_a_pod_that_evens_out_a_node_is_welcome_and_one_that_unbalances_it_is_not() -> None:
    # LeastAllocated: cpu (4000-2010)*100/4000 = 49, memory 50, together 49; evenness 75, then 99: 50+(50+99-75)/2.
    uneven = node("uneven", 2.0, 0.0)
    # LeastAllocated: cpu (4000-10)*100/4000 = 99, memory 50, together 74; evenness 100, then 75: 50+(50+75-100)/2.
    even = node("even", 0.0, 0.0)
    assert scores(0.01, 5000.0, [uneven, even], BalanceRule.CHANGE) == {"uneven": 49 + 87, "even": 74 + 62}
    assert scores(0.01, 5000.0, [uneven, even], BalanceRule.RESULT) == {"uneven": 49 + 99, "even": 74 + 75}


def test_without_a_limit_of_memory_the_emptier_node_wins() -> None:
    loads = [NodeLoad("a", 2.0, float("inf"), 1.0, 0.0), NodeLoad("b", 2.0, float("inf"), 0.5, 0.0)]
    found = scores(0.5, 1e9, loads)
    assert found["b"] > found["a"]


def test_unready_and_full_nodes_are_left_out() -> None:
    loads = [replace(node("down", 0, 0), ready=False), node("full", 3.9, 0), node("free", 3.8, 0)]
    assert set(scores(0.2, 10.0, loads)) == {"free"}


def test_sums_of_shares_that_binary_fractions_miss_still_fit_exactly() -> None:
    assert set(scores(0.7, 0.0, [node("a", 0.1 + 0.2, 0, cpu=1.0)])) == {"a"}


@pytest.mark.parametrize("cpu", [-1.0, float("nan"), float("inf")])
def test_a_request_that_is_no_amount_is_refused(cpu: float) -> None:
    with pytest.raises(PlacementError, match=str(cpu)):
        scores(cpu, 0.0, [])


def test_ties_are_broken_by_the_generator_among_the_best_only() -> None:
    scored = {"c": 7, "a": 9, "b": 9}
    seen = {choose(scored, random.Random(seed).choice) for seed in range(20)}  # noqa: S311 - breaks ties, guards no secret
    assert seen == {"a", "b"}


def test_choosing_among_no_nodes_is_an_error() -> None:
    with pytest.raises(PlacementError, match="fits nowhere"):
        choose({}, lambda names: names[0])


amounts = st.integers(0, 64).map(lambda quarter: quarter / 4)
loads_of_nodes = st.lists(
    st.builds(
        NodeLoad,
        st.sampled_from(["a", "b", "c", "d", "e"]),
        amounts,
        amounts.map(lambda gib: gib * GIB),
        amounts,
        amounts.map(lambda gib: gib * GIB),
        st.booleans(),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    unique_by=lambda load: load.node,
)


@given(amounts, amounts.map(lambda gib: gib * GIB), loads_of_nodes, st.sampled_from(BalanceRule))
def test_a_pod_is_scored_on_exactly_the_ready_nodes_with_room(
    cpu: float, memory: float, loads: list[NodeLoad], balance: BalanceRule
) -> None:
    found = scores(cpu, memory, loads, balance)
    for load in loads:
        room = (cpu == 0 or load.cpu_requested + cpu <= load.cpu) and (
            memory == 0 or load.memory_requested + memory <= load.memory
        )
        assert (load.node in found) == (load.ready and room)
    assert all(0 <= score <= 200 for score in found.values())


@given(amounts, amounts, loads_of_nodes, st.randoms(use_true_random=False))
def test_the_order_of_nodes_changes_nothing(
    cpu: float, memory: float, loads: list[NodeLoad], chance: random.Random
) -> None:
    shuffled = chance.sample(loads, len(loads))
    assert scores(cpu, memory, loads) == scores(cpu, memory, shuffled)
    if found := scores(cpu, memory, loads):
        assert choose(found, min) == choose(dict(reversed(found.items())), min)


def test_an_image_counts_by_its_size_and_by_how_many_nodes_have_it() -> None:
    mib = 1024 * 1024
    # 250 MiB on 2 of 4 nodes count as 125: (125-23)*100/(1000-23) = 10.
    assert image_locality(250 * mib, 2, 4, 1) == 10
    assert image_locality(40 * mib, 1, 4, 1) == 0
    assert image_locality(5000 * mib, 4, 4, 1) == 100
    assert image_locality(1023 * mib, 1, 1, 3) == (1023 - 23) * 100 // (3000 - 23)


def test_the_points_of_an_image_are_added() -> None:
    plain = node("a", 0, 0)
    assert scores(1.0, 100.0, [replace(plain, image_points=7)])["a"] == scores(1.0, 100.0, [plain])["a"] + 7


def test_a_device_decides_where_a_pod_may_go_and_not_which_of_these_is_better() -> None:
    asked, two = Devices.of({"a/x": 1, "b/y": 1}), Devices.of({"a/x": 2, "b/y": 1})
    some = [
        replace(node("with", 1.0, 0.0), devices_free=two),
        replace(node("lacks-one", 0, 0), devices_free=asked - two),
    ]
    none = [node("without", 0, 0)]
    plain = scores(1.0, 100.0, [*some, *none])
    assert scores(1.0, 100.0, [*some, *none], pod_devices=asked) == {"with": plain["with"]}


def test_a_node_that_a_pod_may_not_use_is_not_scored() -> None:
    nodes = [node("a", 0, 0), node("b", 0, 0)]
    assert set(scores(1.0, 0.0, nodes, may_use={"b"})) == {"b"}
