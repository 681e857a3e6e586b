"""What a sweep sees and may do of a cluster that it shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from controllers.core.actions import Action, Migrate, Place, Resize
from controllers.core.devices import Devices
from controllers.core.model import Ask, Node, NodeKind, NodeName, Phase, Trial, TrialId
from controllers.core.ports import DONE, Outcome
from controllers.driving.arbitration import Arbitration, Member
from controllers.driving.shared_world import OTHERS_FIRST, TOO_MANY_MOVES, UNSEEN, AsksOfAll, SharedWorld
from controllers.policies.arbiter import Amount, Arbiter, Part
from tests.controllers.policies.policy_fakes import node, trial
from tests.controllers.quiet_world import QuietWorld

N1 = NodeName("n1")


@dataclass
class Listed(QuietWorld):
    """Trials and nodes as they are listed; takes on whatever is asked."""

    there: list[Trial] = field(default_factory=list)
    places: list[Node] = field(default_factory=list)
    coming: list[NodeKind] = field(default_factory=list)
    done: list[Action] = field(default_factory=list)

    def trials(self) -> Sequence[Trial]:
        return self.there

    def nodes(self) -> Sequence[Node]:
        return self.places

    def kinds(self) -> Sequence[NodeKind]:
        return self.coming

    def apply(self, action: Action) -> Outcome:
        self.done.append(action)
        return DONE

    def short(self, trial: str) -> str:
        return trial.removeprefix("uid.")


class Owners:
    def __init__(self, **asks: Ask) -> None:
        self._asks = {name.replace("_", "."): ask for name, ask in asks.items()}

    def asked(self) -> Mapping[str, Ask]:
        return self._asks


def waiting(name: str) -> Trial:
    return trial(name, phase=Phase.PENDING, gated=True, attempt=0)


def test_without_a_part_it_shows_the_very_nodes_of_the_world_within() -> None:
    world = Listed(places=[node("n1", 4.0)])
    shared = SharedWorld(world)
    assert shared.nodes() is world.places
    shared.part = Part()
    assert shared.nodes() is world.places
    assert shared.yielding() == {}


def test_a_node_is_shown_without_the_room_that_is_meant_for_others() -> None:
    gpus = Devices.of({"nvidia.com/gpu": 4})
    world = Listed(places=[node("n1", 4.0, memory=8.0, devices=gpus, room=5.0), node("n2", 4.0)])
    shared = SharedWorld(world)
    claimed = Amount(3.0, 2.0, Devices.of({"nvidia.com/gpu": 3}))
    shared.part = Part(claims={N1: claimed}, own={N1: Amount(1.0, 0.0, Devices.of({"nvidia.com/gpu": 1}))})
    first, second = shared.nodes()
    assert (first.cpu, first.memory, first.room) == (2.0, 6.0, 3.0)
    assert first.devices == Devices.of({"nvidia.com/gpu": 2})
    assert second is world.places[1]
    assert shared.whole_nodes() is world.places


def test_no_more_moves_are_made_than_are_its_part_and_all_else_is() -> None:
    world = Listed([trial("a", "n1"), trial("b", "n1", phase=Phase.MOVING)])
    shared = SharedWorld(world)
    move = Migrate(TrialId("a"), (NodeName("n2"),))
    shared.part = Part(moves=1)
    assert shared.apply(move).detail == TOO_MANY_MOVES
    assert shared.apply(Resize(TrialId("a"), 2.0)).done
    shared.part = Part(moves=2)
    assert shared.apply(move).done
    assert world.done == [Resize(TrialId("a"), 2.0), move]


def test_kinds_with_a_bound_are_shown_as_far_as_they_may_come_for_it() -> None:
    shared = SharedWorld(Listed(coming=[NodeKind("few", 4.0, more=8), NodeKind("any", 4.0), NodeKind("", 4.0, more=1)]))
    shared.part = Part(new_nodes={"few": 3})
    assert {kind.name: kind.more for kind in shared.kinds()} == {"few": 3, "any": float("inf"), "": 1}


def test_what_gives_back_and_what_must_not_start_yield_unless_an_owner_asks_for_more() -> None:
    shared = SharedWorld(Listed())
    asks = AsksOfAll(Owners(s_b=Ask.STOP), shared)
    assert asks.asked() == {"s.b": Ask.STOP}
    shared.part = Part(gives_back=(TrialId("uid.s.a"), TrialId("uid.s.b")), held_back=frozenset({TrialId("uid.s.c")}))
    assert asks.asked() == {"s.a": Ask.YIELD, "s.b": Ask.STOP, "s.c": Ask.YIELD}


def test_a_trial_that_was_placed_counts_as_starting_until_it_runs_or_waits_again() -> None:
    world = Listed([waiting("a"), waiting("b")])
    shared = SharedWorld(world)
    shared.apply(Place(TrialId("a"), (N1,)))
    world.there = [replace(waiting("a"), gated=False), waiting("b")]
    assert [one.starting for one in shared.claimants({})] == [True, False]
    world.there = [trial("a", "n1"), waiting("b")]
    assert [one.starting for one in shared.claimants({})] == [False, False]


def test_beside_others_no_more_trials_wait_at_the_scheduler_than_may_and_each_keeps_its_claim() -> None:
    unknown, named = NodeKind("", 4.0), NodeKind("big", 4.0)
    world = Listed([waiting("a"), waiting("b")], coming=[unknown, named])
    shared = SharedWorld(world)
    shared.part = Part(asks=0)
    assert shared.apply(Place(TrialId("a"))).detail == OTHERS_FIRST
    assert [kind.name for kind in shared.kinds()] == ["big"]
    shared.part = Part(asks=1)
    assert shared.kinds() == [unknown, named]
    assert shared.apply(Place(TrialId("a"))).done
    world.there = [replace(waiting("a"), gated=False), waiting("b")]
    assert not any(one.starting for one in shared.claimants({}))
    assert [one.held_back for one in shared.claimants({})] == [False, True]
    assert shared.apply(Place(TrialId("b"))).detail == OTHERS_FIRST
    assert shared.apply(Place(TrialId("b"), (N1,))).done
    assert world.done == [Place(TrialId("a")), Place(TrialId("b"), (N1,))]


def test_a_trial_that_came_since_the_last_round_starts_only_after_the_next() -> None:
    world = Listed([waiting("a")], [node("n1", 4.0)])
    sweep, arbitration = member("red", world), Arbitration(Arbiter())
    arbitration.decide(0.0, [sweep])
    world.there = [waiting("a"), waiting("b")]
    assert sweep.world.apply(Place(TrialId("b"), (N1,))).detail == UNSEEN
    assert sweep.world.apply(Place(TrialId("a"), (N1,))).done
    arbitration.decide(1.0, [sweep])
    assert sweep.world.apply(Place(TrialId("b"), (N1,))).done


def test_a_sweep_alone_may_ask_for_as_many_nodes_as_it_likes() -> None:
    world = Listed([waiting("a"), waiting("b")])
    shared = SharedWorld(world)
    shared.part = Part()
    assert all(shared.apply(Place(TrialId(name))).done for name in "ab")


def test_a_paused_trial_has_a_claim_only_while_it_still_runs() -> None:
    shared = SharedWorld(Listed([waiting("uid.s.a"), trial("uid.s.b", "n1"), trial("uid.s.c", phase=Phase.FAILED)]))
    paused = {"s.a": Ask.PAUSE, "s.b": Ask.PAUSE}
    assert [one.id for one in shared.claimants(paused)] == ["uid.s.b"]
    assert [one.id for one in shared.claimants({})] == ["uid.s.a", "uid.s.b"]


def member(name: str, world: Listed) -> Member:
    return Member(name=name, namespace=name, world=SharedWorld(world), needs=lambda: frozenset({Place}))


def test_nodes_are_whole_again_for_the_arbiter_though_each_sweep_sees_them_less_what_others_hold() -> None:
    # n1 has 8 cores: a stranger has 2, red 4 and blue 1.
    red = member("red", Listed([trial(f"r{n}", "n1", cpu=1.0) for n in range(4)], [node("n1", 5.0)]))
    blue = member("blue", Listed([trial("b0", "n1", cpu=1.0), *map(waiting, ("b1", "b2", "b3"))], [node("n1", 2.0)]))
    arbitration = Arbitration(Arbiter(settles=0, keeps=0))
    parts = arbitration.decide(0.0, [red, blue])
    assert sum(part.entitled.cpu for part in parts.values()) == 6.0
    assert parts["red"].entitled.cpu == 3.0
    assert len(parts["red"].gives_back) == 1
    assert red.world.part is parts["red"]


def test_a_sweep_whose_trials_have_ended_has_no_part_any_more() -> None:
    world = Listed([trial("a", "n1")], [node("n1", 4.0)])
    alone = member("red", world)
    arbitration = Arbitration(Arbiter())
    arbitration.decide(0.0, [alone])
    assert alone.world.part is not None
    world.there = [trial("a", phase=Phase.SUCCEEDED)]
    assert arbitration.decide(1.0, [alone]) == {}
    assert alone.world.part is None
