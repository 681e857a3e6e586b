"""Where ``ahead`` places trials that wait for room, and which moves it does not make."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.actions import Place
from controllers.core.devices import Devices
from controllers.core.model import Node, NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.ahead.moving import choose_moves
from controllers.policies.ahead.placing import place_trials
from controllers.policies.ahead.planning import CONSIDERED, Weights, WorkPlan
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.lengths import EstimateSource
from controllers.policies.kit.work_left import Estimate
from tests.controllers.policies.policy_fakes import node, snapshot, trial
from tests.property_examples import examples

GPU = "example.com/gpu"
WEIGHTS = Weights(1.0, 0.0, 1.0, 5.0)


def gated(name: str, cpu: float, devices: int, at: float) -> Trial:
    asked = Devices.of({GPU: devices})
    return trial(name, cpu=cpu, phase=Phase.PENDING, gated=True, attempt=0, submitted_at=at, devices=asked)


nodes = st.lists(st.tuples(st.sampled_from([2.0, 4.0]), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=3)
there = st.tuples(st.sampled_from([0.5, 1.0]), st.integers(0, 2), st.integers(0, 2))
asking = st.tuples(st.sampled_from([0.5, 1.0, 2.0]), st.integers(0, 2), st.floats(0.0, 50.0), st.floats(1.0, 900.0))


@given(nodes, st.lists(there, max_size=4), st.lists(asking, max_size=12), st.sampled_from([0.0, 1.0]))
def test_no_room_stays_empty_while_a_trial_that_fits_there_waits(
    drawn_nodes: list[tuple[float, int, int]],
    running: list[tuple[float, int, int]],
    asked: list[tuple[float, int, float, float]],
    end_weight: float,
) -> None:
    places: list[Node] = [
        node(f"n{n}", cpu, devices=Devices.of({GPU: count}), devices_starting=Devices.of({GPU: min(count, held)}))
        for n, (cpu, count, held) in enumerate(drawn_nodes)
    ]
    live = [
        trial(f"r{n}", f"n{where % len(places)}", cpu=cpu, devices=Devices.of({GPU: count}))
        for n, (cpu, count, where) in enumerate(running)
    ]
    waits = [gated(f"w{n:02}", cpu, count, at) for n, (cpu, count, at, _) in enumerate(asked)]
    seen = snapshot(60.0, [*live, *waits], places)
    work = {one.id: 100.0 for one in live} | {one.id: asked[n][3] for n, one in enumerate(waits)}
    estimates = {one.id: Estimate(one, work[one.id], 1.0, 0.5, EstimateSource.OTHERS, 1.0) for one in seen.trials}
    plan = WorkPlan(seen, estimates, {}, Weights(1.0, 0.0, end_weight, 15.0))
    after = Capacity.of(seen)
    placed = set()
    for proposal in place_trials(plan):
        assert isinstance(proposal.action, Place)
        assert after.allows(proposal.action)
        after.apply(proposal.action)
        placed.add(proposal.action.trial)
    for one in waits:
        assert one.id in placed or not any(after.fits(one, place.name) for place in places)


def test_a_device_that_an_attempt_holds_which_has_yet_to_run_is_given_to_nobody_else() -> None:
    two, held = Devices.of({GPU: 2}), Devices.of({GPU: 1})
    seen = snapshot(
        0.0, [gated("a", 1.0, 1, 0.0), gated("b", 1.0, 1, 1.0)], [node("n", devices=two, devices_starting=held)]
    )
    estimates = {one.id: Estimate(one, 60.0, 1.0, 0.5, EstimateSource.OTHERS, 1.0) for one in seen.trials}
    plan = WorkPlan(seen, estimates, {}, WEIGHTS)
    assert [proposal.action for proposal in place_trials(plan)] == [Place(TrialId("a"), (NodeName("n"),))]


@pytest.mark.parametrize(("most", "moved"), [(2.0, 0), (3.0, 1)])
def test_a_trial_is_moved_only_from_where_it_keeps_others_from_cores_they_can_use(most: float, moved: int) -> None:
    long, short = trial("long", "n"), trial("short", "n")
    seen = snapshot(0.0, [long, short, trial("there", "m")], [node("n", 4.0), node("m", 4.0), node("o", 4.0)])
    work = {long.id: 2000.0, short.id: 500.0, TrialId("there"): 1900.0}
    estimates = {one.id: Estimate(one, work[one.id], most, 0.1, EstimateSource.OWN, most) for one in seen.trials}
    plan = WorkPlan(seen, estimates, {}, WEIGHTS)
    assert len(list(choose_moves(plan, [long.id, short.id]))) == moved


def place_of(
    nodes: Mapping[str, float],
    running: Mapping[str, Sequence[tuple[float, float]]],
    waits: tuple[float, float],
    weights: Weights,
) -> list[str]:
    """Return where a trial that ``waits`` is placed: nowhere, or on the one of ``nodes``, which have so many cores.

    Each trial is the work that it has left, in core seconds, and the most cores that it can use. It asks for one.
    """
    there = [(trial(f"{on}{n}", on), one) for on, those in running.items() for n, one in enumerate(those)]
    asks = trial("t", phase=Phase.PENDING, gated=True, attempt=0)
    estimates = {
        one.id: Estimate(one, work, most, 0.1, EstimateSource.OWN, most)
        for one, (work, most) in [*there, (asks, waits)]
    }
    seen = snapshot(
        0.0, [one.trial for one in estimates.values()], [node(name, cores) for name, cores in nodes.items()]
    )
    found = [proposal.action for proposal in place_trials(WorkPlan(seen, estimates, {}, weights))]
    return [str(place.node) for place in found if isinstance(place, Place)]


def test_a_trial_is_placed_where_the_sum_of_completions_grows_the_least() -> None:
    # The shortest go first. On a, it takes 50 s and has one of 100 s wait for as long; on b it is done after 75 s.
    running = {"a": [(400.0, 4.0)], "b": [(100.0, 4.0)]}
    assert place_of({"a": 4.0, "b": 4.0}, running, (200.0, 4.0), Weights(1.0, 0.0, 0.0, 5.0)) == ["b"]


@pytest.mark.parametrize(("end_weight", "where"), [(0.0, "a"), (1.0, "b")])
def test_where_the_end_counts_a_trial_keeps_away_from_the_one_that_will_be_last(end_weight: float, where: str) -> None:
    # It takes 10 s. On b three others wait for as long, on a only one does: but that is the last of all, after 100 s.
    running = {"a": [(400.0, 4.0)], "b": [(80.0, 4.0)] * 3}
    assert place_of({"a": 4.0, "b": 4.0}, running, (40.0, 4.0), Weights(1.0, 0.0, end_weight, 5.0)) == [where]


def test_of_nodes_on_which_it_costs_the_same_a_trial_takes_the_one_with_the_most_cores_left_over() -> None:
    weights = Weights(1.0, 0.0, 0.0, 5.0)
    assert place_of({"a": 4.0, "b": 8.0}, {}, (40.0, 2.0), weights) == ["b"]
    # Both have two cores that nobody can use. There is nobody on b.
    assert place_of({"a": 4.0, "b": 2.0}, {"a": [(100.0, 2.0)]}, (10.0, 1.0), weights) == ["b"]
    assert place_of({"b": 4.0, "a": 4.0}, {}, (40.0, 2.0), weights) == ["a"]


@pytest.mark.parametrize(("contention", "where"), [(0.0, ["a"]), (0.2, [])])
def test_where_trials_slow_each_other_down_none_is_placed_beside_those_that_can_use_the_whole_node(
    contention: float, where: list[str]
) -> None:
    weights = Weights(1.0, contention, 1.0, 5.0)
    assert place_of({"a": 4.0}, {"a": [(100.0, 4.0)]}, (100.0, 4.0), weights) == where
    assert place_of({"a": 4.0}, {"a": [(100.0, 3.0)]}, (100.0, 4.0), weights) == ["a"]


def test_a_first_trial_starts_on_the_largest_node_wherever_that_stands_in_the_order_of_names() -> None:
    # Empty nodes all cost the same while nothing is known of the trial. It may be able to use the largest.
    places = {**{f"a{number:02}": 8.0 for number in range(20)}, "z": 32.0}
    assert place_of(places, {}, (100.0, 4.0), Weights(1.0, 0.0, 0.0, 5.0)) == ["z"]


Sweep = tuple[Snapshot, dict[TrialId, Estimate], Weights]


def drawn_sweep(seed: int, most_nodes: int, contentions: Sequence[float]) -> Sweep:
    """Return a sweep with some trials that run and many that wait, on nodes that are mostly alike."""
    chance = random.Random(seed)  # noqa: S311 - draws sweeps
    places = [node(f"n{n:02}", chance.choice([4.0, 4.0, 5.0, 8.0])) for n in range(chance.randint(1, most_nodes))]
    trials: list[Trial] = []
    for number in range(chance.randint(1, 30)):
        asks = chance.choice([0.5, 1.0, 1.0, 2.0])
        if chance.random() < 0.3:
            trials.append(trial(f"t{number:02}", chance.choice(places).name, cpu=asks, base_cpu=asks))
        else:
            waits = trial(f"t{number:02}", cpu=asks, base_cpu=asks, phase=Phase.PENDING, gated=True, attempt=0)
            trials.append(waits)
    estimates = {
        one.id: Estimate(one, work, most, 0.1, EstimateSource.OWN, most)
        for one in trials
        for work, most in [(chance.choice([50.0, 50.0, chance.uniform(0, 900)]), chance.choice([1.0, 4.0]))]
    }
    weights = Weights(chance.choice([1.0, 0.8]), chance.choice(contentions), chance.choice([0.0, 1.0]), 5.0)
    return snapshot(60.0, trials, places), estimates, weights


def running_on(one: Trial, where: NodeName) -> Trial:
    return replace(one, phase=Phase.RUNNING, nodes=(where,), gated=False, attempt=1)


def steps(sweep: Sweep) -> Iterator[tuple[Snapshot, dict[TrialId, Estimate], Place]]:
    """Yield each place of a plan, and the sweep before it: those placed so far run, and only its own trial waits."""
    seen, estimates, weights = sweep
    known = dict(estimates)
    there = {one.id: one for one in seen.trials if one.node is not None}
    for proposal in place_trials(WorkPlan(seen, estimates, {}, weights)):
        action = proposal.action
        assert isinstance(action, Place)
        waits = estimates[action.trial].trial
        yield replace(seen, trials=(*there.values(), waits)), dict(known), action
        assert action.node is not None
        there[waits.id] = running_on(waits, action.node)
        known[waits.id] = replace(known[waits.id], trial=there[waits.id])


@settings(max_examples=examples(40))
@given(st.integers(0, 10**6))
def test_each_of_many_trials_is_placed_as_a_plan_that_is_made_for_it_alone_places_it(seed: int) -> None:
    sweep = drawn_sweep(seed, 20, [0.0, 0.2])
    for seen, estimates, place in steps(sweep):
        assert [one.action for one in place_trials(WorkPlan(seen, estimates, {}, sweep[2]))] == [place]


@settings(max_examples=examples(40))
@given(st.integers(0, 10**6))
def test_on_few_nodes_no_place_costs_less_than_the_one_that_is_chosen(seed: int) -> None:
    sweep = drawn_sweep(seed, CONSIDERED, [0.0])
    for seen, estimates, place in steps(sweep):
        one, room = estimates[place.trial], Capacity.of(seen)
        costs = {}
        for name in (each.name for each in seen.nodes if room.fits(one.trial, each.name)):
            there = {**estimates, place.trial: replace(one, trial=running_on(one.trial, name))}
            costs[name] = WorkPlan(seen, there, {}, sweep[2]).tally.cost({})
        assert place.node is not None
        assert costs[place.node] == min(costs.values())
