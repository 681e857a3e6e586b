"""How many cores a trial is taken to be able to use, by what it used and by what others did."""

from dataclasses import replace

import pytest

from controllers.core.model import Snapshot, TrialId
from controllers.policies.kit.measured_trials import MeasuredTrial
from controllers.policies.kit.most_cores import Most, Use, most_of_each
from controllers.policies.kit.work_left import SweepMeasurements, estimate_work, measure_sweep
from tests.controllers.policies.policy_fakes import node, progress, snapshot, trial


def expected(used: float, told: list[float]) -> float:
    """Return the most of a trial that used ``used`` cores, beside others that are known to use ``told`` at most."""
    others = {f"other-{number}": MeasuredTrial(most=most) for number, most in enumerate(told)}
    known = SweepMeasurements(
        {TrialId(name): memo for name, memo in {"new": MeasuredTrial(used=used), **others}.items()}
    )
    sight = snapshot(0.0, [trial(name, "n") for name in ("new", *others)], [node("n", 16.0)])
    return estimate_work(sight, known, 1.0)[TrialId("new")].most


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


def test_where_others_can_use_the_same_part_of_what_their_authors_asked_for_so_can_a_trial() -> None:
    told = [Use(2.0, 1.0, 1.0), Use(4.0, 2.1, 2.1), Use(8.0, 3.9, 3.9)]
    assert most_of_each([*told, Use(6.0, 1.0, None)], 16.0)[-1] == Most(3.0, 3.0)
    assert most_of_each([*told, Use(6.0, 5.0, None)], 16.0)[-1] == Most(5.0, 10.0)  # it was seen to use more
    assert most_of_each([*told[:2], Use(6.0, 1.0, None)], 16.0)[-1] == Most(1.55, 2.0)  # too few tell
    unlike = [*told[:2], Use(8.0, 8.0, 8.0)]
    assert most_of_each([*unlike, Use(6.0, 1.0, None)], 16.0)[-1] == Most(2.1, 2.1)


def test_requests_that_are_all_the_same_tell_nothing() -> None:
    told = [Use(1.0, 1.0, 1.0)] * 3
    assert most_of_each([*told, Use(2.0, 1.0, None)], 16.0)[-1] == Most(1.0, 2.0)


def told(requests: dict[str, float], used: float, seconds: float, reports: int = 1) -> float | None:
    """Return the most of trial ``a`` on a node of four cores, after ``reports`` of so many ``seconds`` each."""

    def look(now: float) -> Snapshot:
        trials = [trial(name, "n", cpu=cpu) for name, cpu in requests.items()]
        trials[0] = replace(trials[0], progress=progress(1.0, now, cpu=used * now))
        return snapshot(now, trials, [node("n", 4.0)])

    known = SweepMeasurements()
    for report in range(1 + reports):
        known = measure_sweep(look(100.0 + report * seconds), known)
    return known.trials[TrialId("a")].most


@pytest.mark.parametrize(
    ("used", "seconds", "reports", "most"),
    [
        (3.0, 1.0, 1, None),  # over a second, real trials seem to use a quarter less than they do
        (3.0, 10.0, 1, 3.0),
        (3.0, 1.0, 10, 3.0),  # the same seconds in many reports
        (1.0, 1.0, 1, 1.0),  # so little is no error of measuring
        (3.9, 100.0, 1, None),
    ],
)
def test_a_trial_that_leaves_cores_unused_for_long_enough_cannot_use_more(
    used: float, seconds: float, reports: int, most: float | None
) -> None:
    assert told({"a": 1.0}, used, seconds, reports) == (None if most is None else pytest.approx(most))


def test_a_small_share_of_a_node_shows_nothing_as_it_is_not_kept_to_exactly() -> None:
    assert told({"a": 0.1, "b": 1.9}, used=0.1, seconds=100.0) is None
    assert told({"a": 0.5, "b": 1.5}, used=0.1, seconds=100.0) == pytest.approx(0.1)


def test_a_trial_that_was_told_its_threads_is_offered_no_more_cores_until_it_uses_them() -> None:
    assert most_of_each([Use(1.0, 0.0, None, threads=1)], 16.0) == [Most(1.0, 1.0)]
    assert most_of_each([Use(1.0, 1.0, None, threads=1)], 16.0) == [Most(1.0, 1.0)]
    assert most_of_each([Use(1.0, 1.8, None, threads=1)], 16.0) == [Most(16.0, 16.0)]  # it has worker processes, too
    assert most_of_each([Use(1.0, 0.3, 0.3, threads=1)], 16.0) == [Most(0.3, 0.3)]
