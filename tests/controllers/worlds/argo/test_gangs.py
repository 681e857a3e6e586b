"""Gangs in the Argo world: placed, moved, scaled, suspended, stopped and recovered as one trial."""

from itertools import count

import pytest

from controllers.core.actions import Migrate, Place, Resize, Stop, Suspend
from controllers.core.model import NodeName, Phase, TrialId
from tests.controllers.worlds.argo.conftest import Bench, eventually
from tests.controllers.worlds.argo.fake_api import Call
from tests.controllers.worlds.argo.gang_bench import (
    ASK,
    MOVE,
    N2,
    PLACE,
    REST,
    G,
    at,
    chosen,
    gates,
    notes,
    plan,
    running,
    start,
    stored,
    to,
)
from tests.controllers.worlds.argo.gang_objects import ended, gang_workflow, name_of, worker
from tests.controllers.worlds.argo.objects import UID, WORKFLOW, Json, node, pod


def test_the_pods_of_an_attempt_are_one_trial_by_rank(bench: Bench) -> None:
    running(bench, "n2", "n1", "n1", cpu="100m", has="100m")
    bench.begin()
    found = bench.trial("g")
    assert (found.phase, found.nodes, found.workers) == (Phase.RUNNING, ("n2", "n1", "n1"), 3)
    assert (found.cpu, found.min_workers, found.max_workers, found.attempt) == (0.1, 1, 4, 1)
    assert [trial.id for trial in bench.world.trials()] == [G]


def test_what_its_own_workers_request_counts_once_on_each_node(bench: Bench) -> None:
    running(bench, "n1", "n1", "n2")
    bench.put("pods", pod("a", on="n1", cpu="300m"))
    bench.begin()
    free = {name: bench.world.node(NodeName(name)) for name in ("n1", "n2")}
    assert {name: None if one is None else one.cpu for name, one in free.items()} == {"n1": 0.7, "n2": 1.0}


def test_zones_are_those_of_the_nodes_labels(bench: Bench) -> None:
    near = node("n3")
    near["metadata"]["labels"]["topology.kubernetes.io/zone"] = "east"
    bench.put("nodes", near)
    bench.begin()
    assert [(one.name, one.zone) for one in bench.world.nodes()] == [("n1", ""), ("n2", ""), ("n3", "east")]


def test_a_gang_does_not_run_while_one_of_its_workers_waits(bench: Bench) -> None:
    running(bench, "n1", "n1")
    bench.put("pods", worker(1))
    bench.begin()
    assert (bench.trial("g").phase, bench.trial("g").nodes) == (Phase.PENDING, ())


def test_a_gang_grows_from_one_node_to_two_by_one_checkpoint_and_restart(bench: Bench) -> None:
    running(bench, "n1", "n1")
    bench.begin()
    assert bench.world.apply(to("n1", "n2", "n2")).done
    moving = bench.trial("g")
    assert (moving.phase, moving.moving_to, moving.destination) == (Phase.MOVING, "n1", ("n1", "n2", "n2"))
    bench.until(lambda: bench.pods.commands == [(name_of(0), ASK)])
    assert plan(bench) == ("2,3", "0")
    for rank in range(2):
        bench.put("pods", ended(75, rank, on="n1", notes=notes(bench, rank)))
    record = gang_workflow([("n1", "75")] * 2, [("", None)] * 3, gang="2,3", left="0")
    bench.put("workflows", record)
    for rank in range(2):
        bench.put("pods", worker(rank, 1, gated=True, size=3))
    bench.settle()
    assert gates(bench, 1, 2) == [True, True]
    bench.put("pods", worker(2, 1, gated=True, size=3))
    bench.until(lambda: gates(bench, 1, 3) == [False] * 3)
    assert chosen(bench, 1, 3) == ["host-n1", "host-n2", "host-n2"]
    start(bench, 1, 3)
    bench.until(lambda: bench.trial("g").steady)
    grown = bench.trial("g")
    assert (grown.nodes, grown.workers, grown.moves, grown.attempt) == (("n1", "n2", "n2"), 3, 1, 2)
    bench.until(lambda: plan(bench) == ("2,3,1", "0"))


def test_all_workers_of_an_attempt_share_a_token_that_never_was_before(bench: Bench) -> None:
    bench.put("workflows", gang_workflow([("n1", "75")] * 2, [("", None)] * 2, gang="2,2", left="0"))
    for rank in range(2):
        bench.put("pods", ended(75, rank, on="n1", notes={MOVE: "n1,n2"} if rank == 0 else {}))
        bench.put("pods", worker(rank, 1, gated=True, uid=f"pod-{rank}"))
    bench.begin()
    bench.until(lambda: gates(bench, 1, 2) == [False, False])
    assert {notes(bench, rank, 1)["hera-specon.io/attempt-token"] for rank in range(2)} == {"pod-0"}


def test_a_controller_that_was_killed_between_two_gates_opens_the_rest_as_the_same_attempt(bench: Bench) -> None:
    bench.put("workflows", gang_workflow([("n1", "75")] * 2, [("", None)] * 2, gang="2,2", left="0"))
    bench.put("pods", ended(75, 0, on="n1", notes={MOVE: "n1,n2"}))
    bench.put("pods", ended(75, 1, on="n1"))
    placed = {"hera-specon.io/placed-on": "n1", "hera-specon.io/moved-from": "n1,n1"}
    bench.put("pods", worker(0, 1, on="n1", notes=placed | {"hera-specon.io/attempt-token": "first"}))
    bench.put("pods", worker(1, 1, gated=True))
    bench.begin()
    bench.until(lambda: gates(bench, 1, 2) == [False, False])
    assert chosen(bench, 1, 2)[1] == "host-n2"
    assert notes(bench, 1, 1)["hera-specon.io/attempt-token"] == "first"


def test_a_gate_that_cannot_be_opened_is_tried_again(bench: Bench) -> None:
    bench.put("workflows", gang_workflow([("n1", "75")] * 2, [("", None)] * 2, gang="2,2", left="0"))
    for rank in range(2):
        bench.put("pods", ended(75, rank, on="n1", notes={MOVE: "n1,n2"} if rank == 0 else {}))
        bench.put("pods", worker(rank, 1, gated=True, uid=f"pod-{rank}"))
    failures = count()

    def second_fails_once(call: Call) -> tuple[int, str] | None:
        if call.method == "PATCH" and name_of(1, 1) in call.path and next(failures) == 0:
            return 500, "no"
        return None

    bench.fake.fault = second_fails_once
    bench.begin()
    bench.until(lambda: gates(bench, 1, 2) == [False, False])
    assert {notes(bench, rank, 1)["hera-specon.io/attempt-token"] for rank in range(2)} == {"pod-0"}
    assert {notes(bench, rank, 1)["hera-specon.io/world-size"] for rank in range(2)} == {"2"}


def test_first_attempts_wait_for_a_place_and_get_it_together(bench: Bench) -> None:
    bench.put("workflows", gang_workflow([("", None)] * 2))
    bench.put("pods", worker(0, gated=True))
    bench.put("pods", worker(1, gated=True))
    bench.begin()
    waiting = bench.trial("g")
    assert (waiting.phase, waiting.gated, waiting.workers, waiting.nodes) == (Phase.PENDING, True, 4, ())
    bench.settle()
    assert gates(bench, 0, 2) == [True, True]
    assert bench.world.apply(at("n1", "n2")).done
    bench.until(lambda: gates(bench, 0, 2) == [False, False])
    assert chosen(bench, 0, 2) == ["host-n1", "host-n2"]
    assert plan(bench) == ("2,1", "")


def test_a_place_for_more_workers_than_there_are_pods_gets_more_pods_first(bench: Bench) -> None:
    bench.put("workflows", gang_workflow([("", None)]))
    bench.put("pods", worker(0, gated=True, size=1))
    bench.begin()
    assert bench.world.apply(at("n1", "n2", "n2")).done
    bench.until(lambda: plan(bench) == ("3,1", ""))
    assert not bench.trial("g").gated
    bench.settle()
    assert gates(bench, 0, 1) == [True]
    bench.put("workflows", gang_workflow([("", None)] * 3, gang="3,1"))
    for rank in (1, 2):
        bench.put("pods", worker(rank, gated=True, size=3))
    bench.until(lambda: gates(bench, 0, 3) == [False] * 3)
    assert chosen(bench, 0, 3) == ["host-n1", "host-n2", "host-n2"]
    assert {notes(bench, rank)["hera-specon.io/world-size"] for rank in range(3)} == {"3"}


def test_a_place_without_nodes_takes_what_fits(bench: Bench) -> None:
    bench.put("nodes", node("n2", "250m"))
    bench.put("nodes", node("n1", "50m"))
    bench.put("workflows", gang_workflow([("", None)]))
    bench.put("pods", worker(0, gated=True, size=1))
    bench.begin()
    assert bench.world.apply(Place(G)).done
    bench.until(lambda: notes(bench).get(PLACE) == "n2,n2")


def test_a_place_without_nodes_is_refused_where_not_even_the_least_fits(bench: Bench) -> None:
    bench.put("nodes", node("n2", "90m"))
    bench.put("nodes", node("n1", "50m"))
    bench.put("workflows", gang_workflow([("", None)]))
    bench.put("pods", worker(0, gated=True, size=1))
    bench.begin()
    outcome = bench.world.apply(Place(G))
    assert (outcome.done, "no nodes have room for 1 workers" in outcome.detail) == (False, True)


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        (("n1",) * 5, "from 1 to 4"),
        (("n1", "n3"), "there is no node n3"),
        (("n1", "n2", "n2", "n2"), "do not fit on n2"),
        (("n1", "n1"), "already"),
    ],
)
def test_a_move_that_a_gang_can_not_make_is_refused(bench: Bench, nodes: tuple[str, ...], why: str) -> None:
    bench.put("nodes", node("n2", "250m"))
    running(bench, "n1", "n1")
    bench.begin()
    outcome = bench.world.apply(to(*nodes))
    assert (outcome.done, why in outcome.detail) == (False, True)
    assert bench.trial("g").steady


def test_a_gang_that_grows_where_it_is_needs_room_only_for_what_is_new(bench: Bench) -> None:
    bench.put("nodes", node("n1", "300m"))
    running(bench, "n1", "n1")
    bench.begin()
    assert bench.world.apply(to("n1", "n1", "n1")).done


def test_room_promised_to_a_gang_is_not_promised_to_another_trial_nor_held_against_itself(bench: Bench) -> None:
    bench.put("nodes", node("n2", "250m"))
    running(bench, "n1", "n1")
    bench.put("workflows", _with_a(gang_workflow([("n1", None)] * 2, gang="2,1")))
    bench.put("pods", pod("a", on="n1"))
    bench.begin()
    assert bench.world.apply(to("n2", "n2")).done
    assert not bench.world.apply(Migrate(TrialId(f"{UID}.sweep.a"), (N2,))).done
    bench.until(lambda: MOVE in notes(bench))
    for rank in range(2):
        bench.put("pods", ended(75, rank, on="n1", notes=notes(bench, rank)))
        bench.put("pods", worker(rank, 1, gated=True))
    bench.put("workflows", _with_a(gang_workflow([("n1", "75")] * 2, [("", None)] * 2, gang="2,2", left="0")))
    bench.until(lambda: gates(bench, 1, 2) == [False, False])
    assert chosen(bench, 1, 2) == ["host-n2", "host-n2"]


def _with_a(made: Json) -> Json:
    ids = {f"{WORKFLOW}-a-0": {"id": f"{WORKFLOW}-a-0", "type": "Pod", "templateName": "other"}}
    made["status"]["nodes"] |= ids
    return made


def test_a_suspended_gang_holds_nothing_and_goes_on_with_as_many_workers_as_it_is_given(bench: Bench) -> None:
    running(bench, "n1", "n2", "n2")
    bench.begin()
    assert bench.world.apply(Suspend(G)).done
    bench.until(lambda: bench.pods.commands == [(name_of(0), ASK)])
    assert (plan(bench), notes(bench)[REST]) == (("3,1", "0"), "suspend")
    for rank, name in enumerate(("n1", "n2", "n2")):
        bench.put("pods", ended(75, rank, on=name, size=3, notes=notes(bench, rank)))
    bench.put("workflows", gang_workflow([("n1", "75")] * 3, [("", None)], gang="3,1", left="0"))
    bench.put("pods", worker(0, 1, gated=True, size=1))
    bench.until(lambda: bench.trial("g").phase is Phase.SUSPENDED)
    found = bench.trial("g")
    assert (found.gated, found.workers, found.nodes, found.suspensions) == (True, 3, (), 1)
    bench.settle()
    assert gates(bench, 1, 1) == [True]
    # Until the watch has shown what was noted on the pod, the world is busy with it.
    bench.until(lambda: bench.world.apply(at("n2", "n2")).done)
    bench.until(lambda: plan(bench) == ("3,2,1", "0"))
    bench.put("workflows", gang_workflow([("n1", "75")] * 3, [("", None)] * 2, gang="3,2,1", left="0"))
    bench.put("pods", worker(1, 1, gated=True, size=2))
    bench.until(lambda: gates(bench, 1, 2) == [False, False])
    start(bench, 1, 2)
    bench.until(lambda: bench.trial("g").steady)
    assert (bench.trial("g").nodes, bench.trial("g").suspensions) == (("n2", "n2"), 1)


def test_a_gang_that_is_placed_as_soon_as_it_is_suspended_was_suspended_all_the_same(bench: Bench) -> None:
    running(bench, "n1")
    bench.begin()
    assert bench.world.apply(Suspend(G)).done
    bench.until(lambda: bench.pods.commands == [(name_of(0), ASK)])
    bench.put("pods", ended(75, 0, on="n1", size=1, notes=notes(bench, 0)))
    bench.put("workflows", gang_workflow([("n1", "75")], [("", None)], gang="1,1", left="0"))
    bench.put("pods", worker(0, 1, gated=True, size=1))
    # Nobody drives the world in between, so that nothing was noted on the pod yet.
    eventually(lambda: bench.trial("g").phase is Phase.SUSPENDED)
    assert bench.world.apply(at("n2")).done
    bench.until(lambda: gates(bench, 1, 1) == [False])
    assert bench.trial("g").suspensions == 1


def test_a_stopped_gang_leaves_and_its_next_attempt_is_one_pod_that_only_ends(bench: Bench) -> None:
    running(bench, "n1", "n2")
    bench.begin()
    assert bench.world.apply(Stop(G, "good enough")).done
    bench.until(lambda: bench.pods.commands == [(name_of(0), ASK)])
    assert (plan(bench), bench.trial("g").phase) == (("2,1", "0"), Phase.STOPPING)


def test_a_gang_that_is_stopped_before_it_begins_loses_all_its_pods_to_ones_that_only_end(bench: Bench) -> None:
    bench.put("workflows", gang_workflow([("", None)] * 2))
    bench.put("pods", worker(0, gated=True))
    bench.put("pods", worker(1, gated=True))
    bench.begin()
    assert bench.world.apply(Stop(G, "no use")).done
    bench.until(lambda: stored(bench, 0) is None and stored(bench, 1) is None)
    assert bench.pods.commands == []


def test_all_workers_get_the_same_share(bench: Bench) -> None:
    running(bench, "n1", "n2")
    bench.begin()
    assert bench.world.apply(Resize(G, 0.3)).done
    bench.until(lambda: len(bench.fake.of("PATCH", "/resize")) == 2)
    assert bench.trial("g").cpu == 0.1
    for rank, name in enumerate(("n1", "n2")):
        bench.put("pods", worker(rank, on=name, cpu="300m", has="300m", notes=notes(bench, rank)))
    bench.until(lambda: bench.trial("g").cpu == 0.3)


def test_a_share_that_one_worker_is_refused_is_taken_back_from_the_others(bench: Bench) -> None:
    running(bench, "n1", "n2")
    bench.begin()
    bench.fake.fault = lambda call: (403, "no") if name_of(1) in call.path and "/resize" in call.path else None
    assert bench.world.apply(Resize(G, 0.3)).done
    bench.until(lambda: "ResizeFailed" in bench.told.reasons)
    asked = [one["resources"]["requests"]["cpu"] for one in (stored(bench, 0) or {})["spec"]["containers"][1:]]
    assert asked == ["100m"]


def test_a_share_that_does_not_fit_two_workers_of_a_node_is_refused(bench: Bench) -> None:
    running(bench, "n1", "n1")
    bench.begin()
    assert "do not fit on n1" in bench.world.apply(Resize(G, 0.6)).detail
    assert bench.world.apply(Resize(G, 0.5)).done
