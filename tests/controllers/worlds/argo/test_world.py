"""Trials and nodes as policies see them, from what the API server shows."""

import logging
import time

import pytest

from controllers.core.actions import Migrate, Place, Resize
from controllers.core.expressions import SWEEP_UID
from controllers.core.model import NodeName, Phase, TrialId
from controllers.worlds.argo import world
from controllers.worlds.argo.deciding.planner import Timeouts
from controllers.worlds.argo.meaning import looks
from controllers.worlds.argo.meaning.view import rest_s
from tests.controllers.worlds.argo.conftest import Bench, eventually
from tests.controllers.worlds.argo.objects import BEGAN, UID, node, over, pod, stamp, steps, template, trial, workflow

A = TrialId(trial("a"))


def notes_of_workflow(bench: Bench) -> dict[str, str]:
    return dict(bench.fake.store.objects["workflows"]["sweeps/sweep-x"]["metadata"]["annotations"])


def test_a_running_trial_shows_what_its_pod_really_has(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("", None))))
    bench.put("pods", pod(on="n1", cpu="300m", has="200m", notes={"hera-specon.io/base-cpu": "0.1"}))
    bench.begin()
    found = bench.trial()
    assert (found.phase, found.nodes, found.cpu, found.base_cpu) == (Phase.RUNNING, ("n1",), 0.2, 0.1)
    assert (found.attempt, found.moves, found.submitted_at, found.memory) == (1, 0, 1.0, 16 * 2**20)


def test_a_trial_between_two_attempts_is_pending_with_its_authors_wishes(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", "1"))))
    bench.put("pods", over(1, on="n1", has="250m"))
    bench.begin()
    found = bench.trial()
    assert (found.phase, found.nodes, found.cpu, found.attempt) == (Phase.PENDING, (), 0.1, 1)


def test_a_step_that_argo_has_begun_is_pending_before_it_has_a_pod(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Pending")))
    bench.begin()
    found = bench.trial()
    assert (found.phase, found.cpu, found.base_cpu, found.memory) == (Phase.PENDING, 0.1, 0.1, 16 * 2**20)


def test_a_trial_fails_only_when_argo_has_given_up(bench: Bench) -> None:
    bench.put("pods", over(1, on="n1"))
    bench.put("workflows", workflow(steps("a", "Running", ("n1", "1"))))
    bench.begin()
    assert bench.trial().phase is Phase.PENDING
    bench.put("workflows", workflow(steps("a", "Failed", ("n1", "1"))))
    bench.until(lambda: bench.trial().phase is Phase.FAILED)


def test_trials_of_a_workflow_that_is_over_have_ended(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("", None)), "Failed"))
    bench.begin()
    assert bench.trial().phase is Phase.FAILED
    assert (bench.world.finished, bench.world.failed) == (True, True)


def test_where_argo_offloads_its_record_pods_tell_how_trials_go(bench: Bench) -> None:
    bench.put("workflows", workflow(offloaded=True))
    bench.put("pods", pod("a", on="n1"))
    bench.put("pods", over(0, "b", on="n1"))
    bench.begin()
    assert bench.trial("a").phase is Phase.RUNNING
    assert bench.trial("b").phase is Phase.SUCCEEDED
    bench.put("workflows", workflow(phase="Failed", offloaded=True))
    bench.until(lambda: bench.trial("a").phase is Phase.FAILED)


def test_what_argo_recorded_before_it_offloads_its_record_stays_known(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Failed", ("n1", "1")) | steps("b", "Running", ("n1", None))))
    bench.put("pods", pod("b", on="n1"))
    bench.begin()
    assert bench.trial("a").phase is Phase.FAILED
    bench.put("workflows", workflow(offloaded=True))
    bench.put("pods", over(0, "b", on="n1"))
    bench.until(lambda: bench.trial("b").phase is Phase.SUCCEEDED)
    assert bench.trial("a").phase is Phase.FAILED


def test_a_deleted_workflow_is_over(bench: Bench) -> None:
    bench.begin()
    assert not bench.world.finished
    bench.fake.store.drop("workflows", "sweeps/sweep-x")
    bench.until(lambda: bench.world.finished)


def test_a_succeeded_trial_stays_so_when_its_pod_is_collected(bench: Bench) -> None:
    bench.put("pods", over(0, on="n1"))
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.begin()
    bench.put("workflows", workflow(steps("a", "Succeeded", ("n1", "0"))))
    bench.fake.store.drop("pods", "sweeps/sweep-x-a-0")
    bench.until(lambda: bench.trial().phase is Phase.SUCCEEDED)


def test_trials_whose_pods_were_collected_before_the_controller_began_are_known_from_the_workflow(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Succeeded", ("n1", "75"), ("n2", "0"))))
    bench.begin()
    found = bench.trial()
    assert (found.phase, found.attempt, found.moves) == (Phase.SUCCEEDED, 2, 1)
    (result,) = bench.world.results({})
    assert (result.id, result.first_node, result.node, result.attempts) == ("sweep.a", "n1", "n2", 2)
    assert (result.submitted_s, result.completed_s, result.succeeded) == (1.0, 90.0, True)


def test_a_packed_status_is_read(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Succeeded", ("n1", "0")), packed=True))
    bench.begin()
    assert bench.trial().phase is Phase.SUCCEEDED


def test_without_a_status_in_the_workflow_the_pods_tell(bench: Bench) -> None:
    bench.put("pods", over(0, on="n1"))
    bench.put("pods", pod("b", on="n2"))
    bench.begin()
    assert (bench.trial("a").phase, bench.trial("b").phase) == (Phase.SUCCEEDED, Phase.RUNNING)
    bench.fake.store.drop("pods", "sweeps/sweep-x-a-0")
    bench.fake.store.drop("pods", "sweeps/sweep-x-b-0")
    bench.until(lambda: bench.trial("b").phase is Phase.PENDING)
    assert bench.trial("a").phase is Phase.SUCCEEDED


def test_trials_whose_pods_go_right_after_the_controller_began_are_remembered(bench: Bench) -> None:
    bench.put("pods", over(0, on="n1"))
    bench.begin()
    version = bench.view.version
    bench.fake.store.drop("pods", "sweeps/sweep-x-a-0")
    eventually(lambda: bench.view.version != version)
    bench.until(lambda: bench.trial("a").phase is Phase.SUCCEEDED)


def test_argos_retry_of_a_failed_workflow_brings_the_trial_back_to_life(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Failed", ("n1", "1"), ("n2", "1")), "Failed"))
    bench.put("pods", over(1, attempt=0, on="n1"))
    bench.put("pods", over(1, attempt=1, on="n2"))
    bench.begin()
    assert (bench.trial().phase, bench.trial().attempt) == (Phase.FAILED, 2)
    bench.fake.store.drop("pods", "sweeps/sweep-x-a-0")
    bench.fake.store.drop("pods", "sweeps/sweep-x-a-1")
    bench.put("workflows", workflow(steps("a", "Running", ("", None))))
    again = pod(attempt=0, on="n2", uid="another")
    again["metadata"]["creationTimestamp"] = stamp(BEGAN + 200)
    bench.put("pods", again)
    bench.until(lambda: bench.trial().steady)
    assert (bench.trial().attempt, bench.trial().node) == (1, "n2")


def test_a_new_pod_shows_before_argo_tells_of_its_retry(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Failed", ("n1", "1"))))
    again = pod(attempt=0, on="n2")
    again["metadata"]["creationTimestamp"] = stamp(BEGAN + 200)
    bench.put("pods", again)
    bench.begin()
    assert bench.trial().steady


def test_of_two_live_pods_of_a_trial_the_newer_counts_and_the_older_is_load(bench: Bench) -> None:
    bench.put("nodes", node("n1", ready=False))
    bench.put("pods", pod(attempt=0, on="n1"))
    bench.put("pods", pod(attempt=1, on="n2"))
    bench.begin()
    assert (bench.trial().nodes, bench.trial().attempt) == (("n2",), 2)
    cpu = {n.name: (n.cpu, n.ready) for n in bench.world.nodes()}
    assert cpu == {"n1": (0.9, False), "n2": (1.0, True)}


def test_nodes_have_what_others_leave(bench: Bench) -> None:
    stranger = pod("s", on="n1", cpu="250m")
    stranger["metadata"]["labels"] = {}
    elsewhere = {**pod("e", on="n2", cpu="100m")}
    elsewhere["metadata"] = {**elsewhere["metadata"], "namespace": "another", "labels": {}}
    for item in (stranger, elsewhere, pod("a", on="n1"), over(0, "b", on="n1")):
        bench.put("pods", item)
    bench.begin()
    assert {n.name: n.cpu for n in bench.world.nodes()} == {"n1": 0.75, "n2": 0.9}


def test_sidecars_of_a_trial_are_not_the_policys_to_give(bench: Bench) -> None:
    mine = pod(on="n1")
    mine["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "50m"}}
    bench.put("pods", mine)
    bench.begin()
    found = bench.world.node(NodeName("n1"))
    assert found is not None
    assert found.cpu == 0.95


def test_cordoned_tainted_and_silent_nodes_take_no_pods(bench: Bench) -> None:
    bench.put("nodes", node("n1", unschedulable=True))
    bench.put("nodes", node("n2", taints=[{"key": "k", "effect": "NoSchedule"}]))
    bench.put("nodes", node("n3", ready=False))
    bench.put("nodes", node("n4", taints=[{"key": "k", "effect": "PreferNoSchedule"}]))
    bench.begin()
    assert {n.name: n.ready for n in bench.world.nodes()} == {"n1": False, "n2": False, "n3": False, "n4": True}


def test_where_other_namespaces_may_not_be_seen_the_own_one_is_counted(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "controllers")
    stranger = pod("s", on="n1", cpu="250m")
    stranger["metadata"]["labels"] = {}
    bench.put("pods", stranger)
    bench.fake.fault = lambda call: (403, "no") if call.path.startswith("/api/v1/pods") else None
    bench.begin()
    assert {n.name: n.cpu for n in bench.world.nodes()} == {"n1": 0.75, "n2": 1.0}
    told = [(record.levelname, record.message) for record in caplog.records if "namespaces" in record.message]
    assert told == [
        (
            "INFO",
            "this account sees only pods of its own namespaces: it does not count what others request of the nodes",
        )
    ]


def test_pods_without_our_labels_or_owner_are_no_trials(bench: Bench) -> None:
    unlabelled, ownerless, malformed = pod("a", on="n1"), pod("b", on="n1"), pod("c", on="n1")
    del unlabelled["metadata"]["labels"]["hera-specon.io/trial"]
    del ownerless["metadata"]["ownerReferences"]
    malformed["spec"]["containers"][1]["env"][0]["value"] = "../../etc/passwd"
    for item in (unlabelled, ownerless, malformed):
        bench.put("pods", item)
    bench.begin()
    assert bench.world.trials() == []


def test_a_campaign_has_only_the_trials_of_its_policy(bench: Bench) -> None:
    bench.put("workflows", workflow(templates=[template("a", "flowcon"), template("b")]))
    bench.put("pods", pod("a", on="n1", notes={"hera-specon.io/policy": "flowcon"}))
    bench.put("pods", pod("b", on="n1"))
    bench.put("workflows", workflow(templates=[template("b")]))
    bench.begin()
    assert [t.id for t in bench.world.trials()] == [trial("b")]
    assert bench.world.objectives() == {trial("b"): "loss"}


def test_a_sweep_that_continues_another_is_known_by_that_ones_uid(bench: Bench) -> None:
    changed = workflow(steps("a", "Running", ("", None)))
    changed["spec"]["arguments"] = {"parameters": [{"name": "continue-sweep", "value": "old-uid"}]}
    env = [{"name": "SPECON_TRIAL_ID", "value": f"{SWEEP_UID}.sweep.a"}]
    changed["spec"]["templates"][1]["container"]["env"] = env
    bench.put("workflows", changed)
    bench.begin()
    assert [t.id for t in bench.world.trials()] == ["old-uid.sweep.a"]
    assert bench.world.short("old-uid.sweep.a") == "sweep.a"


def test_stale_sights_are_not_acted_upon(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin(Timeouts(stale=-1.0))
    outcome = bench.world.apply(Resize(A, 0.2))
    assert not outcome.done
    assert "has been silent" in outcome.detail
    assert not bench.world.advance(1.0)


def test_a_look_that_cost_much_serves_for_longer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (looks, world):
        monkeypatch.setattr(module, "rest_s", lambda _took: 60.0)
    bench.put("pods", pod(on="n1", has="100m"))
    bench.begin()
    bench.world.advance(1.0)
    bench.put("pods", pod(on="n1", has="300m"))
    eventually(lambda: [p.share.has for p in bench.view.trial_pods()] == [0.3])
    time.sleep(0.3)
    assert not bench.world.advance(2.0)
    assert bench.trial().cpu == 0.1


@pytest.mark.parametrize(("took", "rest"), [(0.0, 0.0), (0.1, 0.5), (1.0, 5.0), (30.0, 5.0)])
def test_looks_take_a_sixth_of_the_time_at_most_and_none_serves_for_more_than_five_seconds(
    took: float, rest: float
) -> None:
    assert rest_s(took) == rest


def test_a_workflow_is_marked_as_steered_before_a_trial_is_moved(bench: Bench) -> None:
    bare = workflow()
    bare["metadata"]["annotations"] = {}
    bench.put("workflows", bare)
    bench.put("pods", pod(on="n1"))
    bench.begin()
    assert "not marked" in bench.world.apply(Migrate(A, (NodeName("n2"),))).detail
    bench.until(lambda: notes_of_workflow(bench).get("hera-specon.io/adopted") == UID)


def test_what_a_trial_came_to_carries_the_deadline_it_had(bench: Bench) -> None:
    bench.put("pods", pod(on="n1", notes={"hera-specon.io/deadline": "90"}))
    bench.begin()
    (result,) = bench.world.results({})
    assert result.deadline_s == 90.0


def test_a_gated_first_attempt_waits_until_it_is_placed(bench: Bench) -> None:
    bench.put("pods", pod(gated=True))
    bench.begin()
    bench.settle()
    assert bench.trial().gated
    assert bench.world.apply(Place(A, (NodeName("n2"),))).done
    assert not bench.trial().gated
    bench.until(lambda: not (bench.pod() or {})["spec"].get("schedulingGates"))
    assert (bench.pod() or {})["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "host-n2"}
    bench.until(lambda: "Placed" in bench.told.reasons)


def test_a_place_for_the_scheduler_to_choose_leaves_the_pod_unbound(bench: Bench) -> None:
    bench.put("pods", pod(gated=True))
    bench.begin()
    assert bench.world.apply(Place(A)).done
    bench.until(lambda: not (bench.pod() or {})["spec"].get("schedulingGates"))
    assert "nodeSelector" not in (bench.pod() or {})["spec"]


def test_a_place_on_an_unfit_node_or_of_a_trial_that_waits_for_none_is_refused(bench: Bench) -> None:
    bench.put("pods", pod("a", gated=True))
    bench.put("pods", pod("b", on="n1"))
    bench.put("nodes", node("n2", unschedulable=True))
    bench.begin()
    assert "n2" in bench.world.apply(Place(A, (NodeName("n2"),))).detail
    assert not bench.world.apply(Place(TrialId(trial("b")), (NodeName("n1"),))).done
    assert bench.trial().gated


def test_a_gate_that_can_not_be_opened_is_shown_as_closed_again(bench: Bench) -> None:
    bench.put("pods", pod(gated=True))
    bench.begin()
    bench.fake.fault = lambda call: (500, "no") if call.method == "PATCH" else None
    assert bench.world.apply(Place(A)).done
    bench.until(lambda: bench.trial().gated)
