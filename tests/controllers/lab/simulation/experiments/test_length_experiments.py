"""The experiments whose lengths follow from hyperparameters: what is the same, what differs, what it is worth."""

import pytest

from controllers.core.model import TrialId
from controllers.lab.simulation.evaluation import ExperimentPlan, RunFigures, run_seed
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT
from controllers.worlds.simulated.workload import TrialSpec

NAMES = ("L1", "L1-blind", "L2", "L1-narrow", "L1-narrow-blind")


def trials(name: str, seed: int = 3) -> dict[TrialId, TrialSpec]:
    return {trial.id: trial for trial in EVERY_EXPERIMENT[name].workload(seed).trials}


def core_seconds(trial: TrialSpec) -> float:
    return trial.work_s * trial.speedup.max_cores


@pytest.mark.parametrize("name", NAMES)
def test_the_trials_of_a_seed_are_as_long_in_every_variant(name: str) -> None:
    assert trials(name).keys() == trials("L1").keys()
    for trial, other in zip(trials(name).values(), trials("L1").values(), strict=True):
        assert core_seconds(trial) == pytest.approx(core_seconds(other))
        assert len(trial.reports) == len(other.reports)


def test_lengths_follow_from_width_and_steps_but_for_some_noise() -> None:
    for trial in trials("L1").values():
        given = dict(trial.parameters)
        width, steps = given["width"], given["steps"]
        assert isinstance(width, float)
        assert len(trial.reports) == steps
        assert core_seconds(trial) == pytest.approx(len(trial.reports) * (width / 64) ** 1.5, rel=0.5)


def test_without_parameters_there_are_none_and_confused_they_are_those_of_others() -> None:
    assert all(trial.parameters == () for trial in trials("L1-blind").values())
    ours, others = ([trial.parameters for trial in trials(name).values()] for name in ("L1", "L2"))
    assert sorted(map(repr, ours)) == sorted(map(repr, others))
    assert ours != others


def ahead(name: str) -> RunFigures:
    return run_seed(ExperimentPlan(EVERY_EXPERIMENT[name], ("default", "ahead")), 2)[1]


@pytest.mark.slow
def test_ahead_wins_by_the_parameters_and_most_where_only_the_order_can_be_better() -> None:
    by_parameters, blind = ahead("L1"), ahead("L1-blind")
    assert by_parameters.mean_change < blind.mean_change - 0.03
    assert by_parameters.makespan_change < blind.makespan_change + 0.03
    by_parameters, blind = ahead("L1-narrow"), ahead("L1-narrow-blind")
    assert by_parameters.mean_change < blind.mean_change - 0.05
    assert by_parameters.makespan_change < blind.makespan_change - 0.05


@pytest.mark.slow
def test_parameters_that_explain_nothing_cost_nothing() -> None:
    confused, blind = ahead("L2"), ahead("L1-blind")
    assert confused.makespan_s == pytest.approx(blind.makespan_s, rel=0.03)
    assert confused.mean_completion_s == pytest.approx(blind.mean_completion_s, rel=0.03)
