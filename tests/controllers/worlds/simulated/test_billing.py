"""What nodes cost: from when they were asked for until they were gone, and which trial had what part."""

import pytest

from controllers.core.model import NodeName, TrialId
from controllers.lab.simulation.run import SimulatedRun, simulate
from controllers.policies import Default
from controllers.worlds.simulated.billing import NodeMeter
from controllers.worlds.simulated.scaling import AutoscalerTiming, SpotMarket
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec, TrialSpec, Workload
from tests.controllers.worlds.simulated.workloads import trial

A, B = TrialId("a"), TrialId("b")
AN_HOUR = 3600.0


def run(trials: tuple[TrialSpec, ...], fixed: tuple[NodeSpec, ...] = (), *groups: NodeGroup) -> SimulatedRun:
    return simulate(
        Scenario(Workload(trials, fixed, groups=groups, scaling=AutoscalerTiming(idle_s=60.0)), Costs.free()), Default()
    )


def node(cpu: float, price: float | None, name: str = "n", memory: float = float("inf")) -> NodeSpec:
    return NodeSpec(NodeName(name), cpu, memory, price=price)


def test_a_node_that_is_always_there_is_paid_until_the_sweep_ends() -> None:
    bill = run((trial("a", 1800.0), trial("b", AN_HOUR)), (node(4.0, 2.0),)).bill
    assert bill.node_s == AN_HOUR
    assert bill.cost == pytest.approx(2.0)
    assert bill.trials == {A: pytest.approx(0.25), B: pytest.approx(0.5)}


def test_a_node_that_comes_and_goes_is_paid_from_the_request_until_it_is_gone() -> None:
    bill = run((trial("a", 100.0),), (), NodeGroup(node(1.0, 36.0), 3, boots_s=120.0)).bill
    assert bill.node_s == pytest.approx(120.0 + 100.0 + 60.0)
    assert bill.cost == pytest.approx(2.80)
    assert bill.trials == {A: pytest.approx(1.0)}


def test_a_node_that_its_provider_took_is_paid_until_then() -> None:
    market = SpotMarket(0.0, known_after_s=40.0, available=((60.0, 0),))
    group = NodeGroup(node(1.0, 36.0), 1, boots_s=20.0, spot=market)
    spare = node(1.0, None, "spare")
    bill = run((trial("a", 200.0), trial("b", 50.0)), (spare,), group).bill
    # Asked for at 10, taken at 60; the spare node is there until the end.
    assert bill.cost == pytest.approx(0.5)
    assert sum(bill.trials.values()) == pytest.approx(0.3)


def test_a_trial_pays_for_the_larger_of_its_parts_of_cores_and_memory() -> None:
    hungry = trial("a", AN_HOUR, cpu=1.0, memory=3.0)
    bill = run((hungry,), (node(4.0, 2.0, memory=4.0),)).bill
    assert bill.trials == {A: pytest.approx(1.5)}


def test_trials_together_pay_no_more_than_the_node() -> None:
    both = (trial("a", AN_HOUR, cpu=3.0, memory=1.0), trial("b", AN_HOUR, cpu=1.0, memory=3.0))
    bill = run(both, (node(4.0, 2.0, memory=4.0),)).bill
    assert bill.trials == {A: pytest.approx(1.0), B: pytest.approx(1.0)}


def test_where_no_node_has_a_price_there_are_hours_and_no_cost() -> None:
    bill = run((trial("a", 100.0),), (node(1.0, None),)).bill
    assert (bill.node_s, bill.cost, bill.trials) == (100.0, None, {})


def test_a_meter_counts_nothing_after_its_end() -> None:
    meter = NodeMeter("n", "", 3600.0, since=10.0)
    meter.count(20.0, {A: 0.5})
    meter.end(30.0)
    meter.count(40.0, {A: 1.0})
    meter.end(50.0)
    assert (meter.seconds(60.0), meter.cost(60.0), meter.held_s) == (20.0, 20.0, {A: 5.0})
