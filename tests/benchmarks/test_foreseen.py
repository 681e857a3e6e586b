import pytest

from benchmarks.foreseen import PARTS, coverage, judge
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("policy", ["default", "specon+flowcon", "ahead"])
def test_nine_of_ten_ranges_hold_what_comes_true_on_a_small_experiment(policy: str) -> None:
    found = [one for seed in range(3) for one in judge(EVERY_EXPERIMENT["S2"], policy, seed)]
    trials = coverage(range_ for one in found for range_ in one.trials)
    ends = coverage(one.end for one in found if one.end is not None)

    assert trials is not None
    assert ends is not None
    assert 0.8 <= trials.held <= 1.0
    assert 0.8 <= ends.held <= 1.0
    # Wide enough ranges would hold anything.
    assert trials.width < 1.5
    assert ends.width < 0.6


def test_where_all_lengths_are_known_and_nobody_acts_the_end_is_known_to_about_a_tenth_to_either_side() -> None:
    late = coverage(
        one.end
        for seed in range(4)
        for one in judge(EVERY_EXPERIMENT["S5"], "default", seed, PARTS[2:])
        if one.end is not None
    )

    assert late is not None
    assert late.told == 8
    assert late.held >= 0.8
    assert late.width < 0.3


def test_the_coverage_of_nothing_is_none() -> None:
    assert coverage([]) is None
