"""What the pages make of the thesis: its assumptions, one changed at a time, and its Fig. 6.25 trial by trial."""

import pytest

from benchmarks.experiments.changed_assumptions import SPECON_CHANGED_ASSUMPTIONS, ChangedAssumption
from benchmarks.experiments.reconstruction import completions, fig_6_25, reconstruct
from controllers.lab.simulation.evaluation import run_plans
from controllers.lab.simulation.experiments.published import EXPERIMENTS
from controllers.lab.simulation.run import simulate
from controllers.policies import Default
from controllers.worlds.simulated.scenario import Scenario


@pytest.mark.parametrize("change", SPECON_CHANGED_ASSUMPTIONS, ids=lambda change: change.title)
def test_every_changed_assumption_can_be_run(change: ChangedAssumption) -> None:
    assert len(run_plans([change.plan(EXPERIMENTS["S4"], "specon")], [0], lambda _: None, processes=1)) == 2


def test_figure_6_25_has_the_means_that_the_thesis_gives() -> None:
    pairs = fig_6_25()
    assert [pair.job for pair in pairs] == list(range(1, 51))
    assert sum(pair.default_s for pair in pairs) / 50 == pytest.approx(596.3, abs=0.05)
    assert sum(pair.specon_s for pair in pairs) / 50 == pytest.approx(553.0, abs=0.05)
    assert sum(pair.specon_s < pair.default_s for pair in pairs) == 30


def test_the_default_run_of_the_reconstructed_trials_is_the_published_column() -> None:
    made = reconstruct(4)
    assert made.miss < 0.02
    scenario = Scenario(made.experiment.workload(4), made.experiment.costs, 4, made.pinned)
    found = completions(simulate(scenario, Default()).result)
    assert found == pytest.approx([pair.default_s for pair in fig_6_25()], rel=0.02)
