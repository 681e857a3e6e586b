import pytest

from controllers.lab.simulation.experiments.figure_6_25 import completions, fig_6_25, reconstructed
from controllers.lab.simulation.run import simulate
from controllers.policies import Default
from controllers.worlds.simulated.scenario import Scenario


def test_the_default_run_of_the_reconstructed_trials_is_the_published_column() -> None:
    made = reconstructed(4)
    assert made.miss < 0.02
    scenario = Scenario(made.experiment.workload(4), made.experiment.costs, 4, made.pinned)
    found = completions(simulate(scenario, Default()).result)
    assert found == pytest.approx([pair.default_s for pair in fig_6_25()], rel=0.02)
