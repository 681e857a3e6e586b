"""Gangs: what their workers request of each node, and what an attempt that follows another takes in its stead."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from controllers.core.actions import Decision, Migrate, Place, Proposal
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies import Default, Edf, FlowCon, Guarded, Pinned
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.settings import NoState
from tests.controllers.policies.policy_fakes import node, run, snapshot, trial

G, H = TrialId("g"), TrialId("h")
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
    assert full.allows(Place(G, (A, A, B, B)))
    assert not full.allows(Place(G, (A, A, A, B)))


def test_a_gang_that_moves_leaves_its_own_room_to_its_next_attempt() -> None:
    growing = ledger(gang("a", "a", "b"), trial("o", "a", cpu=1.0))
    assert growing.allows(Migrate(G, (A, A, A, B)))
    growing.apply(Migrate(G, (A, A, A, B)))
    assert (growing.requested(A), growing.requested(B)) == (4.0, 1.0)
    assert not ledger(gang("a", "a", "b"), trial("o", "a", cpu=1.5)).allows(Migrate(G, (A, A, A, B)))


def test_a_gang_on_its_way_counts_at_both_ends_but_not_twice_on_a_node_that_it_keeps() -> None:
    moving = gang("a", "a", phase=Phase.MOVING, destination=(A, B, B))
    assert [ledger(moving).requested(name) for name in (A, B)] == [2.0, 2.0]


def zoned(*cpus: float, least: int = 1, others: Sequence[Trial] = ()) -> Capacity:
    """Nodes a, b in zone 1 and c, d in zone 2, with so many cores each; a gang of ``least`` to four workers waits."""
    nodes = [node(name, cpu, zone=zone) for name, cpu, zone in zip("abcd", cpus, ("1", "1", "2", "2"), strict=True)]
    return Capacity.of(snapshot(0.0, [replace(waiting(), min_workers=least), *others], nodes))


@pytest.mark.parametrize(
    ("cpus", "nodes"),
    [
        ((5.0, 4.0, 8.0, 3.0), "bbbb"),
        ((3.0, 2.0, 3.0, 3.0), "aaab"),
        ((3.0, 3.0, 2.0, 2.0), "ccdd"),
        ((2.0, 1.0, 1.0, 1.0), "aabc"),
    ],
    ids=["the smallest single node", "one zone", "the zone it fills", "as few as can be"],
)
def test_a_gang_starts_near_together(cpus: tuple[float, ...], nodes: str) -> None:
    found = zoned(*cpus, least=4).completed(Place(G))
    assert isinstance(found, Place)
    assert "".join(found.nodes) == nodes


@pytest.mark.parametrize(
    ("cpus", "least", "others", "nodes"),
    [
        ((3.0, 2.0, 3.0, 3.0), 1, 0, "aaa"),
        ((2.0, 1.0, 1.0, 1.0), 1, 0, "aabc"),
        ((2.0, 1.0, 1.0, 1.0), 1, 1, "aa"),
        ((2.0, 1.0, 1.0, 1.0), 3, 1, "aab"),
        ((2.0, 2.0, 2.0, 2.0), 1, 1, "aabb"),
        ((1.0, 1.0, 1.0, 0.0), 1, 0, "abc"),
    ],
    ids=[
        "as many as one node holds",
        "twice as many on several nodes",
        "only one node's where others need the rest",
        "its least workers where no node holds them",
        "twice as many where there is room for another trial's, too",
        "fewer where no more fit ever",
    ],
)
def test_an_elastic_gang_starts_on_one_node_unless_all_find_room_and_it_gets_many_more_workers(
    cpus: tuple[float, ...], least: int, others: int, nodes: str
) -> None:
    queue = [replace(waiting(1), id=TrialId(f"other-{number}")) for number in range(others)]
    found = zoned(*cpus, least=least, others=queue).completed(Place(G))
    assert isinstance(found, Place)
    assert "".join(found.nodes) == nodes


@pytest.mark.parametrize(("others", "nodes"), [(0, "aabb"), (3, "aaab")], ids=["there is plenty", "others wait"])
def test_a_gang_that_needs_several_nodes_gets_the_most_cores_unless_others_need_the_room(
    others: int, nodes: str
) -> None:
    queue = [replace(waiting(4), id=TrialId(f"other-{number}")) for number in range(others)]
    found = zoned(3.0, 3.0, 3.0, 3.0, least=4, others=queue).completed(Place(G))
    assert isinstance(found, Place)
    assert "".join(found.nodes) == nodes


def test_a_gang_on_several_nodes_keeps_off_those_that_others_use() -> None:
    busy = trial("o", "b", cpu=2.0)
    nodes = [node(name, 4.0) for name in "abcd"]
    found = Capacity.of(snapshot(0.0, [replace(waiting(5), max_workers=5, min_workers=5), busy], nodes)).completed(
        Place(G)
    )
    assert isinstance(found, Place)
    assert "".join(sorted(found.nodes)) == "aaccd"


def test_a_gang_starts_whole_or_not_at_all() -> None:
    taken = ledger(waiting(), trial("o", "a", cpu=3.0), trial("p", "b", cpu=2.0))
    assert taken.completed(Place(G)) is None
    assert not taken.allows(Place.on(A, waiting()))
    assert not taken.fits(waiting(), A)


def test_where_a_policy_names_a_node_rank_0_goes_there() -> None:
    assert ledger(waiting(), trial("o", "b", cpu=2.0)).completed(Place.on(B, waiting())) == Place(G, (B, A, A, A))


def test_a_gang_that_runs_moves_to_one_node_whole() -> None:
    runs = gang("a", "a", "a")
    assert Migrate.to(B, runs) == Migrate(G, (B, B, B))
    assert not ledger(runs, trial("o", "b", cpu=2.0)).allows(Migrate.to(B, runs))
    assert ledger(runs).allows(Migrate.to(B, runs))


def test_guards_let_a_gang_through_with_a_node_for_each_worker_or_not_at_all() -> None:
    class Wants(Edf):
        def decide(self, snapshot: Snapshot, state: NoState) -> Decision[NoState]:
            return Decision(state, tuple(Proposal(Place(one.id), "") for one in snapshot.trials))

    second = replace(waiting(3), id=TrialId("h"))
    decision = run(
        Guarded(policy=Wants()), [snapshot(0.0, [waiting(), second, replace(waiting(2), id=TrialId("z"))], NODES)]
    )[0]
    assert [proposal.action for proposal in decision.proposals] == [
        Place(G, (A,) * 4),
        Place(H, (B,) * 3),
    ]
    assert [one.action.trial for one, _ in decision.vetoed] == ["z"]


def test_under_a_policy_that_places_no_trial_gangs_start_whole_too_and_under_none_as_the_scheduler_wants() -> None:
    seen = snapshot(0.0, [replace(waiting(4), id=TrialId(name), min_workers=3) for name in ("g", "h", "z")], NODES)
    placed = [proposal.action for proposal in run(Pinned(policy=Guarded(policy=FlowCon())), [seen])[0].proposals]
    assert placed == [Place(G, (A,) * 4), Place(H, (B,) * 4)]
    left_alone = [proposal.action for proposal in run(Pinned(policy=Default()), [seen])[0].proposals]
    assert left_alone == [Place(G), Place(H), Place(TrialId("z"))]


def test_under_a_policy_that_acts_on_nothing_a_gang_starts_whole_on_the_node_that_its_owner_chose() -> None:
    pinned = Pinned(policy=Default(), first_nodes={G: "a"})
    (proposal,) = run(pinned, [snapshot(0.0, [waiting()], NODES)])[0].proposals
    assert proposal.action == Place(G, (A,) * 4)


@pytest.mark.parametrize("workers", [1, 5])
def test_fewer_or_more_workers_than_its_author_allows_are_never_let_through(workers: int) -> None:
    seen = ledger(replace(waiting(2), min_workers=2))
    assert not seen.allows(Place(G, (A,) * workers))
    assert seen.allows(Place(G, (A,) * 2))


def test_a_node_is_that_of_rank_0_and_a_move_leads_to_some() -> None:
    assert (Migrate(G, (B, A)).node, Place(G, (B, A)).node, Place(G).node) == (B, B, None)
    with pytest.raises(ValueError, match="'g' leads to no node"):
        Migrate(G, ())


def test_one_node_named_exactly_is_one_worker() -> None:
    assert ledger(waiting()).completed(Place(G, (A,))) == Place(G, (A,))
