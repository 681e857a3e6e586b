"""Moves between nodes: every state that a controller may find, and what it makes of it."""

import threading
import time
from functools import partial

import pytest

from controllers.core.actions import Migrate, Resize
from controllers.core.model import NodeName, Phase, TrialId
from controllers.worlds.argo.deciding.planner import Timeouts
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import BEGAN, NAMESPACE, node, over, pod, stamp, steps, trial, workflow

A = TrialId(trial("a"))
TO_N2 = Migrate(A, (NodeName("n2"),))
ASK = "/var/run/argo/argoexec"
FORCE = "/bin/sh"


def marks(to: str = "n2", ago: float = 0.0) -> dict[str, str]:
    return {"hera-specon.io/move-to": to, "hera-specon.io/move-asked-at": str(time.time() - ago)}


def opened(bench: Bench, attempt: int = 1) -> bool:
    found = bench.pod(attempt=attempt)
    return found is not None and not found["spec"].get("schedulingGates")


def notes(bench: Bench, attempt: int = 0) -> dict[str, str]:
    return dict((bench.pod(attempt=attempt) or {})["metadata"]["annotations"])


def chosen(bench: Bench, attempt: int = 1) -> str | None:
    selector = (bench.pod(attempt=attempt) or {})["spec"].get("nodeSelector") or {}
    return selector.get("kubernetes.io/hostname")


def unschedulable(since: float) -> list[dict[str, str]]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return [{**condition, "lastTransitionTime": stamp(since)}]


def test_a_move_from_decision_to_the_next_attempts_start(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", pod(on="n1", has="300m", cpu="300m", notes={"hera-specon.io/base-cpu": "0.1"}))
    bench.begin()
    assert bench.world.apply(TO_N2).done
    assert (bench.trial().phase, bench.trial().moving_to, bench.trial().nodes) == (Phase.MOVING, "n2", ("n1",))
    bench.until(lambda: bench.pods.commands == [("sweep-x-a-0", ASK)])
    assert notes(bench)["hera-specon.io/move-to"] == "n2"
    bench.put("pods", over(75, on="n1", notes=notes(bench)))
    bench.until(lambda: bench.trial().nodes == ())
    assert bench.trial().phase is Phase.MOVING
    bench.put("workflows", workflow(steps("a", "Running", ("n1", "75"), ("", None))))
    bench.put("pods", pod(attempt=1, gated=True))
    bench.until(lambda: opened(bench))
    assert (chosen(bench), bench.trial().phase) == ("host-n2", Phase.MOVING)
    bench.put("pods", pod(attempt=1, on="n2", notes=notes(bench, 1)))
    bench.until(lambda: bench.trial().steady)
    assert (bench.trial().node, bench.trial().moves, bench.trial().attempt, bench.trial().cpu) == ("n2", 1, 2, 0.1)
    bench.until(lambda: sorted(bench.told.reasons) == ["Moved", "Moving", "Placed"])


def test_a_move_goes_before_a_resize_that_still_waits_for_the_api_server(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", pod(on="n1"))
    bench.begin()
    gate = threading.Event()
    for number in range(20):
        bench.view.writes.submit(
            f"jam-{number}", partial(_held, gate), lambda _: None, namespace=NAMESPACE, kind="shares"
        )
    assert bench.world.apply(Resize(A, 0.2)).done
    assert bench.world.apply(TO_N2).done
    bench.until(lambda: bench.pods.commands == [("sweep-x-a-0", ASK)])
    gate.set()
    bench.until(lambda: bench.view.writes.wait_idle(5))
    containers = {one["name"]: one for one in (bench.pod() or {})["spec"]["containers"]}
    assert containers["main"]["resources"]["requests"]["cpu"] == "100m"


def _held(gate: threading.Event) -> None:
    gate.wait(10)


def test_a_moving_trial_takes_no_other_action(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", notes=marks()))
    bench.begin()
    bench.until(lambda: bench.pods.commands)
    assert not bench.world.apply(Resize(A, 0.2)).done
    assert not bench.world.apply(Migrate(A, (NodeName("n2"),))).done


def test_a_move_to_the_same_or_an_unfit_or_full_node_is_refused(bench: Bench) -> None:
    bench.put("nodes", node("n3", "50m"))
    bench.put("nodes", node("n4", unschedulable=True))
    bench.put("pods", pod(on="n1"))
    bench.begin()
    for name in ("n1", "n3", "n4", "n5"):
        outcome = bench.world.apply(Migrate(A, (NodeName(name),)))
        assert (outcome.done, name in outcome.detail) == (False, True)
    assert bench.trial().steady


def test_room_promised_to_one_move_is_not_promised_to_another(bench: Bench) -> None:
    bench.put("nodes", node("n2", "150m"))
    bench.put("pods", pod("a", on="n1"))
    bench.put("pods", pod("b", on="n1"))
    bench.begin()
    assert bench.world.apply(TO_N2).done
    to_n2 = Migrate(TrialId(trial("b")), (NodeName("n2"),))
    assert not bench.world.apply(to_n2).done
    bench.until(lambda: "hera-specon.io/move-to" in notes(bench))
    bench.settle()
    assert not bench.world.apply(to_n2).done


def test_a_trial_goes_where_it_takes_most_of_the_room_that_was_kept_for_it(bench: Bench) -> None:
    bench.put("nodes", node("n2", "150m"))
    bench.put("workflows", workflow(steps("a", "Running", ("n1", "75"), ("", None))))
    bench.put("pods", over(75, on="n1", notes=marks()))
    bench.put("pods", pod(attempt=1, gated=True))
    bench.begin()
    bench.until(lambda: opened(bench))
    assert chosen(bench) == "host-n2"


def test_a_controller_that_was_killed_after_the_mark_asks_the_pod_to_leave(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", notes=marks()))
    bench.begin()
    assert (bench.trial().phase, bench.trial().moving_to) == (Phase.MOVING, "n2")
    bench.until(lambda: bench.pods.commands == [("sweep-x-a-0", ASK)])
    bench.settle()
    assert bench.pods.commands == [("sweep-x-a-0", ASK)]


def test_a_controller_that_was_killed_before_the_gate_opens_it_for_the_marked_node(bench: Bench) -> None:
    bench.put("pods", over(75, on="n1", notes={**marks(ago=900), "hera-specon.io/moves": "1"}))
    bench.put("pods", pod(attempt=1, gated=True))
    bench.begin()
    assert bench.trial().moving_to == "n2"
    bench.until(lambda: opened(bench))
    assert chosen(bench) == "host-n2"
    assert notes(bench, 1)["hera-specon.io/moves"] == "1"
    bench.put("pods", pod(attempt=1, on="n2", notes=notes(bench, 1)))
    bench.until(lambda: bench.trial().moves == 2)


def test_a_controller_that_was_killed_after_the_gate_sees_the_move_through(bench: Bench) -> None:
    bench.put("pods", over(75, on="n1", notes=marks()))
    placed = {"hera-specon.io/placed-on": "n2", "hera-specon.io/moved-from": "n1", "hera-specon.io/moves": "0"}
    bench.put("pods", pod(attempt=1, notes=placed))
    bench.begin()
    assert (bench.trial().phase, bench.trial().moving_to) == (Phase.MOVING, "n2")
    bench.put("pods", pod(attempt=1, on="n2", notes=placed))
    bench.until(lambda: (bench.trial().phase, bench.trial().moves) == (Phase.RUNNING, 1))


def test_an_exec_that_is_lost_is_tried_again(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.pods.unreachable = True
    bench.begin()
    assert bench.world.apply(TO_N2).done
    bench.until(lambda: len(bench.pods.commands) > 1)
    assert bench.trial().phase is Phase.MOVING
    bench.pods.unreachable = False
    tried = len(bench.pods.commands)
    bench.until(lambda: len(bench.pods.commands) > tried)
    bench.settle()
    assert len(bench.pods.commands) == tried + 1


def test_a_pod_that_can_not_be_reached_goes_on_where_it_is(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.pods.unreachable = True
    bench.begin(Timeouts(unreachable=0.05))
    assert bench.world.apply(TO_N2).done
    bench.until(lambda: bench.trial().steady and "MoveFailed" in bench.told.reasons)
    assert "hera-specon.io/move-to" not in notes(bench)


def test_a_mark_that_can_not_be_written_leaves_the_trial_running_unasked(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    bench.fake.fault = lambda call: (500, "no") if call.method == "PATCH" else None
    assert bench.world.apply(TO_N2).done
    bench.until(lambda: "MoveFailed" in bench.told.reasons)
    bench.until(lambda: bench.trial().steady)
    assert bench.pods.commands == []


def test_no_signal_goes_to_a_pod_that_took_the_name(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", notes=marks(), uid="first"))
    bench.begin()
    other = {**pod(on="n1", uid="second"), "kind": "Pod"}
    bench.view._pods[0].stop()
    bench.fake.store.objects["pods"]["sweeps/sweep-x-a-0"] = other
    bench.until(lambda: bench.fake.of("GET", "/pods/sweep-x-a-0"))
    bench.view.writes.wait_idle(5)
    assert bench.pods.commands == []


def test_a_deaf_trial_is_killed_after_its_grace_and_its_pod_removed_if_that_is_in_vain(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", notes=marks(), grace=1))
    bench.begin(Timeouts(kill_every=1.0))
    bench.until(lambda: bench.pod() is None)
    assert [command for _, command in bench.pods.commands] == [ASK, FORCE, FORCE]
    bench.until(lambda: {"MoveForced", "Removed"} <= set(bench.told.reasons))


def test_a_trial_that_leaves_in_its_grace_is_not_killed(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", notes=marks(), grace=30))
    bench.begin()
    bench.until(lambda: bench.pods.commands)
    bench.settle()
    assert bench.pods.commands == [("sweep-x-a-0", ASK)]


def test_an_attempt_that_left_by_itself_is_followed_at_once_wherever_the_scheduler_likes(bench: Bench) -> None:
    bench.put("pods", over(75, on="n1"))
    bench.put("pods", pod(attempt=1, gated=True))
    bench.begin()
    bench.until(lambda: opened(bench))
    assert chosen(bench) is None
    bench.put("pods", pod(attempt=1, on="n2", notes=notes(bench, 1)))
    bench.until(lambda: bench.trial().steady)
    assert bench.trial().moves == 0


def test_where_the_target_became_unfit_the_gate_is_opened_for_any_node(bench: Bench) -> None:
    bench.put("nodes", node("n2", ready=False))
    bench.put("pods", over(75, on="n1", notes=marks()))
    bench.put("pods", pod(attempt=1, gated=True))
    bench.begin()
    bench.until(lambda: opened(bench))
    assert chosen(bench) is None
    bench.put("pods", pod(attempt=1, on="n3", notes=notes(bench, 1)))
    bench.until(lambda: bench.trial().steady)
    assert (bench.trial().node, bench.trial().moves) == ("n3", 1)


def test_where_the_target_became_full_the_gate_is_opened_for_any_node(bench: Bench) -> None:
    bench.put("pods", over(75, on="n1", notes=marks()))
    bench.put("pods", pod("b", on="n2", cpu="950m"))
    bench.put("pods", pod(attempt=1, gated=True))
    bench.begin()
    bench.until(lambda: opened(bench))
    assert chosen(bench) is None


def test_the_marked_pod_may_be_collected_before_the_next_one_is_there(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", notes=marks()))
    bench.begin()
    bench.put("pods", over(75, on="n1", notes=marks()))
    bench.until(lambda: bench.trial().nodes == ())
    bench.fake.store.drop("pods", "sweeps/sweep-x-a-0")
    bench.settle()
    assert bench.trial().phase is Phase.MOVING
    bench.put("pods", pod(attempt=1, gated=True))
    bench.until(lambda: opened(bench))
    assert chosen(bench) == "host-n2"


def test_a_bound_pod_whose_node_can_not_take_it_is_made_anew(bench: Bench) -> None:
    bench.put("nodes", node("n2", ready=False))
    bench.put("pods", over(75, on="n1", notes=marks()))
    placed = {"hera-specon.io/placed-on": "n2", "hera-specon.io/moved-from": "n1"}
    bench.put("pods", pod(attempt=1, notes=placed, conditions=unschedulable(time.time())))
    bench.begin()
    bench.until(lambda: bench.pod(attempt=1) is None)
    bench.until(lambda: "hera-specon.io/move-to" not in notes(bench))
    bench.put("pods", pod(attempt=1, gated=True, uid="again"))
    bench.until(lambda: opened(bench))
    assert chosen(bench) is None


def test_a_bound_pod_is_given_time_where_its_node_is_only_full(bench: Bench) -> None:
    bench.put("pods", over(75, on="n1", notes=marks()))
    placed = {"hera-specon.io/placed-on": "n2", "hera-specon.io/moved-from": "n1"}
    bench.put("pods", pod(attempt=1, notes=placed, conditions=unschedulable(time.time())))
    bench.begin()
    bench.settle()
    assert bench.pod(attempt=1) is not None
    bench.ahead_s = 30
    bench.until(lambda: bench.pod(attempt=1) is None)


def test_pods_that_wait_for_room_of_their_own_accord_are_left_alone(bench: Bench) -> None:
    bench.put("pods", pod(conditions=unschedulable(BEGAN)))
    bench.begin()
    bench.settle()
    assert bench.fake.of("POST", "/eviction") == []


def test_a_pod_on_a_lost_node_is_removed_only_after_the_bound(bench: Bench) -> None:
    lost = node("n1", ready=False)
    lost["status"]["conditions"][0]["lastTransitionTime"] = stamp(time.time() - 10)
    bench.put("nodes", lost)
    bench.put("pods", pod(on="n1", deleted=time.time() - 5))
    bench.begin()
    bench.settle()
    assert bench.pod() is not None
    bench.ahead_s = 120
    bench.until(lambda: bench.pod() is None)
    bench.until(lambda: bench.told.reasons == ["Removed"])


def test_a_terminating_pod_on_a_node_that_is_heard_is_left_to_its_kubelet(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", deleted=BEGAN))
    bench.put("pods", pod("b", on="gone", deleted=BEGAN))
    bench.begin()
    bench.until(lambda: bench.pod("b") is None)
    bench.settle()
    assert bench.pod() is not None


def test_an_attempt_that_crashed_while_leaving_is_followed_by_an_ordinary_retry(bench: Bench) -> None:
    bench.put("pods", over(1, on="n1", notes=marks()))
    bench.put("pods", pod(attempt=1, on="n1"))
    bench.begin()
    assert bench.trial().steady
    bench.settle()
    assert (bench.trial().moves, bench.pods.commands) == (0, [])


def test_a_trial_that_ends_well_while_it_is_asked_to_leave_has_succeeded(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", notes=marks()))
    bench.begin()
    bench.put("pods", over(0, on="n1", notes=marks()))
    bench.until(lambda: bench.trial().phase is Phase.SUCCEEDED)


def test_the_tally_of_moves_outlives_an_ordinary_retry_and_the_controller(bench: Bench) -> None:
    placed = {"hera-specon.io/placed-on": "n2", "hera-specon.io/moved-from": "n1", "hera-specon.io/moves": "2"}
    bench.put("pods", over(1, attempt=1, on="n2", notes=placed))
    bench.put("pods", pod(attempt=2, on="n1"))
    bench.begin()
    assert bench.trial().moves == 3
    bench.until(lambda: notes(bench, 2).get("hera-specon.io/moves") == "3")
    bench.fake.store.drop("pods", "sweeps/sweep-x-a-1")
    bench.begin()
    assert bench.trial().moves == 3


def test_a_move_is_counted_once_though_the_resizes_after_it_are_saved_on_its_pod(bench: Bench) -> None:
    placed = {"hera-specon.io/placed-on": "n2", "hera-specon.io/moved-from": "n1", "hera-specon.io/moves": "0"}
    bench.put("workflows", workflow(steps("a", "Running", ("n1", "75"), ("n2", None))))
    bench.put("pods", over(75, on="n1", notes=marks()))
    bench.put("pods", pod(attempt=1, on="n2", uid="moved", notes=placed))
    bench.begin()
    assert bench.trial().moves == 1
    for milli in range(110, 122):
        bench.put("pods", pod(attempt=1, on="n2", uid="moved", cpu=f"{milli}m", notes=notes(bench, 1)))
        bench.until(partial(_has_cores, bench, milli / 1000))
    bench.until(lambda: int(notes(bench, 1).get("hera-specon.io/resizes", "0")) >= 10)
    bench.settle()
    assert bench.trial().moves == 1


def _has_cores(bench: Bench, cpu: float) -> bool:
    return bench.trial().cpu == cpu


def test_other_peoples_pods_are_never_written_to(bench: Bench) -> None:
    foreign = pod("a", attempt=1, gated=True, notes=marks())
    foreign["metadata"]["ownerReferences"][0]["uid"] = "another-workflow"
    unlabelled = pod("b", on="n1", notes=marks())
    unlabelled["metadata"]["labels"] = {"workflows.argoproj.io/workflow": "sweep-x"}
    bench.put("pods", foreign)
    bench.put("pods", unlabelled)
    bench.begin()
    bench.settle()
    assert [call for call in bench.fake.calls if call.method != "GET"] == []
    assert bench.pods.commands == []


@pytest.mark.parametrize("field", ["hostPID", "shareProcessNamespace"])
def test_a_trial_that_shares_its_processes_is_not_moved_and_the_field_is_named(bench: Bench, field: str) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    made = pod(on="n1")
    made["spec"][field] = True
    bench.put("pods", made)
    bench.begin()
    assert field in bench.world.apply(TO_N2).detail
    made["metadata"]["annotations"] |= marks()
    bench.put("pods", made)
    bench.until(lambda: "hera-specon.io/move-to" not in notes(bench))
    assert bench.pods.commands == []
