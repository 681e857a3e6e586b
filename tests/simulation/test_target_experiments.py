"""What the experiments with targets are there to show, on one seed."""

from controllers.policies import Default, DQoES, Tradl
from controllers.simulation.target_experiments import TRIALS, satisfied_trials, time_to_target


def test_trials_reach_their_targets_sooner_where_those_past_theirs_make_room() -> None:
    assert time_to_target(Tradl(), 0) < 0.8 * time_to_target(Default(), 0)


def test_more_trials_have_the_time_per_step_they_asked_for_where_shares_follow_it() -> None:
    _, even = satisfied_trials(Default(), 0)
    _, asked = satisfied_trials(DQoES(), 0)
    assert even < asked <= TRIALS
