"""In what order ``ahead`` starts trials that wait for room: near the best mean and the earliest end at a time."""

import math
import random
import statistics
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import TrialId
from controllers.policies.ahead.order import PATIENCE, Length, Queue, Waiting, starting_order

Order = Callable[[Queue], list[TrialId]]


def waiting(*seconds: float, spread: float = 0.0) -> list[Waiting]:
    return [Waiting(TrialId(f"t{number:03}"), 0.0, Length(one, spread * one)) for number, one in enumerate(seconds)]


def dealt(queue: Queue) -> list[TrialId]:
    return starting_order([queue], protect_end=True)


def shortest_first(queue: Queue) -> list[TrialId]:
    return [one.trial for one in sorted(queue.waiting, key=lambda one: one.length.seconds)]


def longest_first(queue: Queue) -> list[TrialId]:
    return [one.trial for one in sorted(queue.waiting, key=lambda one: -one.length.seconds)]


def completions(
    order: Order, seconds: Sequence[float], places: int, guesses: Sequence[float] | None = None, spread: float = 0.0
) -> list[float]:
    """Return when each trial is done on so many places. Each place takes the next in order when it is free.

    The order goes by the ``guesses``, which are the true ``seconds`` unless given, and off by ``spread``.
    """
    left = {one.trial: one for one in waiting(*(guesses or seconds), spread=spread)}
    number = len(left)
    truth = dict(zip(left, seconds, strict=True))
    free_at, done = [0.0] * places, list[float]()
    heapify(free_at)
    while left:
        now = free_at[0]
        free = sum(at <= now for at in free_at)
        busy = [Length(at - now) for at in free_at if at > now]
        queue = Queue(list(left.values()), busy, free, number - len(left) - len(busy))
        for name in order(queue)[:free]:
            heappop(free_at)
            del left[name]
            done.append(now + truth[name])
            heappush(free_at, done[-1])
    return done


def test_the_shortest_goes_first_where_that_costs_the_end_nothing() -> None:
    assert dealt(Queue(waiting(5.0, 3.0, 4.0, 1.0), [], 1)) == ["t003", "t001", "t002", "t000"]


def test_a_trial_that_would_end_the_sweep_goes_before_shorter_ones() -> None:
    # Two places, 20 s in all: the one of 10 s must start now, or it ends at 15 s at best.
    assert dealt(Queue(waiting(5.0, 5.0, 10.0), [], 2))[:2] == ["t000", "t002"]


def test_a_trial_that_runs_for_long_leaves_its_place_to_nobody_and_the_others_share_what_is_free() -> None:
    # The busy place is done last anyway, so that the free one may begin with the shortest.
    assert dealt(Queue(waiting(8.0, 2.0, 4.0), [Length(30.0)], 1))[0] == "t001"


def test_more_long_trials_than_places_do_not_all_wait_for_the_short_ones() -> None:
    seconds = [1000.0] * 20 + [100.0] * 100
    assert max(completions(shortest_first, seconds, 16)) == 2600.0
    assert max(completions(dealt, seconds, 16)) == 2000.0


@pytest.mark.parametrize("places", [2, 8, 16])
def test_random_sweeps_end_as_early_as_the_longest_first_and_have_the_mean_of_the_shortest_first(places: int) -> None:
    ends, means = [], []
    for seed in range(12):
        chance = random.Random(seed)  # noqa: S311 - draws lengths
        seconds = [60 * 20 ** chance.random() for _ in range(4 * places)]
        done = completions(dealt, seconds, places)
        ends.append(max(done) / max(completions(longest_first, seconds, places)))
        means.append(statistics.fmean(done) / statistics.fmean(completions(shortest_first, seconds, places)))
    assert statistics.fmean(ends) < 1.01
    assert statistics.fmean(means) < 1.02


def test_a_long_trial_that_may_take_longer_than_guessed_does_not_wait_for_a_short_one() -> None:
    # Three places for 30 s each. The margin of one trial of 27 s is larger than that of many short ones.
    seconds = [27.0, 3.0, *[6.0] * 10]
    assert "t000" not in dealt(Queue(waiting(*seconds), [], 3))[:3]
    assert "t000" in dealt(Queue(waiting(*seconds, spread=0.3), [], 3))[:3]


def test_a_place_that_had_many_trials_of_guessed_length_ends_with_short_ones() -> None:
    left = waiting(9.0, 2.0, 3.0, spread=0.3)
    assert dealt(Queue(left, [], 1, ended=4))[0] == "t001"
    assert dealt(Queue(left, [], 1, ended=5))[0] == "t000"
    assert dealt(Queue(waiting(9.0, 2.0, 3.0), [], 1, ended=5))[0] == "t001"


@pytest.mark.parametrize("places", [4, 16])
def test_with_guesses_that_are_off_the_sweep_ends_earlier_if_it_is_known_how_far_off_they_are(places: int) -> None:
    chance, spread = random.Random(places), 0.4  # noqa: S311 - draws lengths
    ends, means = [], []
    for _ in range(24):
        guesses = [60 * math.exp(chance.gauss(0, 0.7)) for _ in range(100)]
        seconds = [guess * math.exp(chance.gauss(0, spread)) for guess in guesses]
        trusting, doubting = (completions(dealt, seconds, places, guesses, given) for given in (0.0, spread))
        ends.append(max(doubting) / max(trusting))
        means.append(statistics.fmean(doubting) / statistics.fmean(trusting))
    assert statistics.fmean(ends) < 0.995
    assert statistics.fmean(means) < 1.05


def test_of_trials_that_take_as_long_the_narrow_one_goes_first_unless_the_wide_one_came_long_before() -> None:
    def order(after: float) -> list[TrialId]:
        wide = Waiting(TrialId("wide"), 0.0, Length(100.0), 1.6)
        narrow = Waiting(TrialId("narrow"), after, Length(100.0), 0.4)
        return starting_order([Queue([wide], [], 0), Queue([narrow], [], 0)], protect_end=True)

    assert order(0.9 * PATIENCE * 120.0) == ["narrow", "wide"]
    assert order(1.1 * PATIENCE * 120.0) == ["wide", "narrow"]


def test_trials_of_which_nothing_is_known_start_in_the_order_of_submission() -> None:
    queue = Queue(
        [Waiting(TrialId(f"t{n}"), float(9 - n), Length(60.0, 30.0)) for n in range(9)], [Length(60.0), Length(20.0)], 2
    )
    assert dealt(queue) == [f"t{n}" for n in reversed(range(9))]


def test_where_all_fit_the_order_is_that_of_submission() -> None:
    queue = Queue([Waiting(TrialId("a"), 2.0, Length(1.0)), Waiting(TrialId("b"), 1.0, Length(9.0))], [], 2)
    assert starting_order([queue], protect_end=False) == ["b", "a"]


lengths = st.builds(Length, st.floats(1.0, 1000.0), st.floats(0.0, 600.0))
trials = st.lists(st.tuples(st.floats(0.0, 3000.0), lengths, st.floats(0.1, 4.0)), min_size=1, max_size=12)
queues = st.lists(st.tuples(trials, st.lists(lengths, max_size=4), st.integers(0, 5)), min_size=1, max_size=3).map(
    lambda drawn: [
        Queue([Waiting(TrialId(f"q{q}t{t:02}"), *one) for t, one in enumerate(members)], busy, free)
        for q, (members, busy, free) in enumerate(drawn)
    ]
)


@given(queues, st.booleans())
def test_each_trial_stands_once_in_line_and_only_behind_those_submitted_before_it_was_due(
    given_queues: list[Queue],
    protect_end: bool,  # noqa: FBT001 - drawn
) -> None:
    known = {one.trial: one for queue in given_queues for one in queue.waiting}
    order = starting_order(given_queues, protect_end=protect_end)
    assert sorted(order) == sorted(known)
    latest = float("-inf")
    for one in map(known.__getitem__, order):
        latest = max(latest, one.submitted_at)
        assert latest <= one.due


def test_an_endless_stream_of_short_trials_lets_a_long_one_start_once_it_is_due() -> None:
    now, waits = 0.0, [Waiting(TrialId("long"), 0.0, Length(100.0))]
    while waits[0].trial == "long":
        waits += [Waiting(TrialId(f"short{now}-{n}"), now, Length(10.0)) for n in range(2)]
        first = starting_order([Queue(waits, [], 1)], protect_end=True)[0]
        waits = [one for one in waits if one.trial != first]
        # Two come while one is trained. Those that came until the long one was due may go first, and no others.
        assert now <= 2 * (PATIENCE * 100.0 + 10.0)
        now += 10.0
