"""A sweep takes the fewest nodes that end it in time, or as many as its budget pays."""

from functools import partial

import pytest

from controllers.core.means import NO_MEANS, Means
from controllers.core.model import NodeName
from controllers.driving.assembly import guard_policy
from controllers.lab.simulation.run import SimulatedRun, simulate
from controllers.policies import Ahead, Fifo
from controllers.policies.kit.outlays import EMPTY_S, Fleet, Outlay, best, outlay, outlays
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec, TrialSpec, Workload
from tests.controllers.worlds.simulated.workloads import trial

PRICE = 3.6
TRIALS, LENGTH = 24, 600.0
FLEET = Fleet(places=2, here=0, boots_s=100.0, price=PRICE)


def ran(means: Means, policy: Ahead | Fifo | None = None) -> SimulatedRun:
    """Return a sweep of 24 trials of ten minutes, two to a node, from no node at all."""
    trials: list[TrialSpec] = [trial(f"t{number:02}", work_s=LENGTH) for number in range(TRIALS)]
    group = NodeGroup(NodeSpec(NodeName("big"), 2.0, price=PRICE), most=12, boots_s=100.0)
    scenario = Scenario(Workload(tuple(trials), (), groups=(group,)), Costs.free())
    return simulate(scenario, policy or Ahead(), guard=partial(guard_policy, means=means))


def nodes_used(run: SimulatedRun) -> int:
    return len({event.node for event in run.timeline if event.node})


def test_a_sweep_with_much_time_takes_few_nodes_and_ends_in_time() -> None:
    run = ran(Means(by_s=6000.0))
    assert run.result.makespan_s <= 6000.0
    assert nodes_used(run) <= 3


def test_a_sweep_with_little_time_takes_more() -> None:
    run = ran(Means(by_s=2600.0))
    assert run.result.makespan_s <= 2600.0
    assert nodes_used(run) > nodes_used(ran(Means(by_s=6000.0)))


def test_fewer_nodes_cost_less_than_all_that_can_come() -> None:
    thrifty, whole = ran(Means(by_s=6000.0)), ran(NO_MEANS)
    assert nodes_used(whole) == 12
    assert (thrifty.bill.cost or 0.0) < (whole.bill.cost or 0.0)


def test_a_budget_is_kept_and_a_greater_one_ends_the_sweep_sooner() -> None:
    small, great = ran(Means(budget=8.5)), ran(Means(budget=20.0))
    assert (small.bill.cost or 0.0) <= 8.5
    assert (great.bill.cost or 0.0) <= 20.0
    assert great.result.makespan_s < small.result.makespan_s


def test_the_budget_counts_where_both_cannot_be_kept() -> None:
    run = ran(Means(by_s=1000.0, budget=8.5))
    assert run.result.makespan_s > 1000.0
    assert (run.bill.cost or 0.0) <= 8.5


def test_any_policy_that_gives_places_keeps_to_it() -> None:
    assert ran(Means(by_s=6000.0), Fifo()).result.makespan_s <= 6000.0


@pytest.mark.parametrize(("nodes", "seconds"), [(1, 100 + 6 * 60), (2, 100 + 3 * 60), (6, 160), (9, 160)])
def test_an_outlay_is_that_of_the_longest_first(nodes: int, seconds: float) -> None:
    assert outlay([60.0] * 12, nodes, FLEET).seconds == seconds


def test_nodes_that_are_not_needed_cost_nothing() -> None:
    assert outlay([60.0] * 2, 5, FLEET).cost == pytest.approx((160 + EMPTY_S) * PRICE / 3600)


def test_nodes_that_are_there_need_no_boot() -> None:
    here = Fleet(places=2, here=1, boots_s=100.0, price=PRICE)
    assert outlay([60.0] * 2, 1, here).seconds == 60


def test_free_places_are_used_first_and_cost_nothing() -> None:
    free = Fleet(places=2, here=0, boots_s=100.0, price=PRICE, free_places=2)
    assert outlay([60.0] * 2, 3, free) == Outlay(3, 60.0, 0.0)


def test_with_a_time_the_cheapest_that_is_in_time_is_best_and_where_none_is_the_soonest() -> None:
    seen = outlays([60.0] * 12, 1, 12, FLEET)
    assert best(seen, 300.0, None).nodes == 2
    assert best(seen, 10.0, None) == best(seen, None, None)


def test_with_a_budget_the_soonest_that_it_pays_is_best_and_where_it_pays_none_the_cheapest() -> None:
    seen = outlays([60.0] * 12, 1, 12, FLEET)
    assert best(seen, None, 1e6).nodes == 6
    assert best(seen, None, 1e-6).cost == min(one.cost for one in seen)


def test_of_many_nodes_only_some_numbers_are_looked_at_and_the_greatest() -> None:
    seen = outlays([60.0] * 4, 1, 200, FLEET)
    assert len(seen) < 70
    assert [one.nodes for one in seen][:3] == [1, 2, 3]
    assert seen[-1].nodes == 200
