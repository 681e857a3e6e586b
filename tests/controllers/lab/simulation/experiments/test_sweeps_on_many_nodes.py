"""Sweeps on many nodes are what their titles say, and ``ahead`` is worth choosing there, too."""

import pytest

from controllers.lab.simulation.evaluation import ExperimentPlan, run_seed
from controllers.lab.simulation.experiments import experiment_named
from controllers.lab.simulation.experiments.experiment import OwnExperiment
from controllers.lab.simulation.experiments.many_nodes import MANY_NODES_EXPERIMENTS, NODE_SIZES, USABLE

every_sweep = pytest.mark.parametrize("setup", MANY_NODES_EXPERIMENTS, ids=lambda setup: setup.id)


def test_they_are_known_by_name() -> None:
    assert [setup.id for setup in MANY_NODES_EXPERIMENTS] == ["N1", "N2", "N3", "N4"]
    assert experiment_named("n3") is MANY_NODES_EXPERIMENTS[2]


@every_sweep
def test_there_are_four_trials_for_each_of_the_nodes_that_the_title_names(setup: OwnExperiment) -> None:
    drawn = setup.workload(3)
    assert f"{len(drawn.nodes)} nodes" in setup.title
    assert len(drawn.trials) == 4 * len(drawn.nodes)
    assert {node.cpu for node in drawn.nodes} == (set(NODE_SIZES) if setup.id in {"N2", "N3"} else {16.0})
    assert {trial.speedup.max_cores for trial in drawn.trials} == ({16.0} if setup.id == "N1" else set(USABLE))


@pytest.mark.slow
def test_ahead_looks_at_large_nodes_though_many_small_ones_are_idle() -> None:
    # Among the first nodes with room all were small once: the mean was 9 % worse than the default scheduler's.
    (unlike,) = (setup for setup in MANY_NODES_EXPERIMENTS if setup.id == "N2")
    ours = run_seed(ExperimentPlan(unlike, ("default", "ahead")), 3)[1]
    assert ours.mean_change < 0.01
    assert ours.makespan_change < 0.01
