"""Sweeps on nodes that come and go: what they are, and what is told of them."""

import pytest

from controllers.lab.simulation.evaluation import ExperimentPlan, run_seed
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT
from controllers.lab.simulation.experiments.elastic_experiments import CORES, PRICE, ElasticSweep
from controllers.lab.simulation.experiments.experiment import given_workload
from controllers.lab.simulation.run import simulate
from controllers.policies import Default
from controllers.worlds.simulated.scaling import SpotMarket
from controllers.worlds.simulated.scenario import Scenario


@pytest.mark.parametrize("name", ["Z1", "Z2", "Z3", "Z4", "Y1", "Y2", "Y3"])
def test_all_nodes_come_from_one_group_and_the_draw_is_that_of_the_seed(name: str) -> None:
    workload = EVERY_EXPERIMENT[name].workload(3)
    assert workload == EVERY_EXPERIMENT[name].workload(3) != EVERY_EXPERIMENT[name].workload(4)
    assert workload.nodes == ()
    assert [(group.least, group.most) for group in workload.groups] == [(0, 5)]
    assert {trial.cpu for trial in workload.trials} == {1.0}


def test_a_sweep_from_zero_tells_its_node_hours_and_its_cost_beside_the_makespan() -> None:
    figures = run_seed(ExperimentPlan(EVERY_EXPERIMENT["Z1"], ("default", "fifo")), 1)[0]
    hours, cost = figures.measures["node_hours"], figures.measures["cost"]
    assert hours is not None
    assert cost == pytest.approx(hours * PRICE)
    # Five nodes for the longest trial at most, and one of them until it ends.
    assert figures.makespan_s / 3600 < hours < 5 * (figures.makespan_s + 200) / 3600
    assert figures.measures["cost_change"] is None
    held = figures.measures["cost_held"]
    assert held is not None
    assert 0.1 < held < 1.0


def test_nodes_that_stay_cost_more_than_those_that_go_when_nothing_is_left_to_do() -> None:
    elastic, static = (ElasticSweep(40, 5, fixed=fixed).workload(2) for fixed in (False, True))
    assert sum(node.cpu for node in static.nodes) == 5 * CORES
    costs = [simulate(Scenario(workload), Default()).bill.cost or 0.0 for workload in (elastic, static)]
    assert 0 < costs[0] < costs[1]


def test_notice_that_is_heeded_saves_what_is_lost_without() -> None:
    lost = {}
    for drains in (True, False):
        sweep = ElasticSweep(40, 5, spot=SpotMarket(120.0, drains=drains, mean_life_s=3600.0))
        run = simulate(Scenario(sweep.workload(0), seed=0), Default())
        assert run.taken > 0
        lost[drains] = run.lost_work_s
    assert lost[True] == 0.0 < lost[False]


def test_a_workload_of_ones_own_has_costs_if_its_nodes_have_prices() -> None:
    measures = given_workload("mine", ElasticSweep(5, 1).workload(0)).measures
    assert [measure.name for measure in measures] == [
        "node_hours",
        "cost",
        "cost_change",
        "cost_per_trial",
        "cost_held",
    ]
    assert given_workload("mine", EVERY_EXPERIMENT["F1"].workload(0)).measures == ()
