from dataclasses import replace

import pytest

from controllers.core.actions import Migrate, Place, Resize
from controllers.core.errors import SpeconError
from controllers.core.model import Node, NodeName, Phase, Trial, TrialId
from controllers.driving.assembly import check_policy
from controllers.policies import (
    FairShare,
    Fifo,
    Gandiva,
    Guarded,
    LeastUsed,
    LongestRemaining,
    ShortestRemaining,
    SpeCon,
    Stacked,
)
from controllers.policies.comparison.clairvoyant import inform, uninformed_parts
from controllers.policies.registry import parse_policy
from tests.controllers.policies.policy_fakes import moves, node, progress, resizes, run, snapshot, trial

OLD = trial("old", "x", submitted_at=0.0)
NEW = trial("new", "x", submitted_at=10.0)
X, Y = node("x", 4.0), node("y", 4.0)
WORK = {TrialId("old"): 100.0, TrialId("new"): 50.0}


def at_step(known: Trial, step: int, of: int) -> Trial:
    return replace(known, progress=replace(progress(1.0, 5.0), step=step, steps_total=of))


def test_fifo_gives_the_node_to_the_oldest_trial_and_nearly_nothing_to_the_next() -> None:
    given = resizes(run(Fifo(), [snapshot(20.0, [OLD, NEW], [X])])[0])
    assert given["old"] > 0.95 * 2
    assert given["new"] < 0.05 * 2
    assert sum(given.values()) == pytest.approx(2.0)


def test_fair_share_makes_unequal_requests_equal_and_leaves_equal_ones_alone() -> None:
    big, small = trial("big", "x", cpu=3.0), trial("small", "x", cpu=1.0)
    assert resizes(run(FairShare(), [snapshot(0.0, [big, small], [X])])[0]) == {"big": 2.0, "small": 2.0}
    assert resizes(run(FairShare(), [snapshot(0.0, [OLD, NEW], [X])])[0]) == {}


def test_the_clairvoyant_order_by_what_is_left_of_the_work() -> None:
    nearly_done = [at_step(OLD, 8, 10), at_step(NEW, 1, 10)]  # 20 s and 45 s left
    shortest = resizes(run(ShortestRemaining(work=WORK), [snapshot(20.0, nearly_done, [X])])[0])
    longest = resizes(run(LongestRemaining(work=WORK), [snapshot(20.0, nearly_done, [X])])[0])
    assert shortest["old"] > 1.9
    assert longest["new"] > 1.9


def test_the_longest_is_looked_for_again_as_it_gets_shorter_and_the_shortest_need_not_be() -> None:
    seen = snapshot(20.0, [OLD, NEW], [X])
    assert run(LongestRemaining(work=WORK, interval=15), [seen])[0].wake_at == 35.0
    assert run(ShortestRemaining(work=WORK), [seen])[0].wake_at is None


def test_a_clairvoyant_policy_that_was_told_nothing_is_refused_by_name() -> None:
    both = Guarded(policy=Stacked(policies=(SpeCon(), parse_policy("shortest-remaining"))))
    assert uninformed_parts(both) == ["shortest-remaining"]
    with pytest.raises(
        SpeconError, match="'shortest-remaining' must know how much work each trial has, which the local"
    ):
        check_policy(both, frozenset({Migrate, Resize}), "local")
    told = inform(both, WORK)
    assert uninformed_parts(told) == []
    check_policy(told, frozenset({Migrate, Resize}), "simulated")


def test_gandivas_trials_take_turns() -> None:
    looks = [snapshot(now, [OLD, NEW], [X]) for now in (0.0, 30.0, 60.0)]
    first, between, second = run(Gandiva(quantum=60), looks)
    favoured = [max(given := resizes(decision), key=lambda name: given[name]) for decision in (first, second)]
    assert sorted(favoured) == ["new", "old"]
    assert resizes(between) == resizes(first)
    assert [decision.wake_at for decision in (first, between, second)] == [60.0, 60.0, 120.0]


def test_gandiva_moves_one_trial_from_the_fullest_node_and_each_once() -> None:
    crowd = [trial(name, "x", submitted_at=number) for number, name in enumerate("abc")]
    first, second = run(Gandiva(quantum=60), [snapshot(at, crowd, [X, Y]) for at in (0.0, 60.0)])
    assert moves(first) == [("c", "y")]
    assert moves(second) == [("b", "y")]


def test_placement_by_use_prefers_idle_cores_and_counts_what_it_has_just_placed() -> None:
    waiting = [trial(name, phase=Phase.PENDING, gated=True, cpu=1.0) for name in ("a", "b")]
    nodes: list[Node] = [replace(X, cpu_used=1.0), replace(Y, cpu_used=0.5)]
    proposals = run(LeastUsed(), [snapshot(0.0, waiting, nodes)])[0].proposals
    assert [proposal.action for proposal in proposals] == [
        Place(TrialId("a"), (Y.name,)),
        Place(TrialId("b"), (X.name,)),
    ]


def test_placement_by_use_does_not_look_at_requests() -> None:
    packed = trial("packed", "x", cpu=3.0)
    waiting = trial("new", phase=Phase.PENDING, gated=True, cpu=1.0)
    nodes = [replace(X, cpu_used=0.0), replace(Y, cpu_used=4.0)]
    decision = run(LeastUsed(), [snapshot(0.0, [packed, waiting], nodes)])[0]
    assert decision.proposals[0].action == Place(TrialId("new"), (X.name,))


def test_nodes_that_are_used_alike_are_drawn_from_by_seed_and_a_full_one_never() -> None:
    waiting = [trial(f"t{number}", phase=Phase.PENDING, gated=True, cpu=0.0) for number in range(40)]
    nodes = [replace(X, cpu_used=1.0), replace(Y, cpu_used=3.0), replace(node("z", 0.5), cpu_used=0.0, ready=False)]
    look = snapshot(0.0, waiting, nodes)

    def placed(policy: LeastUsed) -> list[str]:
        return [str(p.action.node) for p in run(policy, [look])[0].proposals if isinstance(p.action, Place)]

    assert set(placed(LeastUsed())) == {"x"}
    anywhere = placed(LeastUsed(told_apart=1.0))
    assert 10 < anywhere.count("x") < 30
    assert set(anywhere) == {"x", "y"}
    assert anywhere != placed(LeastUsed(told_apart=1.0, seed=1))


def test_a_node_that_others_request_all_of_takes_no_trial() -> None:
    waiting = trial("a", cpu=0.0, phase=Phase.PENDING, gated=True)
    seen = snapshot(0.0, [waiting], [node("full", cpu=0.0), node("other", cpu=2.0, cpu_used=1.0)])
    (decision,) = run(LeastUsed(), [seen])
    assert [proposal.action for proposal in decision.proposals] == [Place(TrialId("a"), (NodeName("other"),))]
