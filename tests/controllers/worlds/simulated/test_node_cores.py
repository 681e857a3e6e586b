import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import NodeName
from controllers.lab.simulation.run import simulate
from controllers.policies import Default
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.node_run import fair_cores
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeSpec, Workload
from tests.controllers.worlds.simulated.workloads import trial

SLACK = 1e-6
amounts = st.floats(0.002, 64.0)
demands = st.lists(st.tuples(amounts, amounts), min_size=1, max_size=12)


def test_equal_weights_share_equally() -> None:
    assert fair_cores([1, 1, 1, 1], [4, 4, 4, 4], 2.0) == [0.5, 0.5, 0.5, 0.5]


def test_what_a_small_one_leaves_goes_to_the_others_by_weight() -> None:
    assert fair_cores([1, 1, 2], [0.5, 8, 8], 3.5) == [0.5, 1.0, 2.0]


def test_nobody_shares_nothing() -> None:
    assert fair_cores([], [], 4.0) == []


@given(demands, amounts)
def test_no_core_is_idle_that_somebody_could_use_and_none_is_given_twice(
    wants: list[tuple[float, float]], capacity: float
) -> None:
    given_cores = fair_cores([w for w, _ in wants], [cap for _, cap in wants], capacity)
    usable = min(capacity, sum(cap for _, cap in wants))
    assert sum(given_cores) == pytest.approx(usable)


@given(demands, amounts)
def test_nobody_gets_more_than_it_can_use(wants: list[tuple[float, float]], capacity: float) -> None:
    given_cores = fair_cores([w for w, _ in wants], [cap for _, cap in wants], capacity)
    assert all(0 <= cores <= cap + SLACK for cores, (_, cap) in zip(given_cores, wants, strict=True))


@given(demands, amounts)
def test_who_could_use_more_has_as_much_by_weight_as_anybody(wants: list[tuple[float, float]], capacity: float) -> None:
    """Nobody can gain without somebody whose weighted share is no greater losing."""
    given_cores = fair_cores([w for w, _ in wants], [cap for _, cap in wants], capacity)
    levels = [cores / weight for cores, (weight, _) in zip(given_cores, wants, strict=True)]
    for level, cores, (_, cap) in zip(levels, given_cores, wants, strict=True):
        if cores < cap * (1 - SLACK):
            assert level >= max(levels) * (1 - SLACK)


@given(demands, amounts, st.randoms(use_true_random=False))
def test_the_order_of_those_who_share_changes_nothing(
    wants: list[tuple[float, float]], capacity: float, chance: random.Random
) -> None:
    order = chance.sample(range(len(wants)), len(wants))
    straight = fair_cores([w for w, _ in wants], [cap for _, cap in wants], capacity)
    mixed = fair_cores([wants[i][0] for i in order], [wants[i][1] for i in order], capacity)
    assert mixed == pytest.approx([straight[i] for i in order])


def completions(node: NodeSpec, *works: float) -> list[float]:
    trials = tuple(trial(f"t{number}", work, cpu=0.1) for number, work in enumerate(works))
    result = simulate(Scenario(Workload(trials, (node,)), Costs.free()), Default()).result
    return [of.completed_s for of in result.trials]


def test_a_trial_gets_what_others_leave_of_its_node_and_all_of_it_later() -> None:
    # 10 s of all, 20 s of a half, then all again: 10 + 10 + 30 = 50 lone seconds.
    node = NodeSpec(NodeName("n"), 1.0, supply=((10.0, 0.5), (30.0, 1.0)))
    assert completions(node, 50.0) == pytest.approx([60.0])


def test_what_is_supplied_is_shared() -> None:
    node = NodeSpec(NodeName("n"), 1.0, supply=((0.0, 0.5),))
    assert completions(node, 10.0, 10.0) == pytest.approx([40.0, 40.0])


@pytest.mark.parametrize(
    "supply", [((0.0, 0.0),), ((0.0, 1.1),), ((5.0, 0.5), (5.0, 0.4)), ((float("nan"), 0.5),), ((0.0, float("nan")),)]
)
def test_a_supply_that_can_not_be_is_refused(supply: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(WorkloadError, match="node n: supply must rise in time"):
        NodeSpec(NodeName("n"), 1.0, supply=supply)
