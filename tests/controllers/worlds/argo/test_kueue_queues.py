"""Trials that Kueue holds: what it admits, and which of their shares change."""

import pytest

from controllers.core.actions import Migrate, Place, Resize
from controllers.core.model import NodeName, Phase, TrialId
from controllers.worlds.argo.reading.pods import project_pod
from controllers.worlds.argo.writing.pod_changes import open_gate
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import over, pod, steps, trial, workflow
from tests.controllers.worlds.argo.objects_of_limits import queued
from tests.controllers.worlds.argo.test_moves import chosen, marks, opened
from tests.controllers.worlds.argo.test_resize import grant, request

A = TrialId(trial("a"))
N2 = NodeName("n2")


def test_a_pod_in_a_queue_that_is_no_group_of_one_is_never_resized_and_that_is_told_once(bench: Bench) -> None:
    bench.put("pods", pod(gated=True))
    bench.begin()
    bench.put("pods", queued(pod(on="n1"), alone=False))
    bench.until(lambda: bench.trial().steady)
    for cpu in (0.05, 0.2):
        answer = bench.world.apply(Resize(A, cpu))
        assert not answer.done
        assert "Kueue, which holds the pod in queue team, deletes a pod whose share changes" in answer.detail
    bench.settle()
    assert bench.fake.of("PATCH", "/resize") == []
    assert bench.told.reasons.count("ShareKept") == 1


def test_a_pod_of_a_namespaces_default_queue_is_found_by_kueues_own_label(bench: Bench) -> None:
    bench.put("pods", queued(pod(on="n1"), alone=False, queue=""))
    bench.begin()
    assert "in a queue" in bench.world.apply(Resize(A, 0.05)).detail


def test_a_pod_in_a_queue_that_is_no_group_moves_all_the_same(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", queued(pod(on="n1"), alone=False))
    bench.begin()
    assert bench.world.apply(Migrate(A, (N2,))).done


def test_a_group_of_one_shrinks_and_gets_back_what_was_admitted_and_no_more(bench: Bench) -> None:
    bench.put("pods", queued(pod(on="n1", cpu="400m")))
    bench.begin()
    assert "Kueue admitted it with 0.4 cores" in bench.world.apply(Resize(A, 0.8)).detail
    assert bench.world.apply(Resize(A, 0.1)).done
    bench.settle()
    grant(bench, "100m")
    bench.until(lambda: bench.trial().cpu == 0.1)
    assert bench.world.apply(Resize(A, 0.8)).done
    bench.settle()
    assert request(bench) == "400m"


def test_a_pod_that_says_it_was_admitted_with_more_gets_no_more_than_its_template_asks_for(
    bench: Bench,
) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", queued(pod(on="n1", notes={"hera-specon.io/base-cpu": "64"})))
    bench.begin()
    assert not bench.world.apply(Resize(A, 0.9)).done


def test_a_trial_waits_for_a_place_only_once_kueue_has_admitted_it(bench: Bench) -> None:
    bench.put("pods", queued(pod(gated=True), admitted=False))
    bench.begin()
    assert (bench.trial().phase, bench.trial().waits) == (Phase.PENDING, False)
    assert "Kueue has not admitted it" in bench.world.apply(Place(A, (N2,))).detail
    bench.put("pods", queued(pod(gated=True)))
    bench.until(lambda: bench.trial().waits)
    assert bench.world.apply(Place(A, (N2,))).done
    bench.until(lambda: opened(bench, 0))
    assert chosen(bench, 0) == "host-n2"


def test_a_trial_that_moves_keeps_no_room_while_kueue_makes_it_wait_and_then_goes_where_it_was_to(bench: Bench) -> None:
    record = steps("a", "Running", ("n1", "75"), ("", None)) | steps("b", "Running", ("n1", None))
    bench.put("workflows", workflow(record))
    bench.put("pods", queued(over(75, on="n1", notes=marks())))
    bench.put("pods", queued(pod(attempt=1, gated=True, cpu="900m"), admitted=False))
    bench.put("pods", pod("b", on="n1", cpu="200m"))
    bench.begin()
    bench.settle()
    assert (bench.trial().phase, opened(bench)) == (Phase.PENDING, False)
    assert bench.world.apply(Migrate(TrialId(trial("b")), (N2,))).done
    bench.put("pods", queued(pod(attempt=1, gated=True)))
    bench.until(lambda: opened(bench))
    assert chosen(bench) == "host-n2"


def test_a_suspended_trial_in_the_queue_is_marked_and_waits_for_kueue_first(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", "75"), ("", None))))
    bench.put("pods", queued(over(75, on="n1", notes={"hera-specon.io/rest": "suspend"})))
    bench.put("pods", queued(pod(attempt=1, gated=True), admitted=False))
    bench.begin()
    bench.until(lambda: "Suspended" in bench.told.reasons)
    assert (bench.trial().phase, bench.trial().waits) == (Phase.SUSPENDED, False)
    bench.put("pods", queued(pod(attempt=1, gated=True, notes={"hera-specon.io/suspended": "true"})))
    bench.until(lambda: bench.trial().waits)


@pytest.mark.parametrize("order", [0, 1])
def test_our_gate_goes_by_its_name_and_kueues_stay(bench: Bench, order: int) -> None:
    made = queued(pod(gated=True), admitted=False)
    gates = made["spec"]["schedulingGates"]
    made["spec"]["schedulingGates"] = gates[order:] + gates[:order]
    record = project_pod(bench.put("pods", made))
    assert record is not None
    api = bench.fake.client()
    open_gate(api, record, None, {})
    api.close()
    left = (bench.pod() or {})["spec"]["schedulingGates"]
    assert {gate["name"] for gate in left} == {"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"}


def preempted(**changes: object) -> list[dict[str, str]]:
    reason = {"type": "TerminationTarget", "status": "True", "reason": "WorkloadEvictedDueToPreempted"}
    return [{**reason, **{name: str(value) for name, value in changes.items()}}]


def test_a_trial_that_kueue_preempts_again_and_again_has_not_left_for_nothing(bench: Bench) -> None:
    record = steps("a", "Running", ("n1", "75"), ("n1", "75"), ("n1", "75"), ("", None))
    bench.put("workflows", workflow(record))
    idle = {"hera-specon.io/idling": "9,0,0"}
    bench.put("pods", queued(over(75, attempt=2, on="n1", notes=idle, conditions=preempted())))
    bench.put("pods", queued(pod(attempt=3, gated=True)))
    bench.begin()
    bench.until(lambda: opened(bench, 3))
    assert ((bench.pod(attempt=3) or {})["metadata"]["annotations"]).get("hera-specon.io/idling") == "9,0,0"
