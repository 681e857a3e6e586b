"""Where the simulated kube-scheduler puts what waits. The scores themselves are tested in tests/placement."""

from collections import Counter
from dataclasses import replace

import pytest

from controllers.lab.simulation.run import simulate
from controllers.policies import Default
from controllers.worlds.simulated.default_scheduler import nodes_to_find
from controllers.worlds.simulated.scenario import Scenario
from controllers.worlds.simulated.workload import Image
from tests.controllers.worlds.simulated.workloads import scenario, trial


@pytest.mark.parametrize(
    ("nodes", "found"), [(1, 1), (99, 99), (100, 100), (200, 100), (1000, 420), (5000, 500), (10_000, 500)]
)
def test_a_large_cluster_is_searched_in_part_as_kubernetes_documents(nodes: int, found: int) -> None:
    # 1000: 50 - 1000/125 = 42 %; 5000: 10 %; 10,000: not below 5 %.
    assert nodes_to_find(nodes) == found


def test_trials_spread_evenly_over_equal_nodes() -> None:
    many = scenario([trial(f"t{n:02}", cpu=0.5) for n in range(16)], [4.0] * 4)
    assert set(Counter(result.node for result in simulate(many, Default()).result.trials).values()) == {4}


def test_the_search_of_a_large_cluster_begins_where_it_last_ended() -> None:
    two = scenario([trial("a", cpu=0.5), trial("b", cpu=0.5, at=1)], [4.0] * 150)
    seen: list[set[int]] = [set(), set()]
    for seed in range(60):
        results = simulate(Scenario(two.workload, two.costs, seed), Default()).result.trials
        for numbers, result in zip(seen, results, strict=True):
            numbers.add(int(result.node.removeprefix("n")))
    assert max(seen[0]) <= 100
    assert seen[1] <= {*range(101, 151), *range(1, 51)}
    assert max(seen[1]) > 100


def test_the_seed_decides_between_nodes_that_score_the_same() -> None:
    small = scenario([trial("a")], [1.0] * 4)
    chosen = {
        simulate(Scenario(small.workload, small.costs, seed), Default()).result.trials[0].node for seed in range(30)
    }
    assert chosen == {"n1", "n2", "n3", "n4"}


def test_what_waits_is_tried_in_the_order_it_came() -> None:
    waiting = [trial("first", 10), *(trial(f"w{n}", 10, at=1 + n) for n in range(5))]
    results = simulate(scenario(waiting), Default()).result.trials
    assert [result.completed_s for result in results] == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]


def test_memory_keeps_a_trial_waiting_as_cpu_does() -> None:
    heavy = scenario([trial("a", cpu=0.1, memory=6e9), trial("b", cpu=0.1, memory=6e9)])
    nodes = tuple(type(node)(node.name, node.cpu, 8e9) for node in heavy.workload.nodes)
    results = simulate(
        Scenario(type(heavy.workload)(heavy.workload.trials, nodes), heavy.costs), Default()
    ).result.trials
    assert [result.completed_s for result in results] == [100.0, 200.0]


def test_a_node_pulls_the_image_once_and_everybody_there_waits_for_it() -> None:
    both = scenario([trial("a", cpu=0.5, limit=0.5), trial("b", cpu=0.5, limit=0.5, at=10)])
    pulled = replace(both, workload=replace(both.workload, image=Image(size=1e9, pull_s=30.0)))
    results = simulate(pulled, Default()).result.trials
    assert [result.completed_s for result in results] == [230.0, 230.0]


def test_a_large_image_draws_the_next_trial_to_the_node_that_has_it() -> None:
    pair = scenario([trial("a", 50), trial("b", 50, at=20)], [16.0, 16.0])
    image = Image(size=4e9, pull_s=10.0, containers=1)
    for seed in range(5):
        seeded = replace(pair, seed=seed)
        apart = simulate(seeded, Default()).result.trials
        together = simulate(replace(seeded, workload=replace(pair.workload, image=image)), Default()).result.trials
        assert apart[0].node != apart[1].node
        assert together[0].node == together[1].node


def test_trials_that_all_ask_for_something_else_are_placed_as_well() -> None:
    motley = scenario([trial(f"t{n:02}", cpu=0.01 * (n + 1)) for n in range(60)], [10.0] * 4)
    assert len(simulate(motley, Default()).result.trials) == 60
