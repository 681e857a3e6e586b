import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.worlds.simulated.node_run import fair_cores

SLACK = 1e-6
amounts = st.floats(0.002, 64.0)
demands = st.lists(st.tuples(amounts, amounts), min_size=1, max_size=12)


def test_equal_weights_share_equally() -> None:
    assert fair_cores([1, 1, 1, 1], [4, 4, 4, 4], 2.0) == [0.5, 0.5, 0.5, 0.5]


def test_what_a_small_one_leaves_goes_to_the_others_by_weight() -> None:
    assert fair_cores([1, 1, 2], [0.5, 8, 8], 3.5) == [0.5, 1.0, 2.0]


def test_nobody_shares_nothing() -> None:
    assert fair_cores([], [], 4.0) == []


@given(demands, amounts)
def test_no_core_is_idle_that_somebody_could_use_and_none_is_given_twice(
    wants: list[tuple[float, float]], capacity: float
) -> None:
    given_cores = fair_cores([w for w, _ in wants], [cap for _, cap in wants], capacity)
    usable = min(capacity, sum(cap for _, cap in wants))
    assert sum(given_cores) == pytest.approx(usable)


@given(demands, amounts)
def test_nobody_gets_more_than_it_can_use(wants: list[tuple[float, float]], capacity: float) -> None:
    given_cores = fair_cores([w for w, _ in wants], [cap for _, cap in wants], capacity)
    assert all(0 <= cores <= cap + SLACK for cores, (_, cap) in zip(given_cores, wants, strict=True))


@given(demands, amounts)
def test_who_could_use_more_has_as_much_by_weight_as_anybody(wants: list[tuple[float, float]], capacity: float) -> None:
    """Nobody can gain without somebody whose weighted share is no greater losing."""
    given_cores = fair_cores([w for w, _ in wants], [cap for _, cap in wants], capacity)
    levels = [cores / weight for cores, (weight, _) in zip(given_cores, wants, strict=True)]
    for level, cores, (_, cap) in zip(levels, given_cores, wants, strict=True):
        if cores < cap * (1 - SLACK):
            assert level >= max(levels) * (1 - SLACK)


@given(demands, amounts, st.randoms(use_true_random=False))
def test_the_order_of_those_who_share_changes_nothing(
    wants: list[tuple[float, float]], capacity: float, chance: random.Random
) -> None:
    order = chance.sample(range(len(wants)), len(wants))
    straight = fair_cores([w for w, _ in wants], [cap for _, cap in wants], capacity)
    mixed = fair_cores([wants[i][0] for i in order], [wants[i][1] for i in order], capacity)
    assert mixed == pytest.approx([straight[i] for i in order])
