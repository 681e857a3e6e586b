"""Shares changed in place: what is asked, what is refused, what is taken back."""

import threading
import time
from functools import partial
from typing import Any

import pytest

from controllers.core.actions import Resize
from controllers.core.model import Phase, TrialId
from controllers.core.ports import OutcomeKind
from controllers.worlds.argo.deciding import denied_shares
from tests.controllers.worlds.argo.conftest import Bench, eventually
from tests.controllers.worlds.argo.objects import BEGAN, NAMESPACE, node, pod, stamp, trial

A = TrialId(trial("a"))


def request(bench: Bench) -> str:
    found = bench.pod() or {}
    return str(next(c for c in found["spec"]["containers"] if c["name"] == "main")["resources"]["requests"]["cpu"])


def pending(reason: str, since: float, said: str = "") -> list[dict[str, str]]:
    stamped = {"lastTransitionTime": stamp(since), "message": said}
    return [{"type": "PodResizePending", "status": "True", "reason": reason, **stamped}]


def grant(bench: Bench, cpu: str) -> None:
    found = bench.pod() or {}
    having = {"requests": {"cpu": cpu}}
    status = {**found["status"], "containerStatuses": [{"name": "main", "state": {"running": {}}, "resources": having}]}
    bench.change("pods", "sweeps/sweep-x-a-0", status=status)


def has(bench: Bench, cpu: float) -> bool:
    return bench.trial().cpu == pytest.approx(cpu)


def test_a_share_counts_when_the_kubelet_has_given_it(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    assert bench.world.apply(Resize(A, 0.25)).done
    bench.settle()
    assert (request(bench), bench.trial().cpu) == ("250m", 0.1)
    grant(bench, "250m")
    bench.until(lambda: bench.trial().cpu == 0.25)
    assert bench.trial().base_cpu == 0.1
    bench.until(lambda: "Resized" in bench.told.reasons)
    assert bench.world.results({})[0].resizes == 1


def test_a_share_that_somebody_sees_between_two_advances_is_told_all_the_same(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    assert bench.world.apply(Resize(A, 0.25)).done
    bench.settle()
    grant(bench, "250m")
    eventually(lambda: bench.trial().cpu == 0.25)
    bench.world.advance(time.time() - BEGAN)
    eventually(lambda: "Resized" in bench.told.reasons)


def test_the_number_of_resizes_outlives_the_controller_but_for_the_last_few(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    for number in range(1, 13):
        grant(bench, f"{100 + number}m")
        bench.until(partial(has, bench, 0.1 + number / 1000))
        bench.settle()
    assert bench.world.results({})[0].resizes == 12
    bench.begin()
    assert bench.world.results({})[0].resizes == 10


def test_what_the_pod_was_created_with_outlives_the_controller(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    bench.world.apply(Resize(A, 0.25))
    bench.settle()
    grant(bench, "250m")
    bench.begin()
    assert (bench.trial().cpu, bench.trial().base_cpu) == (0.25, 0.1)


def test_a_share_is_rounded_down_to_thousandths(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    assert bench.world.apply(Resize(A, 2 / 3)).done
    bench.settle()
    assert request(bench) == "666m"


def test_shrinking_one_trial_makes_room_for_the_next_at_once(bench: Bench) -> None:
    bench.put("pods", pod("a", on="n1", cpu="600m"))
    bench.put("pods", pod("b", on="n1", cpu="400m"))
    bench.begin()
    b = TrialId(trial("b"))
    refused = bench.world.apply(Resize(b, 0.7))
    assert refused.kind is OutcomeKind.REFUSED
    assert bench.world.apply(Resize(A, 0.3)).done
    assert bench.world.apply(Resize(b, 0.7)).done


def test_a_trial_whose_last_action_is_still_under_way_is_only_busy(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    answered = threading.Event()
    for number in range(20):
        bench.view.writes.submit(
            f"jam-{number}", partial(_held, answered), lambda _: None, namespace=NAMESPACE, kind="shares"
        )
    assert bench.world.apply(Resize(A, 0.3)).done
    again = bench.world.apply(Resize(A, 0.4))
    answered.set()
    assert again.kind is OutcomeKind.BUSY


def _held(until: threading.Event) -> None:
    until.wait(10)


@pytest.mark.parametrize(
    ("changes", "wish", "word"),
    [
        ({"cpu": "100m"}, 1.5, "1.5 cores"),
        ({"cpu": "100m"}, 0.0004, "0.0004 cores"),
        ({"limits": {"cpu": "200m"}}, 0.3, "limit of 0.2"),
        ({"quality": "Guaranteed"}, 0.3, "Guaranteed"),
        ({"quality": "BestEffort"}, 0.3, "BestEffort"),
        ({"state": "waiting"}, 0.3, "pending"),
        ({"deleted": BEGAN}, 0.3, "not running"),
    ],
)
def test_what_can_not_be_is_refused_with_the_reason(
    bench: Bench, changes: dict[str, Any], wish: float, word: str
) -> None:
    item = pod(on="n1", **changes)
    item["status"]["qosClass"] = changes.get("quality", "Burstable")
    item["spec"]["containers"][1]["resources"]["limits"] = changes.get("limits", {})
    bench.put("pods", item)
    bench.begin()
    outcome = bench.world.apply(Resize(A, wish))
    assert not outcome.done
    assert word in outcome.detail
    bench.settle()
    assert request(bench) == "100m"


def test_a_share_that_the_api_server_refuses_leaves_the_trial_free_for_the_next_action(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    bench.fake.fault = lambda call: (403, "not enough allocatable: 900") if call.path.endswith("resize") else None
    assert bench.world.apply(Resize(A, 0.9)).done
    bench.until(lambda: "ResizeFailed" in bench.told.reasons)
    bench.fake.fault = lambda _: None
    bench.until(lambda: bench.world.apply(Resize(A, 0.2)).done)


@pytest.mark.parametrize(("reason", "waited"), [("Deferred", 11.0), ("Infeasible", 0.0)])
def test_a_wish_that_is_not_granted_is_taken_back(bench: Bench, reason: str, waited: float) -> None:
    since = time.time() - waited
    notes = {"hera-specon.io/base-cpu": "0.1"}
    bench.put("pods", pod(on="n1", cpu="800m", has="200m", notes=notes, conditions=pending(reason, since)))
    bench.begin()
    bench.until(lambda: request(bench) == "200m")
    bench.until(lambda: "ResizeWithdrawn" in bench.told.reasons)


def test_a_deferred_wish_is_given_some_time_and_a_strangers_wish_is_left_alone(bench: Bench) -> None:
    ours, now = {"hera-specon.io/base-cpu": "0.1"}, time.time()
    bench.put("pods", pod("a", on="n1", cpu="800m", has="200m", notes=ours, conditions=pending("Deferred", now)))
    bench.put("pods", pod("b", on="n2", cpu="800m", has="200m", conditions=pending("Deferred", now - 100)))
    bench.begin()
    bench.settle()
    assert bench.fake.of("PATCH", "/resize") == []


def test_a_deferred_wish_counts_in_full_against_other_trials(bench: Bench) -> None:
    bench.put("nodes", node("n1", "1"))
    ours = {"hera-specon.io/base-cpu": "0.1"}
    bench.put(
        "pods", pod("a", on="n1", cpu="800m", has="200m", notes=ours, conditions=pending("Deferred", time.time()))
    )
    bench.put("pods", pod("b", on="n1", cpu="100m"))
    bench.begin()
    assert not bench.world.apply(Resize(TrialId(trial("b")), 0.3)).done


QUOTA = 'pods "sweep-x-a-0" is forbidden: exceeded quota: q, requested: requests.cpu=800m, limited: requests.cpu=1'
CLAIMS = 'Pod "sweep-x-a-0" is invalid: spec: Forbidden: only cpu and memory resources are mutable'
GUARANTEED = "Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy"


def refuse(bench: Bench, status: int, said: str) -> None:
    """Let the API server refuse each resize in these words, and a resize be asked for."""
    bench.fake.fault = lambda call: (status, said) if call.path.endswith("resize") else None
    assert bench.world.apply(Resize(A, 0.9)).done
    bench.until(lambda: "ResizeFailed" in bench.told.reasons)
    bench.until(lambda: bench.world.apply(Resize(A, 0.9)).kind is OutcomeKind.REFUSED)
    bench.settle()


@pytest.mark.parametrize(
    ("status", "said", "word"), [(403, QUOTA, "raise the ResourceQuota"), (422, CLAIMS, "resource limits")]
)
def test_a_refused_share_is_told_once_with_what_to_do_and_not_asked_for_again_at_once(
    bench: Bench, status: int, said: str, word: str
) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    refuse(bench, status, said)
    calls = len(bench.fake.of("PATCH", "/resize"))
    again = bench.world.apply(Resize(A, 0.9))
    assert again.kind is OutcomeKind.REFUSED
    assert word in again.detail
    bench.settle()
    assert len(bench.fake.of("PATCH", "/resize")) == calls == 1
    assert bench.told.reasons.count("ResizeFailed") == 1
    assert bench.trial().phase is Phase.RUNNING


def test_after_a_refusal_for_its_amount_less_may_be_asked_for_and_after_one_for_the_pod_nothing(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    refuse(bench, 403, QUOTA)
    bench.fake.fault = lambda _: None
    assert not bench.world.apply(Resize(A, 0.95)).done
    assert bench.world.apply(Resize(A, 0.5)).done


def test_after_a_refusal_for_the_pod_no_other_share_is_asked_for(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    refuse(bench, 422, CLAIMS)
    assert not bench.world.apply(Resize(A, 0.05)).done


def test_a_refused_share_is_asked_for_once_more_after_a_while(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denied_shares, "FIRST_S", 0.3)
    bench.put("pods", pod(on="n1"))
    bench.begin()
    refuse(bench, 403, QUOTA)
    bench.fake.fault = lambda _: None
    bench.until(lambda: bench.world.apply(Resize(A, 0.9)).done)
    bench.settle()
    assert request(bench) == "900m"


def test_a_refused_share_is_asked_for_once_more_as_soon_as_its_node_is_another(bench: Bench) -> None:
    old = node("n1")
    old["status"]["nodeInfo"] = {"kubeletVersion": "v1.33.1"}
    bench.put("nodes", old)
    bench.put("pods", pod(on="n1"))
    bench.begin()
    refuse(bench, 422, "spec: Forbidden: Pod running on node without support for resize")
    bench.fake.fault = lambda _: None
    assert not bench.world.apply(Resize(A, 0.9)).done
    old["status"]["nodeInfo"] = {"kubeletVersion": "v1.34.4"}
    bench.put("nodes", old)
    bench.until(lambda: bench.world.apply(Resize(A, 0.9)).done)


def test_what_only_did_not_get_there_is_asked_for_at_once(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    bench.fake.fault = lambda call: (500, "etcd is away") if call.path.endswith("resize") else None
    assert bench.world.apply(Resize(A, 0.9)).done
    bench.until(lambda: "ResizeFailed" in bench.told.reasons)
    bench.fake.fault = lambda _: None
    bench.until(lambda: bench.world.apply(Resize(A, 0.9)).done)


def test_what_the_kubelet_will_never_grant_is_taken_back_and_not_asked_for_again(bench: Bench) -> None:
    ours, said = {"hera-specon.io/base-cpu": "0.1"}, pending("Infeasible", time.time(), GUARANTEED)
    bench.put("pods", pod(on="n1", cpu="800m", has="200m", notes=ours, conditions=said))
    bench.begin()
    bench.until(lambda: request(bench) == "200m")
    grant(bench, "200m")
    bench.settle()
    outcome = bench.world.apply(Resize(A, 0.5))
    assert not outcome.done
    assert "leave the limits out" in outcome.detail


def test_a_smaller_share_that_is_infeasible_is_taken_back_as_well(bench: Bench) -> None:
    ours, said = {"hera-specon.io/base-cpu": "0.1"}, pending("Infeasible", time.time(), GUARANTEED)
    bench.put("pods", pod(on="n1", cpu="100m", has="200m", notes=ours, conditions=said))
    bench.begin()
    bench.until(lambda: request(bench) == "200m")


def test_a_share_that_the_runtime_does_not_carry_out_is_taken_back_in_the_end(bench: Bench) -> None:
    ours = {"hera-specon.io/base-cpu": "0.1"}
    failing = {"type": "PodResizeInProgress", "status": "True", "reason": "Error", "message": "no cgroup"}
    failing["lastTransitionTime"] = stamp(time.time() - 11)
    bench.put("pods", pod(on="n1", cpu="800m", has="200m", notes=ours, conditions=[failing]))
    bench.begin()
    bench.until(lambda: request(bench) == "200m")


def test_on_a_node_whose_kubelet_is_too_old_no_share_is_asked_for(bench: Bench) -> None:
    old = node("n1")
    old["status"]["nodeInfo"] = {"kubeletVersion": "v1.32.9"}
    bench.put("nodes", old)
    bench.put("pods", pod("a", on="n1"))
    bench.put("pods", pod("b", on="n2"))
    bench.begin()
    outcome = bench.world.apply(Resize(A, 0.3))
    assert "the kubelet of n1, 1.32.9" in outcome.detail
    assert bench.world.apply(Resize(TrialId(trial("b")), 0.3)).done
