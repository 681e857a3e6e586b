import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.record.measures import utilisation_variance
from controllers.record.timeline import EventKind, TimelineEvent


def submitted(trial: str, at: float = 0.0) -> TimelineEvent:
    return TimelineEvent(at, EventKind.PHASE, trial, phase="pending")


def used(trial: str, until: float, node: str, cores: float) -> TimelineEvent:
    return TimelineEvent(until, EventKind.USAGE, trial, node=node, value=cores)


def test_nodes_that_are_used_alike_do_not_vary() -> None:
    timeline = [submitted("a"), submitted("b"), used("a", 10.0, "x", 2.0), used("b", 10.0, "y", 4.0)]
    assert utilisation_variance(timeline, {"x": 4.0, "y": 8.0}) == pytest.approx(0.0)


def test_an_idle_node_beside_a_busy_one_varies_by_a_quarter() -> None:
    assert utilisation_variance([submitted("a"), used("a", 10.0, "x", 4.0)], {"x": 4.0, "y": 4.0}) == 0.25


def test_what_varies_for_half_of_the_time_counts_half() -> None:
    timeline = [submitted("a"), used("a", 10.0, "x", 4.0), submitted("b", 10.0)]
    timeline += [used("a", 20.0, "x", 4.0), used("b", 20.0, "y", 4.0)]
    assert utilisation_variance(timeline, {"x": 4.0, "y": 4.0}) == pytest.approx(0.125)


def test_a_trial_that_moves_is_counted_where_it_was() -> None:
    timeline = [submitted("a"), used("a", 10.0, "x", 4.0), used("a", 20.0, "y", 4.0)]
    assert utilisation_variance(timeline, {"x": 4.0, "y": 4.0}) == pytest.approx(0.25)


def test_trials_of_one_node_add_up() -> None:
    timeline = [submitted("a"), submitted("b"), used("a", 10.0, "x", 2.0), used("b", 10.0, "x", 2.0)]
    assert utilisation_variance(timeline, {"x": 4.0, "y": 4.0}) == pytest.approx(0.25)


def test_nothing_that_happened_does_not_vary() -> None:
    assert utilisation_variance([], {"x": 1.0}) == 0.0
    assert utilisation_variance([submitted("a")], {"x": 1.0}) == 0.0


@given(st.lists(st.tuples(st.floats(0.1, 10), st.sampled_from("xy"), st.floats(0, 4)), min_size=1, max_size=8))
def test_one_trial_on_equal_nodes_varies_no_more_than_if_it_used_one_of_them_wholly(
    stays: list[tuple[float, str, float]],
) -> None:
    at, timeline = 0.0, [submitted("a")]
    for seconds, node, cores in stays:
        at += seconds
        timeline.append(used("a", at, node, cores))
    assert -1e-9 <= utilisation_variance(timeline, {"x": 4.0, "y": 4.0}) <= 0.25 + 1e-9
