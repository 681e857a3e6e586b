import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controllers.core.actions import Place
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.occupancy import Occupancy
from controllers.policies.kit.places import places, still_starting, with_room
from tests.controllers.policies.policy_fakes import node, snapshot, trial


def gated(name: str, cpu: float = 1.0, at: float = 0.0) -> Trial:
    return trial(name, cpu=cpu, phase=Phase.PENDING, gated=True, attempt=0, submitted_at=at)


def placed(seen: Snapshot, before: dict[TrialId, NodeName] | None = None) -> list[tuple[str, str | None]]:
    occupancy = Occupancy.of(seen, before or {})
    found = places(seen, occupancy, lambda _, trials: len(trials), lambda where, cost: f"{where.name} {cost}")
    actions = [proposal.action for proposal in found]
    return [(action.trial, action.node) for action in actions if isinstance(action, Place)]


def test_waiting_trials_go_to_the_cheapest_node_one_after_another_in_the_order_of_submission() -> None:
    seen = snapshot(9.0, [trial("a", "x"), gated("c", at=1.0), gated("b", at=2.0)], [node("x"), node("y"), node("z")])
    assert placed(seen) == [("c", "y"), ("b", "z")]


def test_of_nodes_that_cost_the_same_the_one_with_the_least_of_its_cpu_requested_comes_first() -> None:
    seen = snapshot(0.0, [trial("a", "x"), trial("b", "y"), gated("c")], [node("x", 4.0), node("y", 8.0)])
    assert placed(seen) == [("c", "y")]


def test_a_trial_that_fits_nowhere_waits_and_does_not_hold_up_a_smaller_one() -> None:
    seen = snapshot(0.0, [gated("big", cpu=5.0), gated("small", cpu=2.0, at=1.0)], [node("x", 4.0)])
    assert placed(seen) == [("small", "x")]


def test_a_node_that_tells_its_room_takes_more_than_requests_leave_or_less() -> None:
    waiting = [gated("b"), gated("c", at=1.0), gated("d", at=2.0)]
    for room, found in ((2.0, ["b", "c"]), (1.5, ["b"]), (0.0, [])):
        seen = snapshot(0.0, [trial("a", "x", cpu=2.0), *waiting], [node("x", 2.0, room=room)])
        assert [name for name, _ in placed(seen)] == found
    seen = snapshot(0.0, waiting, [node("x", 8.0, room=1.0)])
    assert [name for name, _ in placed(seen)] == ["b"]


def test_a_trial_that_moves_needs_no_room_among_those_that_start() -> None:
    seen = snapshot(0.0, [trial("a", "x")], [node("x", 2.0), node("y", 2.0, room=0.0)])
    assert Capacity.of(seen).fits(seen.named[TrialId("a")], NodeName("y"))
    assert not Capacity.of(seen).fits(gated("b"), NodeName("y"))


def test_a_node_that_is_not_ready_or_has_no_cpu_takes_nobody() -> None:
    seen = snapshot(0.0, [gated("a")], [node("x", ready=False), node("y", 0.0)])
    assert placed(seen) == []


def test_a_trial_that_was_placed_and_has_yet_to_start_counts_where_it_goes() -> None:
    coming = trial("a", phase=Phase.PENDING, attempt=0)
    seen = snapshot(0.0, [coming, gated("b")], [node("x"), node("y")])
    before = {TrialId("a"): NodeName("x")}
    assert still_starting(seen, before) == before
    assert placed(seen, still_starting(seen, before)) == [("b", "y")]


def test_a_place_is_forgotten_once_the_trial_runs_waits_again_or_has_ended() -> None:
    before = {TrialId(name): NodeName("x") for name in ("runs", "waits", "ended", "gone")}
    ended = trial("ended", phase=Phase.SUCCEEDED)
    assert still_starting(snapshot(0.0, [trial("runs", "x"), gated("waits"), ended], [node("x")]), before) == {}


def test_a_trial_that_is_kept_from_starting_neither_waits_nor_takes_room_and_one_that_was_let_go_does() -> None:
    seen = snapshot(0.0, [gated("a"), gated("b")], [node("x", 1.0)])
    withheld = seen.withholding({TrialId("a")})
    assert [one.waits for one in withheld.unended] == [False, True]
    assert still_starting(withheld, {TrialId("a"): NodeName("x")}) == {}
    last = [seen.named[TrialId("b")]]
    assert with_room(withheld, last) == (last, [])
    let_go = snapshot(0.0, [replace(gated("a"), gated=False), *last], seen.nodes)
    assert with_room(let_go, last) == ([], last)


@given(
    cpus=st.lists(st.floats(0.1, 5.0), max_size=12),
    nodes=st.lists(st.tuples(st.floats(0.0, 8.0), st.booleans()), min_size=1, max_size=4),
)
def test_places_keep_to_capacity_and_leave_nobody_waiting_who_fits(
    cpus: list[float], nodes: list[tuple[float, bool]]
) -> None:
    trials = [gated(f"t{number:02d}", cpu) for number, cpu in enumerate(cpus)]
    there = [node(f"n{number}", cpu, ready=ready) for number, (cpu, ready) in enumerate(nodes)]
    seen = snapshot(0.0, trials, there)
    free = {one.name: one.cpu if one.ready else -math.inf for one in there}
    given_to = dict(placed(seen))
    for one in seen.trials:
        where = given_to.get(one.id)
        if where is not None:
            free[NodeName(where)] -= one.cpu
    assert all(left >= -1e-6 for left in free.values() if left > -math.inf)
    waiting = [one.cpu for one in seen.trials if one.id not in given_to]
    assert not [cpu for cpu in waiting if cpu < max(free.values()) - 1e-6]
    assert placed(replace(seen, trials=seen.trials[::-1], nodes=seen.nodes[::-1])) == placed(seen)


@given(
    st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.0, 1.0, 2.0])), max_size=12),
)
def test_trials_with_room_go_one_after_the_other_to_the_node_with_the_most_cores_that_nobody_requests(
    cores: list[float], asked: list[tuple[float, float]]
) -> None:
    nodes = [node(f"n{number}", cpu, memory=3.0) for number, cpu in enumerate(cores)]
    waits = {"phase": Phase.PENDING, "gated": True, "attempt": 0}
    trials = [trial(f"t{number:02d}", cpu=cpu, memory=memory, **waits) for number, (cpu, memory) in enumerate(asked)]
    free = {one.name: [one.cpu, one.memory] for one in nodes}
    expected = []
    for one in trials:
        fits = [name for name, (cpu, memory) in free.items() if cpu >= one.cpu and memory >= one.memory]
        if fits:
            best = min(fits, key=lambda name: (-free[name][0], name))
            free[best] = [free[best][0] - one.cpu, free[best][1] - one.memory]
            expected.append(one)
    placed, without = with_room(snapshot(0.0, trials, nodes), trials)
    assert placed == expected
    assert without == [one for one in trials if one not in expected]
