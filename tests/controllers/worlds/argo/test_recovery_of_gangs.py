"""Gangs in the Argo world: lost workers, wrong plans and strangers."""

import time

import pytest

from controllers.worlds.argo.deciding.planner import Timeouts
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.gang_bench import (
    ASK,
    PLACE,
    chosen,
    gates,
    notes,
    plan,
    running,
    stored,
)
from tests.controllers.worlds.argo.gang_objects import ended, gang_workflow, name_of, worker
from tests.controllers.worlds.argo.objects import NAMESPACE, UID, WORKFLOW, Json, node, pod, stamp


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
