import pytest

from controllers.lab.simulation.experiments import EVERY_EXPERIMENT
from controllers.lab.simulation.foreseen import PARTS, coverage, judged


@pytest.mark.parametrize("policy", ["default", "specon+flowcon", "ahead"])
def test_nine_of_ten_ranges_hold_what_comes_true_on_a_small_experiment(policy: str) -> None:
    found = [one for seed in range(3) for one in judged(EVERY_EXPERIMENT["S2"], policy, seed)]
    trials = coverage(range_ for one in found for range_ in one.trials)
    ends = coverage(one.end for one in found if one.end is not None)

    assert trials is not None
    assert ends is not None
    assert 0.8 <= trials.held <= 1.0
    assert 0.8 <= ends.held <= 1.0
    # Wide enough ranges would hold anything.
    assert trials.width < 1.5
    assert ends.width < 0.6


def test_where_all_lengths_are_known_and_nobody_acts_the_end_is_known_to_a_few_percent() -> None:
    late = [one.end for one in judged(EVERY_EXPERIMENT["S5"], "default", 0, PARTS[2:])]

    assert all(end is not None and end[0] and end[1] < 0.25 for end in late)


def test_the_coverage_of_nothing_is_none() -> None:
    assert coverage([]) is None
