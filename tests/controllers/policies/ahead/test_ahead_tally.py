"""What all nodes cost together, and which of them have room soonest: both are kept up as the nodes change."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import NodeName
from controllers.policies.ahead.forecast import NodeForecast
from controllers.policies.ahead.tally import NodeLine, Tally, size_of

State = tuple[NodeForecast, int]

TRIALS = 4
"""The trials of each tally here, in all."""
TINY = 1e-6

times = st.sampled_from([0.0, 1.0, 7.5, 100.0, 1e-9, 3e5])
forecasts = st.builds(NodeForecast, times, times, times, times)
states = st.lists(st.tuples(forecasts, st.integers(0, 9)), min_size=1, max_size=12)
changes = st.lists(st.tuples(st.integers(0, 11), st.tuples(forecasts, st.integers(0, 9))), max_size=12)
weights_of_the_end = st.sampled_from([0.0, 0.5, 1.0])


def named(number: int) -> NodeName:
    return NodeName(f"n{number:03}")


CORES = {named(number): (4.0, 16.0, 5.0)[number % 3] for number in range(16)}
"""Those of four and of five cores are of one size."""


def made_of(state: Sequence[State], end_weight: float = 1.0) -> Tally:
    return Tally({named(n): one for n, one in enumerate(state)}, CORES, TRIALS, end_weight)


def by_size(tally: Tally, nodes: Sequence[NodeName]) -> dict[tuple[int, str], list[NodeName]]:
    """Return those of ``nodes`` that are of each size of the tally's, as they stand."""
    return {size: [one for one in nodes if tally.sizes[one] == size] for size in set(tally.sizes.values())}


@pytest.mark.parametrize(
    ("completions", "bounds", "end_weight", "cost"),
    [
        pytest.param([], [], 1.0, 0.0, id="no-node"),
        pytest.param([30.0], [10.0], 0.0, 30.0, id="where-the-end-does-not-count-the-completions-are-all"),
        pytest.param([30.0], [10.0], 1.0, 30.0 + TRIALS * 10.0, id="one-node-ends-at-its-bound"),
        pytest.param([1.0, 2.0, 3.0], [10.0] * 3, 1.0, 6.0 + TRIALS * 10.0, id="alike-nodes-end-together"),
        # The fourth root of 20 ** 4 / 16 is 10, halfway from there to the latest is 15.
        pytest.param([7.0, *[0.0] * 15], [20.0, *[0.0] * 15], 1.0, 7.0 + TRIALS * 15.0, id="one-of-sixteen-is-late"),
        pytest.param([7.0, *[0.0] * 15], [20.0, *[0.0] * 15], 0.5, 7.0 + TRIALS * 7.5, id="and-the-end-counts-half"),
    ],
)
def test_nodes_cost_their_completions_and_an_end_between_the_latest_bound_and_the_mean_of_all(
    completions: list[float], bounds: list[float], end_weight: float, cost: float
) -> None:
    state = [(NodeForecast(sum_of, 0.0, 0.0, bound), 1) for sum_of, bound in zip(completions, bounds, strict=True)]
    assert made_of(state, end_weight).cost({}) == pytest.approx(cost)


@given(states, weights_of_the_end)
def test_an_uneven_end_costs_at_most_what_it_would_if_all_were_as_late_and_at_least_half_of_that(
    state: list[State], end_weight: float
) -> None:
    latest = max(one.bound for one, _ in state)
    end = made_of(state, end_weight).cost({}) - math.fsum(one.completions for one, _ in state)
    assert end_weight * TRIALS * latest / 2 - TINY <= end <= end_weight * TRIALS * latest + TINY


@given(states, st.integers(0, 11), times)
def test_a_later_completion_costs_as_many_seconds_and_a_later_bound_at_least_nothing(
    state: list[State], number: int, later: float
) -> None:
    tally, at = made_of(state), number % len(state)
    now, before = state[at][0], tally.cost({})
    completed = replace(now, completions=now.completions + later)
    assert tally.cost({named(at): completed}) == pytest.approx(before + later, rel=1e-12, abs=TINY)
    assert tally.cost({named(at): replace(now, bound=now.bound + later)}) >= before - TINY


def test_equal_nodes_cost_the_same_so_that_their_names_decide() -> None:
    # Sums of floats depend on the order: in each other's place, 0.1 and 0.2 and 0.3 come to something else.
    loads = [NodeForecast(c, c, c, c) for c in (0.1, 0.2, 0.3, 0.1, 0.7, 0.1)]
    tally = made_of([(one, 1) for one in loads])
    after = replace(loads[0], completions=0.4, bound=0.35)
    assert len({tally.cost({named(n): after}) for n in (0, 3, 5)}) == 1


@given(states, changes, weights_of_the_end)
def test_a_tally_that_is_kept_up_says_exactly_what_one_that_is_made_of_the_same_state_says(
    state: list[State], made: list[tuple[int, State]], end_weight: float
) -> None:
    tally, now = made_of(state, end_weight), list(state)
    for number, (forecast, trials) in made:
        at = number % len(state)
        tally.change(named(at), forecast, trials)
        now[at] = forecast, trials
    fresh = made_of(now, end_weight)
    assert tally.cost({}) == fresh.cost({})
    assert (tally.first_done(3), tally.last_done(3)) == (fresh.first_done(3), fresh.last_done(3))
    assert (tally.forecasts, tally.keys, tally.lines) == (fresh.forecasts, fresh.keys, fresh.lines)
    assert tally.changed == [named(number % len(state)) for number, _ in made]


@given(states, st.dictionaries(st.integers(0, 11), forecasts, max_size=3), weights_of_the_end)
def test_what_changes_would_cost_is_what_all_nodes_cost_after_them_and_asking_changes_nothing(
    state: list[State], drawn: dict[int, NodeForecast], end_weight: float
) -> None:
    tally = made_of(state, end_weight)
    tried = {named(number): forecast for number, forecast in drawn.items() if number < len(state)}
    before, expected = tally.cost({}), tally.cost(tried)
    assert tally.cost({}) == before
    for at, forecast in tried.items():
        tally.change(at, forecast, 1)
    assert tally.cost({}) == expected


@given(states)
def test_no_other_node_is_done_before_the_first_of_its_size_or_after_the_last_of_all(state: list[State]) -> None:
    tally = made_of(state)
    ends = {named(n): forecast.last for n, (forecast, _) in enumerate(state)}
    last = tally.last_done(3)
    assert len(set(last)) == len(last) == min(3, len(state))
    assert [ends[one] for one in last] == sorted((ends[one] for one in last), reverse=True)
    assert all(ends[one] <= ends[last[-1]] for one in ends.keys() - set(last))
    first, alike = by_size(tally, tally.first_done(3)), by_size(tally, list(ends))
    for size, chosen in first.items():
        assert len(set(chosen)) == len(chosen) == min(3, len(alike[size]))
        assert all(ends[one] >= ends[chosen[-1]] for one in set(alike[size]) - set(chosen))


def test_of_nodes_that_are_done_together_the_one_with_more_cores_counts_as_first_and_then_the_name() -> None:
    together = made_of([(NodeForecast(last=5.0), 1)] * 4)  # of 4, 16, 5 and 4 cores
    assert together.first_done(2) == ["n002", "n000", "n001"]
    assert together.last_done(4) == ["n003", "n000", "n002", "n001"]


@pytest.mark.parametrize(("cores", "size"), [(0.5, -1), (1.0, 0), (4.0, 2), (5.0, 2), (6.0, 3), (8.0, 3), (16.0, 4)])
def test_nodes_are_of_one_size_where_the_same_power_of_two_is_nearest(cores: float, size: int) -> None:
    assert size_of(cores) == size


def test_room_comes_soonest_where_the_least_is_to_do_then_by_fewest_trials_then_by_most_cores() -> None:
    cores = {NodeName(name): cpu for name, cpu in {"a": 4.0, "b": 4.0, "c": 4.0, "d": 5.0, "e": 5.0}.items()}
    busy, idle = NodeForecast(drain=5.0), NodeForecast()
    each = dict(zip(cores, [(busy, 1), (idle, 2), (idle, 1), (idle, 1), (idle, 1)], strict=True))
    line = NodeLine(Tally(each, cores, TRIALS, 1.0), lambda _: True)
    assert line.first(5) == ["d", "e", "c", "b", "a"]


def test_large_nodes_stand_in_a_line_of_their_own_though_small_ones_have_room_sooner() -> None:
    cores = {NodeName("l"): 16.0, NodeName("m"): 16.0, NodeName("s"): 4.0, NodeName("t"): 4.0}
    each = {one: (NodeForecast(drain=9.0 if cpu > 4.0 else 0.0), 0) for one, cpu in cores.items()}
    assert NodeLine(Tally(each, cores, TRIALS, 1.0), lambda _: True).first(1) == ["s", "l"]


@given(states, changes, st.sets(st.integers(0, 11)))
def test_a_line_begins_with_nodes_that_suit_and_no_other_of_their_size_stands_before_them(
    state: list[State], made: list[tuple[int, State]], drawn: set[int]
) -> None:
    tally = made_of(state)
    out = {named(number) for number in drawn}
    line = NodeLine(tally, lambda name: name not in out)
    suitable = by_size(tally, [one for one in CORES if one in tally.keys and one not in out])
    for number, (forecast, trials) in [(0, state[0]), *made]:
        tally.change(named(number % len(state)), forecast, trials)
        found = line.first(3)
        assert line.first(3) == found
        for size, chosen in by_size(tally, found).items():
            assert set(chosen) <= set(suitable[size])
            assert len(set(chosen)) == len(chosen) == min(3, len(suitable[size]))
            keys = [tally.keys[one] for one in chosen]
            assert keys == sorted(keys)
            assert all(tally.keys[one] > keys[-1] for one in set(suitable[size]) - set(chosen))


def test_a_node_that_does_not_suit_is_asked_for_once() -> None:
    asked: list[NodeName] = []

    def suits(name: NodeName) -> bool:
        asked.append(name)
        return name != named(0)

    line = NodeLine(made_of([(NodeForecast(), 0), (NodeForecast(), 0), (NodeForecast(drain=1.0), 0)]), suits)
    assert [line.first(1) for _ in range(3)] == [["n002", "n001"]] * 3
    assert asked.count(named(0)) == 1
