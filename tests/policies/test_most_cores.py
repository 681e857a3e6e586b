"""How many cores a trial is taken to be able to use, while it has used all that it was given."""

import pytest

from controllers.core.model import TrialId
from controllers.policies.kit.work_left import Measured, MeasuredTrial, estimated
from tests.policies.policy_fakes import node, snapshot, trial


def expected(used: float, told: list[float]) -> float:
    """Return the most of a trial that used ``used`` cores, beside others that are known to use ``told`` at most."""
    others = {f"other-{number}": MeasuredTrial(most=most) for number, most in enumerate(told)}
    known = Measured({TrialId(name): memo for name, memo in {"new": MeasuredTrial(used=used), **others}.items()})
    sight = snapshot(0.0, [trial(name, "n") for name in ("new", *others)], [node("n", 16.0)])
    return estimated(sight, known, 1.0)[TrialId("new")].most


@pytest.mark.parametrize(
    ("used", "most"),
    [
        (0.0, 4.0),  # it has told nothing: the median of all
        (3.0, 6.0),  # those of two cores are no longer like it
        (4.2, 6.0),  # four may be what it can use, as measurements err
        (5.0, 8.0),
        (9.0, 9.0),  # none of the others could use as many
    ],
)
def test_a_trial_is_taken_for_one_of_those_that_can_use_as_many_cores_as_it_did(used: float, most: float) -> None:
    assert expected(used, [2.0, 8.0, 2.0, 4.0, 8.0, 4.0]) == most


def test_before_any_trial_left_cores_unused_each_may_use_the_largest_node() -> None:
    assert expected(3.0, []) == 16.0
