"""A controller that may not exec asks by an annotation, and says of each trial that cannot see it why that stays."""

import time

import pytest

from controllers.core.actions import Action, Migrate, Stop, Suspend
from controllers.core.model import NodeName, Phase, TrialId
from controllers.worlds.argo.deciding.planner import Timeouts
from controllers.worlds.argo.reading.pods import project_pod
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.fake_api import Json
from tests.controllers.worlds.argo.gang_bench import G, running
from tests.controllers.worlds.argo.gang_bench import notes as gang_notes
from tests.controllers.worlds.argo.gang_objects import ended, worker
from tests.controllers.worlds.argo.objects import UID, node, over, pod, stamp, steps, trial, workflow
from tests.controllers.worlds.argo.test_moves import chosen, marks, notes, opened, unschedulable

A = TrialId(trial("a"))
TO_N2 = Migrate(A, (NodeName("n2"),))
LEAVE = "hera-specon.io/leave"
ACTIONS = (TO_N2, Suspend(A), Stop(A, "it converged"))
SOON = Timeouts(shown=0.2)


@pytest.fixture
def poor(bench: Bench) -> Bench:
    """A bench whose account may neither exec nor evict, with a trial that runs and can see that it is asked."""
    bench.fake.denied = {"exec", "eviction"}
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", pod(on="n1", uid="first", sees_asks=True, grace=0))
    return bench


def test_a_move_without_exec_and_deletes(poor: Bench) -> None:
    poor.begin()
    assert poor.world.apply(TO_N2).done
    poor.until(lambda: notes(poor).get(LEAVE) == "first")
    assert (notes(poor)["hera-specon.io/move-to"], poor.trial().phase) == ("n2", Phase.MOVING)
    poor.put("pods", over(75, on="n1", uid="first", notes=notes(poor)))
    poor.put("workflows", workflow(steps("a", "Running", ("n1", "75"), ("", None))))
    poor.put("pods", pod(attempt=1, gated=True, sees_asks=True))
    poor.until(lambda: opened(poor))
    assert chosen(poor) == "host-n2"
    poor.put("pods", pod(attempt=1, on="n2", sees_asks=True, notes=notes(poor, 1)))
    poor.until(lambda: poor.trial().steady)
    assert (poor.trial().node, poor.trial().moves) == ("n2", 1)
    assert poor.pods.commands == []
    assert poor.fake.of("POST", "/eviction") == []


@pytest.mark.parametrize("action", ACTIONS, ids=["move", "suspend", "stop"])
def test_each_way_of_leaving_asks_by_the_annotation(poor: Bench, action: Action) -> None:
    poor.begin()
    assert poor.world.apply(action).done
    poor.until(lambda: notes(poor).get(LEAVE) == "first")
    assert poor.pods.commands == []


def test_where_exec_is_granted_no_annotation_is_written(poor: Bench) -> None:
    poor.fake.denied = set()
    poor.begin()
    assert poor.world.apply(TO_N2).done
    poor.until(lambda: poor.pods.commands)
    assert LEAVE not in notes(poor)


def test_a_controller_that_was_killed_after_the_mark_asks_again(poor: Bench) -> None:
    poor.put("pods", pod(on="n1", uid="first", sees_asks=True, notes=marks()))
    poor.begin()
    poor.until(lambda: notes(poor).get(LEAVE) == "first")


@pytest.mark.parametrize("action", ACTIONS, ids=["move", "suspend", "stop"])
def test_a_pod_that_cannot_show_the_annotation_stays_and_it_is_said_why(poor: Bench, action: Action) -> None:
    poor.put("pods", pod(on="n1", uid="first"))
    poor.begin()
    outcome = poor.world.apply(action)
    assert not outcome.done
    why = "sweep-x-a-0 cannot be asked to leave: this controller may not exec, and the pod has no volume"
    assert why in outcome.detail
    poor.settle()
    assert LEAVE not in notes(poor)


@pytest.mark.parametrize("action", ACTIONS, ids=["move", "suspend", "stop"])
def test_a_program_without_hooks_stays_and_it_is_said_why(poor: Bench, action: Action) -> None:
    poor.begin(hooked=lambda _: False)
    outcome = poor.world.apply(action)
    assert not outcome.done
    assert "hooks" in outcome.detail


def test_a_program_without_hooks_moves_where_exec_is_granted(poor: Bench) -> None:
    poor.fake.denied = set()
    poor.begin(hooked=lambda _: False)
    assert poor.world.apply(TO_N2).done


def test_a_deaf_trial_goes_on_where_it_is_and_is_moved_no_more(poor: Bench) -> None:
    poor.begin(SOON)
    assert poor.world.apply(TO_N2).done
    poor.until(lambda: "MoveFailed" in poor.told.reasons)
    poor.until(lambda: poor.trial().steady)
    assert "hera-specon.io/move-to" not in notes(poor)
    for action in (TO_N2, Suspend(A)):
        assert "was asked to leave before, and has not" in poor.world.apply(action).detail
    # Also by a controller that knows nothing of it.
    poor.begin(SOON)
    assert "was asked to leave before, and has not" in poor.world.apply(TO_N2).detail
    assert poor.pods.commands == []


def test_a_deaf_trial_that_is_stopped_ends_when_it_ends(poor: Bench) -> None:
    poor.begin(SOON)
    assert poor.world.apply(Stop(A, "it converged")).done
    poor.until(lambda: notes(poor).get(LEAVE) == "first")
    time.sleep(0.5)
    poor.settle()
    assert poor.trial().phase is Phase.STOPPING
    assert poor.pod() is not None
    poor.put("pods", over(0, on="n1", uid="first", notes=notes(poor)))
    poor.until(lambda: poor.trial().phase is Phase.STOPPED)


def test_a_deaf_trial_is_evicted_where_that_is_granted_and_gets_its_grace(poor: Bench) -> None:
    poor.fake.denied = {"exec"}
    poor.begin(SOON)
    assert poor.world.apply(TO_N2).done
    poor.until(lambda: poor.pod() is None)
    (evicted,) = poor.fake.of("POST", "/eviction")
    assert evicted.body["deleteOptions"] == {"preconditions": {"uid": "first"}}


def test_a_budget_keeps_a_deaf_trial_and_that_is_told(poor: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.worlds.argo.writing.executor._AFTER_BUDGET_S", 0.05)
    poor.fake.denied, poor.fake.budget = {"exec"}, "it needs one healthy pod and has one"
    poor.begin(SOON)
    assert poor.world.apply(TO_N2).done
    poor.until(lambda: poor.told.reasons.count("NotRemoved") > 1)
    assert poor.pod() is not None
    poor.fake.budget = ""
    poor.until(lambda: poor.pod() is None)


def test_a_request_to_an_earlier_attempt_is_none_to_this_one(poor: Bench) -> None:
    poor.put("pods", pod(on="n1", uid="first", sees_asks=True, notes={LEAVE: "another"}))
    poor.begin()
    assert poor.world.apply(TO_N2).done


def test_a_pod_that_waits_for_a_stopped_trial_is_let_go_so_that_it_ends(poor: Bench) -> None:
    poor.put("workflows", workflow(steps("a", "Running", ("n1", "75"), ("", None))))
    poor.put("pods", over(75, on="n1", uid="first", notes={"hera-specon.io/rest": "suspend"}))
    poor.put("pods", pod(attempt=1, gated=True, sees_asks=True, uid="second"))
    poor.begin()
    poor.settle()
    assert poor.world.apply(Stop(A, "it converged")).done
    poor.until(lambda: opened(poor))
    poor.put("pods", pod(attempt=1, on="n2", uid="second", sees_asks=True, notes=notes(poor, 1)))
    poor.until(lambda: notes(poor, 1).get(LEAVE) == "second")


@pytest.mark.parametrize("granted", [True, False])
def test_pods_that_only_an_eviction_would_free_are_left_to_kubernetes_without_one(
    poor: Bench, *, granted: bool
) -> None:
    poor.fake.denied = {"exec"} if granted else {"exec", "eviction"}
    lost = node("n1", ready=False)
    lost["status"]["conditions"][0]["lastTransitionTime"] = stamp(time.time() - 900)
    poor.put("nodes", lost)
    poor.put("pods", pod(on="n1", uid="first", sees_asks=True, deleted=time.time() - 900))
    placed = {"hera-specon.io/placed-on": "n1", "hera-specon.io/moved-from": "n2"}
    poor.put("pods", over(75, "b", on="n2"))
    poor.put("pods", pod("b", attempt=1, notes=placed, conditions=unschedulable(time.time() - 900)))
    record = steps("a", "Running", ("n1", None)) | steps("b", "Running", ("n2", "75"), ("", None))
    poor.put("workflows", workflow(record))
    poor.begin()
    poor.settle()
    evicted = sorted(call.path.split("/")[-2] for call in poor.fake.of("POST", "/eviction"))
    assert evicted == (["sweep-x-a-0", "sweep-x-b-1"] if granted else [])


def shown(**changes: Json) -> bool:
    made = pod(on="n1", sees_asks=True)
    main = next(one for one in made["spec"]["containers"] if one["name"] == "main")
    (volume,), (mount,) = made["spec"]["volumes"], main["volumeMounts"]
    volume |= changes.get("volume", {})
    mount |= changes.get("mount", {})
    main["env"] += changes.get("env", [])
    record = project_pod(made)
    assert record is not None
    return record.sees_asks


@pytest.mark.parametrize(
    "changes",
    [
        {"volume": {"name": "other"}},
        {"volume": {"downwardAPI": {"items": [{"path": "leave", "fieldRef": {"fieldPath": "metadata.annotations"}}]}}},
        {"volume": {"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.name"}}]}}},
        {"volume": {"downwardAPI": "leave"}},
        {"mount": {"mountPath": "/elsewhere"}},
        {"mount": {"subPath": "leave"}},
        {"env": [{"name": "SPECON_LEAVE_FILE", "value": "/elsewhere/leave"}]},
    ],
    ids=["volume", "all-annotations", "another-field", "nonsense", "place", "sub-path", "file"],
)
def test_a_program_sees_it_only_where_all_fits(changes: dict[str, Json]) -> None:
    assert shown()
    assert not shown(**changes)


def gang_asked(bench: Bench) -> bool:
    return all(gang_notes(bench, rank).get(LEAVE) == f"{UID}.0" for rank in range(2))


def test_every_worker_of_a_gang_is_asked_by_the_name_of_its_attempt(bench: Bench) -> None:
    bench.fake.denied = {"exec", "eviction"}
    running(bench, "n1", "n2", sees_asks=True)
    bench.begin()
    assert bench.world.apply(Suspend(G)).done
    bench.until(lambda: gang_asked(bench))
    assert bench.pods.commands == []


def test_what_is_left_of_a_gang_that_lost_a_worker_is_asked_too(bench: Bench) -> None:
    bench.fake.denied = {"exec", "eviction"}
    running(bench, "n1", "n2", sees_asks=True)
    bench.put("pods", ended(1, 1, on="n2", sees_asks=True))
    bench.begin()
    bench.until(lambda: gang_notes(bench, 0).get(LEAVE) == f"{UID}.0")


def test_a_gang_with_one_pod_that_cannot_show_the_annotation_stays(bench: Bench) -> None:
    bench.fake.denied = {"exec"}
    running(bench, "n1", "n2", sees_asks=True)
    bench.put("pods", worker(1, on="n2"))
    bench.begin()
    assert "no volume" in bench.world.apply(Suspend(G)).detail
