"""Pods, claims and workflows that say they are somebody else's change nothing of what they name."""

import time

import pytest

from controllers.core.model import Phase
from controllers.worlds.argo.meaning.room import MOST_CLAIM_S, Claims, NodeRequests, NodeRoom
from controllers.worlds.argo.meaning.view import ClusterView
from controllers.worlds.argo.reading.definitions import _warned
from controllers.worlds.argo.reading.nodes import project_node
from controllers.worlds.argo.reading.pods import PodRecord, Resources, project_pod
from tests.controllers.worlds.argo.conftest import TIMING, Bench, bench, fake, pods  # noqa: F401 - fixtures
from tests.controllers.worlds.argo.fake_api import FakeApi, Json
from tests.controllers.worlds.argo.objects import (
    BEGAN,
    NAMESPACE,
    UID,
    WORKFLOW,
    node,
    pod,
    stamp,
    steps,
    template,
    workflow,
)


def forged(**metadata: object) -> Json:
    """A pod that is newer than the victim's, and names the victim's workflow as its owner."""
    made = pod("a", 1, on="n2", uid="forged", cpu="900m")
    made["metadata"] = {**made["metadata"], "creationTimestamp": stamp(BEGAN + 50), **metadata}
    return made


@pytest.mark.parametrize(
    "metadata",
    [
        {"namespace": "attacker"},
        {"ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": WORKFLOW, "uid": UID}]},
        {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Workflow", "name": WORKFLOW, "uid": UID, "controller": True}
            ]
        },
        {"name": "mine", "annotations": {**pod()["metadata"]["annotations"], "workflows.argoproj.io/node-id": "mine"}},
    ],
    ids=["another namespace", "no controller", "another kind of workflow", "not in Argo's record"],
)
def test_a_forged_pod_does_not_take_a_trial_over(bench: Bench, metadata: dict[str, object]) -> None:  # noqa: F811
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", pod(on="n1"))
    bench.put("pods", forged(**metadata))
    bench.begin()
    bench.settle()
    found = bench.trial()
    assert (found.phase, found.nodes, found.cpu, found.attempt) == (Phase.RUNNING, ("n1",), 0.1, 1)


@pytest.mark.parametrize("cpu", ["1000000", "900m"])
def test_a_pod_that_only_says_where_it_was_placed_takes_no_room(bench: Bench, cpu: str) -> None:  # noqa: F811
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", pod(on="n1"))
    claim = pod("b", 0, cpu=cpu, uid="claim", notes={"hera-specon.io/placed-on": "n2"})
    claim["metadata"]["ownerReferences"][0]["uid"] = "another"
    bench.put("pods", claim)
    bench.begin()
    room = {str(one.name): one.cpu for one in bench.world.nodes()}
    assert room["n2"] == 1.0
    seen = bench.world._looks.last
    assert seen.room.why_unfit(["n2"], seen.states[bench.trial().id].next_requests) is None


def test_a_pod_that_never_comes_to_its_node_keeps_room_there_for_minutes_only() -> None:
    (there,) = filter(None, [project_node(node("n2"))])
    claiming = [
        found
        for number in range(50)
        if (found := project_pod(pod(f"c{number}", uid=str(number), notes={"hera-specon.io/placed-on": "n2"})))
    ]
    claims = Claims()

    def why_unfit(now: float, seen: list[PodRecord]) -> str | None:
        believed = claims.believed(seen, now)
        return NodeRoom(NodeRequests([there], seen, [], believed)).why_unfit(["n2"], Resources(0.5, 0.0))

    assert "do not fit" in (why_unfit(0.0, claiming[:25]) or "")
    assert "do not fit" in (why_unfit(MOST_CLAIM_S - 1, claiming) or "")
    assert claims.next_end == MOST_CLAIM_S
    assert "do not fit" in (why_unfit(MOST_CLAIM_S + 1, claiming) or ""), "those that came later"
    assert why_unfit(2 * MOST_CLAIM_S, claiming) is None
    assert why_unfit(9 * MOST_CLAIM_S, claiming) is None, "the same pods claim no second time"


def test_the_room_of_a_pod_that_never_comes_is_free_again_though_nothing_changes(
    bench: Bench,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench.put("workflows", workflow(steps("a", "Pending", ("", None))))
    bench.put("pods", pod("a", cpu="900m", notes={"hera-specon.io/placed-on": "n2"}))
    bench.begin()
    view = bench.world._view
    assert view.requests().of("n2").cpu == pytest.approx(0.9)
    later = time.monotonic() + MOST_CLAIM_S + 10
    monkeypatch.setattr("controllers.worlds.argo.meaning.view.time.monotonic", lambda: later)
    assert view.requests().of("n2").cpu == 0


def campaigns(fake_api: FakeApi, *workflows: Json) -> list[tuple[str, str]]:
    _warned.clear()
    fake_api.store.put("nodes", node("n1"))
    for one in workflows:
        fake_api.store.put("workflows", one)
    api = fake_api.client()
    with ClusterView(api, None, TIMING) as view:
        assert view.wait_synced(10)
        found = [(one.namespace, one.workflow) for one in view.campaigns("default")]
    api.close()
    return found


def named(name: str, namespace: str, uid: str, **more: object) -> Json:
    made = workflow(**more)  # type: ignore[arg-type]  # templates
    made["metadata"] |= {"name": name, "namespace": namespace, "uid": uid, "annotations": {}}
    return made


def continuing(one: Json, uid: str) -> Json:
    one["spec"]["arguments"] = {"parameters": [{"name": "continue-sweep", "value": uid}]}
    for made in one["spec"]["templates"][1:]:
        env = made["container"]["env"][0]
        env["value"] = env["value"].replace("{{workflow.uid}}", uid)
    return one


def test_a_workflow_continues_a_sweep_of_its_own_namespace_only(fake: FakeApi) -> None:  # noqa: F811
    victim = named("victim", NAMESPACE, UID)
    attacker = continuing(named("thief", "attacker", "thief-uid"), UID)
    owner = continuing(named("again", NAMESPACE, "again-uid"), UID)
    assert sorted(campaigns(fake, victim, attacker, owner)) == [(NAMESPACE, "again"), (NAMESPACE, "victim")]


def test_a_workflow_whose_trials_bear_the_identity_of_others_has_no_sweep(fake: FakeApi) -> None:  # noqa: F811
    thief = named("thief", "attacker", "thief-uid")
    for made in thief["spec"]["templates"][1:]:
        made["container"]["env"][0]["value"] = f"{UID}.sweep.a"
    assert campaigns(fake, thief) == []


def test_a_workflow_of_thousands_of_policies_is_left_alone_and_delays_nobody(fake: FakeApi) -> None:  # noqa: F811
    crowd = [template(f"t{number}", f"specon:interval={number + 1}") for number in range(3000)]
    for number, made in enumerate(crowd):
        made["container"]["env"][0]["value"] = "{{workflow.uid}}" + f".s{number}.a"
    began = time.monotonic()
    found = campaigns(fake, named("crowd", "attacker", "crowd-uid", templates=crowd), named("victim", NAMESPACE, UID))
    assert found == [(NAMESPACE, "victim")]
    assert time.monotonic() - began < 10


def test_a_namespace_has_only_so_many_sweeps_at_a_time(fake: FakeApi) -> None:  # noqa: F811
    crowd = [named(f"w{number:03}", "attacker", f"uid-{number}") for number in range(150)]
    found = campaigns(fake, *crowd, named("victim", NAMESPACE, UID))
    assert sum(namespace == "attacker" for namespace, _ in found) == 100
    assert (NAMESPACE, "victim") in found


def test_a_sweep_whose_first_workflow_is_gone_stays_with_whoever_continued_it_first(fake: FakeApi) -> None:  # noqa: F811
    owner = continuing(named("again", NAMESPACE, "again-uid"), UID)
    attacker = continuing(named("thief", "attacker", "thief-uid"), UID)
    attacker["metadata"]["creationTimestamp"] = stamp(BEGAN + 100)
    assert campaigns(fake, attacker, owner) == [(NAMESPACE, "again")]
