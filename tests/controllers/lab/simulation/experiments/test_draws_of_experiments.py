"""What our own experiments draw follows from the seed alone, in whichever process."""

import pickle

import pytest

from controllers.lab.simulation.experiments.everyday import EVERYDAY_EXPERIMENTS
from controllers.lab.simulation.experiments.experiment import OwnExperiment
from controllers.lab.simulation.experiments.many_nodes import MANY_NODES_EXPERIMENTS


@pytest.mark.parametrize("setup", [*EVERYDAY_EXPERIMENTS, *MANY_NODES_EXPERIMENTS], ids=lambda setup: setup.id)
def test_a_seed_draws_the_same_workload_everywhere_and_another_seed_another(setup: OwnExperiment) -> None:
    elsewhere = pickle.loads(pickle.dumps(setup))  # noqa: S301 - ours: as it goes to other processes
    assert elsewhere.workload(5) == setup.workload(5)
    assert setup.workload(6).trials != setup.workload(5).trials
