from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import Progress, Snapshot, TrialId
from controllers.policies import CBalancer
from controllers.policies.cbalancer import Profile, balancing, slowdown
from controllers.policies.kit.asked_moves import AskedMoves
from controllers.policies.kit.occupancy import Occupancy
from controllers.policies.kit.paces import StepMemo, StepTime
from tests.controllers.policies.policy_fakes import moves, node, run, snapshot, trial

MEASURED = StepMemo(StepTime(1.0, 1.0))


def profile(appetite: float | None, wear: float = 1.0) -> Profile:
    return Profile(MEASURED, appetite, 1.0, wear)


def balanced(
    nodes: dict[str, float],
    known: dict[str, tuple[str, float]],
    spent: AskedMoves | None = None,
    least_gain: float = 0.1,
) -> list[tuple[str, str]]:
    """Return the moves for trials that are given as (node, appetite) on nodes of so many cores."""
    trials = [trial(name, where, cpu=0.1) for name, (where, _) in known.items()]
    seen = snapshot(0.0, trials, [node(name, cpu) for name, cpu in nodes.items()])
    profiles = {TrialId(name): profile(appetite) for name, (_, appetite) in known.items()}
    found = balancing(Occupancy.of(seen, {}), profiles, spent or AskedMoves(), least_gain)
    return [(move.trial, move.node) for move, _ in found]


def test_a_node_is_slowed_by_appetites_beyond_its_cores_and_by_wear() -> None:
    trials = [trial("a", "x"), trial("b", "x")]
    assert slowdown(node("x", 4.0), trials, {TrialId("a"): profile(2.0), TrialId("b"): profile(1.0)}) == 1.0
    assert slowdown(node("x", 4.0), trials, {TrialId("a"): profile(4.0), TrialId("b"): profile(2.0)}) == 1.5
    worn = {TrialId("a"): profile(4.0, wear=1.0), TrialId("b"): profile(2.0, wear=2.0)}
    assert slowdown(node("x", 4.0), trials, worn) == pytest.approx(1.5 * 1.5)
    assert slowdown(node("x", 4.0), [], {}) == 1.0


def test_a_trial_of_unknown_appetite_is_taken_to_use_its_whole_node() -> None:
    assert slowdown(node("x", 4.0), [trial("a", "x"), trial("b", "x")], {}) == 2.0


def test_a_trial_goes_from_the_most_slowed_node_to_where_both_are_slowed_least() -> None:
    story = {"a": ("x", 4.0), "b": ("x", 4.0), "c": ("y", 4.0)}
    assert balanced({"x": 4.0, "y": 4.0, "z": 4.0}, story) == [("a", "z")]


def test_a_trial_that_fits_beside_others_is_preferred_to_one_that_does_not() -> None:
    story = {"greedy": ("x", 4.0), "modest": ("x", 1.0), "there": ("y", 3.0)}
    assert balanced({"x": 4.0, "y": 4.0}, story) == [("modest", "y")]


def test_a_move_that_takes_too_little_off_is_not_made() -> None:
    story = {"a": ("x", 4.0), "b": ("x", 4.0), "c": ("y", 4.0)}
    assert balanced({"x": 4.0, "y": 4.0}, story) == []
    crowd = {f"x{number}": ("x", 4.0) for number in range(4)}
    assert balanced({"x": 4.0, "y": 4.0}, {**crowd, "c": ("y", 4.0)}, least_gain=0.3) == []
    assert balanced({"x": 4.0, "y": 4.0}, {**crowd, "c": ("y", 4.0)}, least_gain=0.2) == [("x0", "y")]


def test_a_trial_moves_once_only() -> None:
    spent = AskedMoves(arrived={TrialId("a"): 1, TrialId("b"): 1})
    assert balanced({"x": 4.0, "y": 4.0}, {"a": ("x", 4.0), "b": ("x", 4.0)}, spent) == []


appetites = st.lists(st.tuples(st.sampled_from("xyz"), st.floats(0.1, 8.0)), max_size=12)


@given(appetites)
def test_moves_never_slow_the_cluster_down_in_sum(placed: list[tuple[str, float]]) -> None:
    nodes = {name: node(name, cpu) for name, cpu in (("x", 4.0), ("y", 4.0), ("z", 8.0))}
    trials = {f"t{number:02d}": place for number, place in enumerate(placed)}
    profiles = {TrialId(name): profile(appetite) for name, (_, appetite) in trials.items()}

    def total(where: dict[str, str]) -> float:
        groups = {name: [trial(one) for one, at in where.items() if at == name] for name in nodes}
        return sum(slowdown(nodes[name], group, profiles) * len(group) for name, group in groups.items())

    before = {name: where for name, (where, _) in trials.items()}
    after = {**before, **dict(balanced({name: one.cpu for name, one in nodes.items()}, trials))}
    assert total(after) <= total(before) + 1e-9
    assert after == before or total(after) < total(before)


def look(now: float, steps: dict[str, tuple[int, float]], used: float) -> Snapshot:
    trials = [
        trial(name, "x", cpu=0.1, progress=Progress(1.0, 0.5, 0.5, step, now, cpu, 1000))
        for name, (step, cpu) in steps.items()
    ]
    return snapshot(now, trials, [node("x", 4.0, cpu_used=used), node("y", 4.0)])


def test_a_trial_on_a_node_that_is_not_busy_shows_its_appetite() -> None:
    looks = [look(0.0, {"a": (0, 0.0)}, 1.0), look(30.0, {"a": (10, 30.0)}, 1.0)]
    seen = run(CBalancer(), looks)[-1].state.profiles[TrialId("a")]
    assert (seen.appetite, seen.least, seen.wear) == (1.0, pytest.approx(3.0), 1.0)


def test_on_a_busy_node_only_one_that_leaves_some_of_its_share_does() -> None:
    looks = [look(0.0, {"a": (0, 0.0), "b": (0, 0.0)}, 4.0), look(30.0, {"a": (10, 30.0), "b": (10, 90.0)}, 4.0)]
    profiles = run(CBalancer(), looks)[-1].state.profiles
    assert (profiles[TrialId("a")].appetite, profiles[TrialId("b")].appetite) == (1.0, None)


def test_wear_is_the_work_of_a_step_against_the_least_it_ever_was() -> None:
    looks = [look(0.0, {"a": (0, 0.0)}, 1.0), look(30.0, {"a": (10, 30.0)}, 1.0), look(60.0, {"a": (15, 60.0)}, 1.0)]
    assert run(CBalancer(), looks)[-1].state.profiles[TrialId("a")].wear == pytest.approx(2.0)


def test_two_greedy_trials_are_parted_with_a_reason_in_words() -> None:
    looks = [look(t, {"a": (int(t), 2 * t), "b": (int(t), 2 * t)}, 4.0) for t in (0.0, 30.0)]
    last = run(CBalancer(), looks)[-1]
    assert moves(last) == [("a", "y")]
    assert last.proposals[0].reason == "contention: x slows its trials 2.00 times, y with this one 1.00 times"


def test_an_idle_node_that_is_not_ready_is_no_way_out() -> None:
    looks = [look(t, {"a": (int(t), 2 * t), "b": (int(t), 2 * t)}, 4.0) for t in (0.0, 30.0)]
    closed = [replace(one, nodes=(one.nodes[0], replace(one.nodes[1], ready=False))) for one in looks]
    assert moves(run(CBalancer(), closed)[-1]) == []
