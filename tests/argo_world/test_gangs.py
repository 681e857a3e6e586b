"""Gangs in the Argo world: placed, moved, scaled, suspended, stopped and recovered as one trial."""

import time
from itertools import count

import pytest

from controllers.core.actions import Migrate, Place, Resize, Stop, Suspend
from controllers.core.model import NodeName, Phase, TrialId
from controllers.worlds.argo.commands import Timeouts
from tests.argo_world.conftest import Bench
from tests.argo_world.fake_api import Call
from tests.argo_world.gang_objects import TRIAL, ended, gang_workflow, name_of, worker
from tests.argo_world.objects import NAMESPACE, UID, WORKFLOW, Json, node, pod, stamp

G = TrialId(TRIAL)
N1, N2 = NodeName("n1"), NodeName("n2")
ASK = "/var/run/argo/argoexec"
PLACE, MOVE, REST = "hera-specon.io/place", "hera-specon.io/move-to", "hera-specon.io/rest"


def to(*nodes: str) -> Migrate:
    return Migrate(G, NodeName(nodes[0]), tuple(NodeName(name) for name in nodes))


def at(*nodes: str) -> Place:
    return Place(G, NodeName(nodes[0]), nodes=tuple(NodeName(name) for name in nodes))


def running(bench: Bench, *nodes: str, attempt: int = 0, **changes: object) -> None:
    """Put the pods of a gang that runs on ``nodes``, and Argo's record of it."""
    size, plan = len(nodes), changes.pop("gang", None)
    before: list[list[tuple[str, str | None]]] = [[("n1", "75")]] * attempt
    workflow = gang_workflow(*before, [(name, None) for name in nodes], gang=str(plan or f"{size},1"))
    bench.put("workflows", workflow)
    for rank, name in enumerate(nodes):
        bench.put("pods", worker(rank, attempt, on=name, size=size, **changes))


def stored(bench: Bench, rank: int, attempt: int = 0) -> Json | None:
    return bench.fake.store.objects["pods"].get(f"{NAMESPACE}/{name_of(rank, attempt)}")


def notes(bench: Bench, rank: int = 0, attempt: int = 0) -> dict[str, str]:
    return dict((stored(bench, rank, attempt) or {})["metadata"]["annotations"])


def plan(bench: Bench) -> tuple[str, str]:
    """The plan on the workflow: size of each attempt, and which were asked to leave."""
    found = bench.fake.store.objects["workflows"][f"{NAMESPACE}/{WORKFLOW}"]["metadata"]["annotations"]
    return found.get("hera-specon.io/gang-sweep-g", ""), found.get("hera-specon.io/left-sweep-g", "")


def gates(bench: Bench, attempt: int, workers: int) -> list[bool]:
    return [bool((stored(bench, rank, attempt) or {})["spec"].get("schedulingGates")) for rank in range(workers)]


def chosen(bench: Bench, attempt: int, workers: int) -> list[str | None]:
    found = ((stored(bench, rank, attempt) or {})["spec"] for rank in range(workers))
    return [(spec.get("nodeSelector") or {}).get("kubernetes.io/hostname") for spec in found]


def start(bench: Bench, attempt: int, workers: int) -> None:
    """Let the pods whose gates were opened run where they were sent."""
    for rank in range(workers):
        written = notes(bench, rank, attempt)
        host = written.get("hera-specon.io/placed-on", "n1")
        bench.put("pods", worker(rank, attempt, on=host, size=workers, notes=written))


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
    assert (moving.phase, moving.moving_to, moving.moving_to_nodes) == (Phase.MOVING, "n1", ("n1", "n2", "n2"))
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


def test_a_place_without_nodes_takes_what_fits_and_nothing_where_not_even_the_least_does(bench: Bench) -> None:
    bench.put("nodes", node("n2", "250m"))
    bench.put("nodes", node("n1", "50m"))
    bench.put("workflows", gang_workflow([("", None)]))
    bench.put("pods", worker(0, gated=True, size=1))
    bench.begin()
    assert bench.world.apply(Place(G)).done
    bench.until(lambda: notes(bench).get(PLACE) == "n2,n2")
    bench.put("nodes", node("n2", "90m"))
    bench.put("pods", worker(0, gated=True, size=1))
    bench.until(lambda: bench.world.node(N2).cpu == 0.09)  # type: ignore[union-attr]  # n2 is there
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
    assert not bench.world.apply(Migrate(TrialId(f"{UID}.sweep.a"), N2)).done
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
    assert bench.world.apply(at("n2", "n2")).done
    bench.until(lambda: plan(bench) == ("3,2,1", "0"))
    bench.put("workflows", gang_workflow([("n1", "75")] * 3, [("", None)] * 2, gang="3,2,1", left="0"))
    bench.put("pods", worker(1, 1, gated=True, size=2))
    bench.until(lambda: gates(bench, 1, 2) == [False, False])
    start(bench, 1, 2)
    bench.until(lambda: bench.trial("g").steady)
    assert bench.trial("g").nodes == ("n2", "n2")


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


def test_when_a_worker_fails_the_others_are_asked_then_killed_then_removed(bench: Bench) -> None:
    running(bench, "n1", "n2", "n2", grace=1)
    bench.put("pods", ended(1, 1, on="n2", size=3))
    bench.begin(Timeouts(kill_every=1.0))
    bench.until(lambda: stored(bench, 0) is None and stored(bench, 2) is None)
    rounds = [bench.pods.commands[at : at + 2] for at in range(0, 6, 2)]
    assert [sorted(names) for names in rounds] == [
        [(name_of(0), ASK), (name_of(2), ASK)],
        [(name_of(0), "/bin/sh"), (name_of(2), "/bin/sh")],
        [(name_of(0), "/bin/sh"), (name_of(2), "/bin/sh")],
    ]


def test_a_worker_whose_pod_vanishes_counts_as_failed(bench: Bench) -> None:
    running(bench, "n1", "n2")
    bench.begin()
    assert bench.trial("g").steady
    bench.fake.store.drop("pods", f"{NAMESPACE}/{name_of(1)}")
    bench.until(lambda: (name_of(0), ASK) in bench.pods.commands)


def test_a_gang_that_failed_starts_again_where_it_was_as_soon_as_there_is_room(bench: Bench) -> None:
    bench.put("nodes", node("n2", "100m"))
    bench.put("nodes", node("n1", "150m"))
    bench.put("pods", pod("a", on="n1", cpu="100m"))
    record = gang_workflow([("n1", "1"), ("n2", "76")], [("", None)] * 2, gang="2,2")
    bench.put("workflows", record)
    for rank, (name, code) in enumerate((("n1", 1), ("n2", 76))):
        bench.put("pods", ended(code, rank, on=name, least=2))
        bench.put("pods", worker(rank, 1, gated=True, least=2))
    bench.begin()
    bench.settle()
    assert gates(bench, 1, 2) == [True, True]
    bench.fake.store.drop("pods", f"{NAMESPACE}/{WORKFLOW}-a-0")
    bench.until(lambda: gates(bench, 1, 2) == [False, False])
    assert chosen(bench, 1, 2) == ["host-n1", "host-n2"]


def test_an_elastic_gang_that_failed_starts_again_with_as_many_workers_as_there_is_room_for(bench: Bench) -> None:
    bench.put("nodes", node("n2", ready=False))
    bench.put("nodes", node("n1", "250m"))
    record = gang_workflow([("n1", "76"), ("n2", "76"), ("n2", "1")], [("", None)], gang="3,1")
    bench.put("workflows", record)
    for rank, name in enumerate(("n1", "n2", "n2")):
        bench.put("pods", ended(76, rank, on=name, size=3))
    bench.put("pods", worker(0, 1, gated=True, size=1))
    bench.begin()
    bench.until(lambda: notes(bench, 0, 1).get(PLACE) == "n1,n1")
    bench.until(lambda: plan(bench) == ("3,2,1", ""))


def test_a_plan_that_a_killed_controller_left_without_its_move_is_taken_back(bench: Bench) -> None:
    running(bench, "n1", "n1", gang="2,4")
    bench.begin()
    bench.until(lambda: plan(bench) == ("2,1", ""))


def test_attempts_that_left_by_themselves_are_forgiven(bench: Bench) -> None:
    record = gang_workflow([("n1", "75")] * 2, [("n1", "76"), ("n1", "1")], [("n1", None)] * 2, gang="2,2,2,1")
    bench.put("workflows", record)
    for rank in range(2):
        bench.put("pods", worker(rank, 2, on="n1"))
    bench.begin()
    bench.until(lambda: plan(bench) == ("2,2,2,1", "0"))


def test_when_argo_counts_its_attempts_anew_the_plan_is_rewritten_and_the_gang_goes_on_by_itself(bench: Bench) -> None:
    bench.put("workflows", gang_workflow([("", None)] * 2, gang="2,3,1", left="0"))
    bench.put("pods", worker(0, gated=True, uid="again"))
    bench.put("pods", worker(1, gated=True))
    bench.begin()
    bench.until(lambda: gates(bench, 0, 2) == [False, False])
    assert plan(bench) == ("2,1", "")
    assert notes(bench)["hera-specon.io/attempt-token"] == "again"


def test_a_worker_on_a_lost_node_is_removed_so_that_the_gang_can_go_on(bench: Bench) -> None:
    lost = node("n2", ready=False)
    lost["status"]["conditions"][0]["lastTransitionTime"] = stamp(time.time() - 300)
    bench.put("nodes", lost)
    running(bench, "n1", "n2")
    bench.put("pods", worker(1, on="n2", deleted=time.time() - 300))
    bench.begin()
    bench.until(lambda: stored(bench, 1) is None)
    assert stored(bench, 0) is not None


@pytest.mark.parametrize("written", ["", "x", "9,9", "-1", "1" * 5000, "0,0", "²", "1,,2", "64," * 900])
def test_whatever_a_plan_says_the_pods_count(bench: Bench, written: str) -> None:
    running(bench, "n1", "n2", gang=written or "2")
    bench.begin()
    bench.until(lambda: plan(bench)[0] == "2,1")
    assert bench.trial("g").workers == 2


@pytest.mark.parametrize("size", ["9999999", "-3", "x", ""])
def test_a_pod_that_lies_about_the_size_of_its_gang_keeps_only_that_from_running(bench: Bench, size: str) -> None:
    running(bench, "n1", "n2")
    made = worker(1, on="n2", notes={"hera-specon.io/world-size": size})
    bench.put("pods", made)
    bench.put("pods", pod("a", on="n1"))
    bench.begin()
    assert bench.trial("g").workers <= 64


def test_pods_of_others_never_join_a_gang(bench: Bench) -> None:
    running(bench, "n1", "n2")
    forged = worker(1, 5, on="n2")
    forged["metadata"]["name"] = "forged"
    forged["metadata"]["annotations"]["workflows.argoproj.io/node-id"] = "none-of-argos"
    bench.put("pods", forged)
    bench.begin()
    assert (bench.trial("g").attempt, bench.trial("g").nodes) == (1, ("n1", "n2"))


def test_of_two_gangs_that_wait_for_the_same_room_one_gets_all_of_it_and_the_other_none(bench: Bench) -> None:
    bench.put("nodes", node("n1", "150m"))
    bench.put("nodes", node("n2", "150m"))
    both = gang_workflow([("n1", "1")] * 2, [("", None)] * 2, gang="2,2")
    record = both["status"]["nodes"]
    record |= {f"{WORKFLOW}-h-{rank}": {"id": f"{WORKFLOW}-h-{rank}", "type": "Pod"} for rank in range(2)}
    bench.put("workflows", both)
    for rank in range(2):
        bench.put("pods", ended(1, rank, on="n1", least=2))
        bench.put("pods", worker(rank, 1, gated=True, least=2))
        bench.put("pods", other_gangs(rank))
    bench.begin()
    bench.until(lambda: sum(opened(bench)) == 2)
    bench.settle()
    assert opened(bench) in ([True, True, False, False], [False, False, True, True])


def opened(bench: Bench) -> list[bool]:
    mine = [not gate for gate in gates(bench, 1, 2)]
    pods = bench.fake.store.objects["pods"]
    return mine + [not pods[f"{NAMESPACE}/{WORKFLOW}-h-{rank}"]["spec"].get("schedulingGates") for rank in range(2)]


def other_gangs(rank: int) -> Json:
    """Return a pod of gang ``h``, which Argo was told to run again."""
    made = worker(rank, 0, gated=True, least=2)
    name = f"{WORKFLOW}-h-{rank}"
    made["metadata"]["name"] = name
    made["metadata"]["labels"]["hera-specon.io/trial"] = "h"
    made["metadata"]["annotations"]["workflows.argoproj.io/node-id"] = name
    made["metadata"]["annotations"]["workflows.argoproj.io/node-name"] = f"{WORKFLOW}[0].h(1)[0].worker({rank}:{rank})"
    made["spec"]["containers"][1]["env"][0]["value"] = f"{UID}.sweep.h"
    return made
