import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.forecast.guesses import Deck, LengthGuesses, LengthsBeyond, Like, Mosts, Stops, normal, uniform

DRAWS = 61
CHANCES = [(place + 0.5) / 600 for place in range(600)]


@given(st.text())
def test_every_name_has_the_same_numbers_in_an_order_of_its_own(name: str) -> None:
    assert sorted(uniform(name, DRAWS)) == sorted(uniform("another", DRAWS))
    assert uniform(name, DRAWS) == uniform(name, DRAWS)
    assert statistics.fmean(normal(name, DRAWS)) == pytest.approx(0.0, abs=1e-9)


def test_numbers_of_different_names_are_in_different_orders() -> None:
    assert uniform("a", DRAWS) != uniform("b", DRAWS)


def test_a_value_is_drawn_as_often_as_it_was_seen_among_those_that_are_greater() -> None:
    deck = Deck([(1.0, True), (2.0, True), (2.0, True), (4.0, True)])
    drawn = [deck.drawn(1.5, chance)[0] for chance in CHANCES]

    assert {value: drawn.count(value) / len(drawn) for value in set(drawn)} == pytest.approx({2.0: 2 / 3, 4.0: 1 / 3})


def test_a_bound_passes_its_chance_on_to_those_above_it() -> None:
    deck = Deck([(1.0, True), (2.0, False), (3.0, True), (4.0, True)])
    drawn = [deck.drawn(0.0, chance)[0] for chance in CHANCES]

    # Kaplan and Meier: a quarter at 1, then the rest is shared by 3 and 4.
    assert {value: drawn.count(value) / len(drawn) for value in set(drawn)} == pytest.approx(
        {1.0: 1 / 4, 3.0: 3 / 8, 4.0: 3 / 8}, abs=0.01
    )


def test_beyond_all_that_was_seen_nothing_but_the_bound_is_told() -> None:
    assert Deck([(1.0, True)]).drawn(2.0, 0.5) == (2.0, 0.5)
    assert Deck([(3.0, False)]).drawn(2.0, 0.5) == (3.0, 0.5)


def lengths(totals: list[float]) -> list[float]:
    return sorted(total for _, total in LengthGuesses(totals, DRAWS).drawn("trial"))


def test_trials_of_one_length_are_taken_for_of_about_that_length_the_more_so_the_more_there_are() -> None:
    few, many = lengths([100.0] * 2), lengths([100.0] * 20)

    assert statistics.median(few) == pytest.approx(100.0, rel=0.1)
    assert few[-4] / few[3] > many[-4] / many[3] > 1.0


@pytest.mark.parametrize("totals", [[1e-300, 1e10], [1e-300, 1e300], [1e-300] * 9 + [1e300] * 2])
def test_lengths_that_make_no_sense_leave_what_is_drawn_finite(totals: list[float]) -> None:
    assert 0 < lengths(totals)[-1] < math.inf


def test_a_trial_may_be_longer_than_all_that_were_seen_the_more_so_the_more_these_differ() -> None:
    alike, unlike = lengths([90.0, 100.0, 110.0] * 4), lengths([10.0, 100.0, 1000.0] * 4)

    assert 110.0 < alike[-1] < 200.0
    assert unlike[-1] > 2000.0


def beyond(totals: list[float], running: list[float], done: float) -> list[float]:
    return sorted(LengthsBeyond(totals, running, DRAWS).drawn("trial", done))


def test_a_trial_is_longer_than_what_it_has_done() -> None:
    assert min(beyond([100.0, 200.0, 400.0], [150.0], 150.0)) >= 150.0
    assert min(beyond([100.0] * 9, [1e9], 1e9)) >= 1e9


def test_a_trial_that_runs_is_taken_for_of_about_the_one_length_that_all_have() -> None:
    found = beyond([200.0] * 9, [50.0], 50.0)

    assert statistics.median(found) == pytest.approx(200.0, rel=0.05)
    assert found[-4] / found[3] < 2.0


def test_trials_that_run_on_without_a_total_make_others_longer() -> None:
    few, many = beyond([100.0] * 3, [10.0], 10.0), beyond([100.0] * 3, [10.0, *[300.0] * 9], 10.0)

    assert statistics.median(many) > 2 * statistics.median(few)


def test_hundreds_of_trials_that_run_on_count_as_much_as_if_each_were_looked_at() -> None:
    some, hundreds = beyond([100.0] * 3, [300.0] * 20, 10.0), beyond([100.0] * 3, [300.0] * 400, 10.0)

    assert statistics.median(hundreds) > statistics.median(some)


def test_of_trials_that_stop_early_the_others_have_less_left() -> None:
    stops = Stops([0.5, 0.5, 1.0, 1.0], [])

    assert statistics.fmean(stops.left("trial", 0.0, DRAWS)) == pytest.approx(0.75, abs=0.01)
    assert stops.left("trial", 0.6, DRAWS) == [1.0] * DRAWS


def test_a_trial_whose_last_report_was_not_seen_did_not_stop_early() -> None:
    assert Stops([0.98, 1.0], []).left("trial", 0.1, DRAWS) == [1.0] * DRAWS


def mosts(known: list[Like], used: float, total: float = 100.0) -> list[float]:
    return Mosts(known, 16.0, DRAWS).drawn("trial", [total] * DRAWS, used)


def test_the_most_cores_are_those_of_trials_of_about_the_same_length() -> None:
    short, long = [Like(10.0 + n, (2.0, True)) for n in range(4)], [Like(1000.0 + n, (8.0, True)) for n in range(4)]

    assert set(mosts([*short, *long], 0.0, total=5.0)) == {2.0}
    assert set(mosts([*short, *long], 0.0, total=2000.0)) == {8.0}


def test_a_trial_can_use_more_than_it_was_seen_to_use() -> None:
    assert min(mosts([Like(100.0, (2.0, True)), Like(101.0, (8.0, True))], 4.0)) == 8.0


def test_where_no_trial_was_ever_held_back_they_may_use_a_whole_node() -> None:
    found = mosts([Like(100.0, (1.0, False))], 1.0)

    assert statistics.median(found) == 16.0
    assert 1.0 <= min(found) < 2.0
