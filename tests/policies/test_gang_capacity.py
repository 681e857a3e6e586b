"""Gangs: what their workers request of each node, and what an attempt that follows another takes in its stead."""

from dataclasses import replace

import pytest

from controllers.core.model import Migrate, NodeName, Phase, Place, Trial, TrialId
from controllers.policies.kit.capacity import Capacity
from tests.policies.policy_fakes import node, snapshot, trial

G = TrialId("g")
A, B = NodeName("a"), NodeName("b")
NODES = [node("a", 4.0), node("b", 4.0)]


def gang(*nodes: str, **changes: object) -> Trial:
    elastic = replace(trial("g", *nodes, cpu=1.0), min_workers=1, max_workers=4)
    return replace(elastic, **changes)  # type: ignore[arg-type]  # fields of Trial


def waiting(workers: int = 4) -> Trial:
    return gang(phase=Phase.PENDING, gated=True, attempt=0, workers=workers)


def ledger(*trials: Trial) -> Capacity:
    return Capacity.of(snapshot(0.0, trials, NODES))


def test_room_is_counted_on_each_node_over_all_workers_there() -> None:
    full = ledger(waiting(), trial("o", "a", cpu=2.0))
    assert full.allows(Place(G, A, nodes=(A, A, B, B)))
    assert not full.allows(Place(G, A, nodes=(A, A, A, B)))
    assert not full.allows(Place(G, A))


def test_a_gang_that_moves_leaves_its_own_room_to_its_next_attempt() -> None:
    growing = ledger(gang("a", "a", "b"), trial("o", "a", cpu=1.0))
    assert growing.allows(Migrate(G, A, nodes=(A, A, A, B)))
    growing.apply(Migrate(G, A, nodes=(A, A, A, B)))
    assert (growing.requested(A), growing.requested(B)) == (4.0, 1.0)
    assert not ledger(gang("a", "a", "b"), trial("o", "a", cpu=1.5)).allows(Migrate(G, A, nodes=(A, A, A, B)))


def test_a_gang_on_its_way_counts_at_both_ends_but_not_twice_on_a_node_that_it_keeps() -> None:
    moving = gang("a", "a", phase=Phase.MOVING, moving_to=A, moving_to_nodes=(A, B, B))
    assert [ledger(moving).requested(name) for name in (A, B)] == [2.0, 2.0]


@pytest.mark.parametrize("workers", [1, 5])
def test_fewer_or_more_workers_than_its_author_allows_are_never_let_through(workers: int) -> None:
    seen = ledger(replace(waiting(2), min_workers=2))
    assert not seen.allows(Place(G, A, nodes=(A,) * workers))
    assert seen.allows(Place(G, A, nodes=(A,) * 2))


def test_rank_0_goes_to_the_node_that_an_action_names() -> None:
    with pytest.raises(ValueError, match="first node 'b'"):
        Migrate(G, A, (B, A))
    with pytest.raises(ValueError, match="not to None"):
        Place(G, nodes=(B, A))
