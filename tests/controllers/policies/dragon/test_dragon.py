"""DRAGON: gangs start whole and near together, shrink for one that starves, and grow when it is quiet."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.actions import Action, Decision, Migrate, Place
from controllers.core.model import NodeName, Phase, Progress, Snapshot, Trial, TrialId
from controllers.policies import Ahead, Dragon, GangFifo, Guarded, Stacked, Volcano
from controllers.policies.dragon.policy import DragonState
from controllers.policies.kit.capacity import Capacity
from tests.controllers.policies.policy_fakes import node, resizes, run, snapshot, trial
from tests.property_examples import examples

A, B = NodeName("a"), NodeName("b")
NODES = (node("a", 4.0), node("b", 4.0))
BUSY = Progress(1.0, 0.5, 0.5, 10, 0.0, steps_total=1000)


def gang(name: str, *nodes: str, least: int = 1, most: int = 4, at: float = 0.0) -> Trial:
    """Return a gang that runs, with 1000 steps to make, or one that waits."""
    shown = trial(name, *nodes, min_workers=least, max_workers=most, submitted_at=at, progress=BUSY)
    if nodes:
        return shown
    return replace(shown, phase=Phase.PENDING, gated=True, attempt=0, workers=most, progress=None)


def actions(decision: Decision[DragonState]) -> list[Action]:
    return [proposal.action for proposal in decision.proposals]


def after(policy: Dragon, *steps: tuple[float, tuple[Trial, ...]]) -> Decision[DragonState]:
    """Return the last decision over what was seen at each time; each trial that runs has reported ever since."""
    seen = [snapshot(now, [_reported(one, now) for one in trials], NODES) for now, trials in steps]
    return run(policy, seen)[-1]


def _reported(one: Trial, now: float) -> Trial:
    return one if one.progress is None else replace(one, progress=replace(one.progress, step=10 + int(now), at=now))


def test_a_gang_starts_with_as_many_workers_as_fit_near_together() -> None:
    assert actions(after(Dragon(), (0.0, (gang("g"),)))) == [Place(TrialId("g"), (A,) * 4)]
    busy = gang("x", "a", "a", most=2)
    assert actions(after(Dragon(), (0.0, (gang("g", most=3), busy)))) == [Place(TrialId("g"), (B,) * 3)]


def test_those_that_start_together_leave_each_other_their_least_workers() -> None:
    places = actions(after(Dragon(), (0.0, tuple(gang(f"g{number}") for number in range(5)))))
    counts = [len(place.nodes) for place in places if isinstance(place, Place)]
    assert len(counts) == 5
    assert sum(counts) == 8


def test_who_does_not_fit_holds_up_nobody_until_it_starves() -> None:
    full = gang("x", "a", "a", "a", "a", least=4), gang("y", "b", "b", "b", least=3)
    waiting = gang("big", least=3), gang("small", least=1, at=1.0)
    assert [one.trial for one in actions(after(Dragon(), (0.0, (*full, *waiting))))] == ["small"]


def test_others_shrink_for_one_that_starves_and_only_as_far_as_it_needs() -> None:
    running = gang("x", "a", "a", "a", "a"), gang("y", "b", "b", "b", "b", least=4)
    head = gang("head", least=2)
    policy = Dragon()
    assert actions(after(policy, (0.0, (*running, head)), (29.0, (*running, head)))) == []
    story = ((0.0, running), (50.0, (*running, head)), (81.0, (*running, head)))
    decision = after(policy, *story)
    assert actions(decision) == [Migrate(TrialId("x"), (A, A))]
    assert decision.state.reserved is not None


def test_what_was_freed_goes_to_the_one_that_starves() -> None:
    before = gang("x", "a", "a", "a", "a"), gang("y", "b", "b", "b", "b", least=4)
    head, late = gang("head", least=2), gang("late", least=1, at=60.0)
    freed = gang("x", "a", "a"), before[1]
    leaving = replace(before[0], phase=Phase.MOVING, destination=(A, A)), before[1]
    story = (
        (0.0, before),
        (50.0, (*before, head)),
        (81.0, (*before, head, late)),
        (85.0, (*leaving, head, late)),
        (91.0, (*freed, head, late)),
    )
    assert actions(after(Dragon(), *story[:4])) == []
    assert actions(after(Dragon(), *story))[0] == Place(TrialId("head"), (A, A))


def test_a_reservation_that_is_never_filled_is_given_back() -> None:
    before = gang("x", "a", "a", "a", "a"), gang("y", "b", "b", "b", "b", least=4)
    leaving = replace(before[0], phase=Phase.MOVING, destination=(A, A)), before[1]
    head = gang("head", least=2)
    story = ((0.0, before), (50.0, (*before, head)), (81.0, (*before, head)), (202.0, (*leaving, head)))
    state = after(Dragon(), *story).state
    assert state.reserved is None
    assert state.given_back == {"head": 202.0}


def test_gangs_grow_when_nobody_waits_and_it_has_been_quiet() -> None:
    alone = (gang("x", "a"),)
    assert actions(after(Dragon(), (0.0, alone), (59.0, alone))) == []
    assert actions(after(Dragon(), (0.0, alone), (61.0, alone))) == [Migrate(TrialId("x"), (A,) * 4)]


def test_a_gang_that_is_nearly_done_is_not_restarted() -> None:
    nearly = replace(gang("x", "a"), progress=replace(BUSY, steps_total=100))
    assert actions(after(Dragon(), (0.0, (nearly,)), (61.0, (nearly,)))) == []


def test_gangs_do_not_grow_into_another_zone() -> None:
    far = (node("a", 1.0, zone="1"), node("b", 4.0, zone="2"))
    seen = [snapshot(now, [replace(_reported(gang("x", "a"), now), max_workers=5)], far) for now in (0.0, 61.0)]
    moved = run(Dragon(), seen)[-1].proposals[0].action
    assert isinstance(moved, Migrate)
    assert set(moved.nodes) == {B}


def test_its_placement_goes_with_the_shares_of_another_policy() -> None:
    alone = gang("x", "a"), gang("z", "a", most=1), gang("g")
    both = Guarded(policy=Stacked(policies=(Dragon(), Ahead(interval=1.0))))
    decisions = run(both, [snapshot(now, [_reported(one, now) for one in alone], NODES) for now in (0.0, 5.0, 10.0)])
    assert [one.action.trial for one in decisions[0].proposals if isinstance(one.action, Place)] == ["g"]
    assert any(resizes(decision) for decision in decisions)


def test_in_strict_order_a_large_gang_holds_up_a_small_one_and_otherwise_not() -> None:
    seen = snapshot(
        0.0, [gang("x", "a", "a", "a", least=3), gang("big", least=6, most=6), gang("small", most=2, at=1.0)], NODES
    )
    assert run(GangFifo(), [seen])[0].proposals == ()
    placed = [proposal.action for proposal in run(Volcano(), [seen])[0].proposals]
    assert placed == [Place(TrialId("small"), (B, B))]


workers = st.integers(1, 4)
gangs = st.lists(st.tuples(workers, workers, st.booleans(), st.floats(0, 100)), min_size=1, max_size=8)


@settings(max_examples=examples(60))
@given(gangs, st.lists(st.floats(1.0, 100.0), min_size=1, max_size=8))
def test_whatever_waits_and_runs_only_whole_gangs_within_their_bounds_and_the_nodes_are_asked_for(
    drawn: list[tuple[int, int, bool, float]], waits: list[float]
) -> None:
    policy, now, room = Dragon(), 0.0, 8
    state, trials = policy.initial(), list[Trial]()
    for number, (one, other, runs, at) in enumerate(drawn):
        least, most = min(one, other), max(one, other)
        fits = runs and least <= room
        where = [("a" if room - place > 4 else "b") for place in range(least)] if fits else []
        room -= len(where)
        trials.append(gang(f"g{number}", *where, least=least, most=most, at=at))
    for wait in waits:
        now += wait
        seen = Snapshot(now, tuple(_reported(one, now) for one in trials), NODES)
        decision = policy.decide(seen, state)
        assert decision == policy.decide(replace(seen, trials=seen.trials[::-1], nodes=seen.nodes[::-1]), state)
        state, capacity = decision.state, Capacity.of(seen)
        for action in actions(decision):
            if isinstance(action, Place | Migrate):
                assert capacity.allows(action)
                capacity.apply(action)
