"""What all nodes cost is kept up, and trials are placed by it, as if it were worked out in full each time."""

import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.actions import Place
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.ahead.forecast import Load, NodeForecast, node_forecast
from controllers.policies.ahead.order import starting_order
from controllers.policies.ahead.planning import CONSIDERED, Weights, WorkPlan
from controllers.policies.ahead.tally import NodeLine, Tally, size_of
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.lengths import EstimateSource
from controllers.policies.kit.work_left import Estimate
from tests.controllers.policies.policy_fakes import node, snapshot, trial

times = st.sampled_from([0.0, 1.0, 7.5, 100.0, 1e-9, 3e5])
forecasts = st.builds(NodeForecast, times, times, times, times)
states = st.lists(st.tuples(forecasts, st.integers(0, 9)), min_size=1, max_size=12)
changes = st.lists(st.tuples(st.integers(0, 11), forecasts, st.integers(0, 9)), max_size=12)


def plain_cost(nodes: list[NodeForecast], trials: int, end_weight: float) -> float:
    """Return the cost as its definition has it, with sums that are exact."""
    fourths = sum((Fraction(one.bound**4) for one in nodes), Fraction(0))
    spread = math.pow(fourths / len(nodes), 0.25)
    completions = float(sum((Fraction(one.completions) for one in nodes), Fraction(0)))
    return completions + end_weight * trials * (spread + max(one.bound for one in nodes)) / 2


def named(number: int) -> NodeName:
    return NodeName(f"n{number:03}")


CORES = {named(number): (4.0, 16.0, 5.0)[number % 3] for number in range(12)}


def of_each_size(ordered: list[NodeName], count: int) -> list[NodeName]:
    """Return the first ``count`` of each size, small ones first: of four and five cores, and of sixteen."""
    small = [name for name in ordered if CORES[name] < 16.0]
    return [*small[:count], *[name for name in ordered if name not in small][:count]]


@given(states, changes, st.sampled_from([0.0, 1.0]))
def test_a_tally_that_is_kept_up_says_the_same_as_one_that_is_made_anew(
    state: list[tuple[NodeForecast, int]], made: list[tuple[int, NodeForecast, int]], end_weight: float
) -> None:
    tally = Tally({named(n): one for n, one in enumerate(state)}, CORES, 7, end_weight)
    kept = [forecast for forecast, _ in state]
    for number, forecast, trials in made:
        at = number % len(state)
        tried = [*kept[:at], forecast, *kept[at + 1 :]]
        assert tally.cost({named(at): forecast}) == pytest.approx(plain_cost(tried, 7, end_weight), rel=1e-12, abs=1e-3)
        tally.change(named(at), forecast, trials)
        kept = tried
    assert tally.cost({}) == pytest.approx(plain_cost(kept, 7, end_weight), rel=1e-12, abs=1e-3)
    by_last = sorted((one.last, -CORES[named(n)], named(n)) for n, one in enumerate(kept))
    assert tally.first_done(3) == of_each_size([name for *_, name in by_last], 3)
    assert tally.last_done(3) == [name for *_, name in by_last[::-1][:3]]
    assert tally.forecasts == {named(n): one for n, one in enumerate(kept)}


@given(states, changes, st.sets(st.integers(0, 11)))
def test_a_line_begins_with_the_suitable_nodes_that_have_room_soonest(
    state: list[tuple[NodeForecast, int]], made: list[tuple[int, NodeForecast, int]], unsuitable: set[int]
) -> None:
    tally = Tally({named(n): one for n, one in enumerate(state)}, CORES, 7, 1.0)
    out = {named(number) for number in unsuitable}
    line = NodeLine(tally, lambda name: name not in out)
    for number, forecast, _ in [(0, state[0][0], 0), *made]:
        at = named(number % len(state))
        tally.change(at, forecast, tally.keys[at][1] + 1)
        plain = [name for *_, name in sorted(tally.keys.values()) if name not in out]
        assert line.first(3) == of_each_size(plain, 3)


def drawn(seed: int) -> tuple[Snapshot, dict[TrialId, Estimate], Weights]:
    """Return a sweep with some trials that run and many that wait, on nodes that are mostly alike."""
    chance = random.Random(seed)  # noqa: S311 - draws sweeps
    places = [node(f"n{n:02}", chance.choice([4.0, 4.0, 5.0, 8.0])) for n in range(chance.randint(1, 40))]
    trials: list[Trial] = []
    for number in range(chance.randint(1, 40)):
        asks = chance.choice([0.5, 1.0, 1.0, 2.0])
        if chance.random() < 0.3:
            trials.append(trial(f"t{number:02}", chance.choice(places).name, cpu=asks))
        else:
            trials.append(trial(f"t{number:02}", cpu=asks, phase=Phase.PENDING, gated=True, attempt=0))
    estimates = {
        one.id: Estimate(one, work, most, 0.1, EstimateSource.OWN, most)
        for one in trials
        for work, most in [(chance.choice([50.0, 50.0, chance.uniform(0, 900)]), chance.choice([1.0, 4.0]))]
    }
    weights = Weights(chance.choice([1.0, 0.8]), chance.choice([0.0, 0.2]), chance.choice([0.0, 1.0]), 5.0)
    return snapshot(60.0, trials, places), estimates, weights


def first_of_each_size(
    roomy: list[NodeName],
    known: dict[NodeName, NodeForecast],
    loads: dict[NodeName, list[Load]],
    cores: dict[NodeName, float],
) -> list[NodeName]:
    ordered = sorted(roomy, key=lambda place: (known[place].drain, len(loads[place]), -cores[place], place))
    sizes = {size_of(cores[place]) for place in roomy}
    return [place for size in sizes for place in [one for one in ordered if size_of(cores[one]) == size][:CONSIDERED]]


def as_they_stand(loads: list[Load], cores: float) -> tuple[float, float]:
    return math.fsum(most for _, most in loads) - cores, len(loads) / cores


def plainly_placed(seen: Snapshot, estimates: dict[TrialId, Estimate], weights: Weights) -> list[Place]:
    """Return the places that come out where each trial looks at every node, and every cost is worked out in full."""
    cores, capacity = {one.name: one.cpu for one in seen.nodes}, Capacity.of(seen)
    loads: dict[NodeName, list[Load]] = {name: [] for name in cores}
    for one in estimates.values():
        if one.trial.node is not None:
            loads[one.trial.node].append((one.work, one.most))
    plan = WorkPlan(seen, estimates, {}, weights)
    found: list[Place] = []
    for name in starting_order(plan._queues(), protect_end=weights.end > 0):
        one = estimates[name]
        known = {place: node_forecast(there, cores[place], weights.power) for place, there in loads.items()}
        roomy = [
            place
            for place in cores
            if capacity.fits(one.trial, place)
            and not (weights.contention and sum(most for _, most in loads[place]) >= cores[place])
        ]
        near = first_of_each_size(roomy, known, loads, cores)
        costs = {}
        for place in near:
            after = node_forecast([*loads[place], (one.work, one.most)], cores[place], weights.power)
            costs[place] = plain_cost(list({**known, place: after}.values()), len(estimates), weights.end)
        if near:
            best = min(near, key=lambda place: (costs[place], *as_they_stand(loads[place], cores[place]), place))
            loads[best].append((one.work, one.most))
            found.append(Place(name, (best,)))
            capacity.apply(found[-1])
    return found


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_trials_are_placed_as_if_every_one_of_them_looked_at_every_node(seed: int) -> None:
    seen, estimates, weights = drawn(seed)
    placed = [proposal.action for proposal in WorkPlan(seen, estimates, {}, weights).places()]
    assert placed == plainly_placed(seen, estimates, weights)


def test_equal_nodes_cost_the_same_so_that_their_names_decide() -> None:
    # Sums of floats depend on the order: in each other's place, 0.1 and 0.2 and 0.3 come to something else.
    loads = [NodeForecast(c, c, c, c) for c in (0.1, 0.2, 0.3, 0.1, 0.7, 0.1)]
    tally = Tally({named(n): (one, 1) for n, one in enumerate(loads)}, CORES, 6, 1.0)
    after = replace(loads[0], completions=0.4, bound=0.35)
    assert len({tally.cost({named(n): after}) for n in (0, 3, 5)}) == 1


def test_a_first_trial_starts_on_the_largest_node_wherever_that_stands_in_the_order_of_names() -> None:
    # Empty nodes all cost the same while nothing is known of the trial. It may be able to use the largest.
    places = [*(node(f"a{number:02}", 8.0) for number in range(20)), node("z", 32.0)]
    waits = trial("t", phase=Phase.PENDING, gated=True, attempt=0)
    unknown = {waits.id: Estimate(waits, 100.0, 4.0, 1.0, EstimateSource.OTHERS, 4.0)}
    (place,) = WorkPlan(snapshot(0.0, [waits], places), unknown, {}, Weights(1.0, 0.0, 0.0, 5.0)).places()
    assert place.action == Place(waits.id, (NodeName("z"),))
