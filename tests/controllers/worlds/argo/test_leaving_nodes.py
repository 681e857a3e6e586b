"""Nodes that go, as the Argo world shows them, and what becomes of the trials there."""

import time
from typing import Any

import pytest

from controllers.core.actions import Migrate
from controllers.core.expressions import retries
from controllers.core.labels import ANNOTATION_DO_NOT_DISRUPT, ANNOTATION_STAYS, ANNOTATION_TRIES
from controllers.core.model import Node, NodeName, Phase, TrialId
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import BEGAN, NAMESPACE, WORKFLOW, node, over, pod, steps, trial, workflow

A = TrialId(trial("a"))
TO_N2 = Migrate(A, (NodeName("n2"),))
DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
TAINT = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}


def tainted(name: str, given_at: float) -> dict[str, Any]:
    return node(name, taints=[{**TAINT, "value": f"{given_at:.0f}"}])


def shown(bench: Bench, name: str) -> Node:
    found = bench.world.node(NodeName(name))
    assert found is not None
    return found


def test_a_node_that_goes_takes_no_trials_and_tells_its_deadline_on_the_sweeps_clock(bench: Bench) -> None:
    bench.put("pods", pod(on="n1"))
    bench.begin()
    now = time.time()
    bench.put("nodes", tainted("n2", now))
    bench.until(lambda: shown(bench, "n2").leaves_at is not None)
    assert not shown(bench, "n2").ready
    assert shown(bench, "n2").leaves_at == pytest.approx(now - BEGAN + 30, abs=2)
    assert (shown(bench, "n1").ready, shown(bench, "n1").leaves_at) == (True, None)
    assert "goes" in bench.world.apply(TO_N2).detail
    bench.put("nodes", node("n2"))
    bench.until(lambda: shown(bench, "n2").ready)
    assert shown(bench, "n2").leaves_at is None


@pytest.mark.parametrize("going", [{"conditions": [DISRUPTED]}, {"deleted": BEGAN + 5}])
def test_a_pod_that_goes_already_is_not_asked_to_leave(bench: Bench, going: dict[str, Any]) -> None:
    bench.put("pods", pod(on="n1", **going))
    bench.begin()
    assert "not running" in bench.world.apply(TO_N2).detail
    assert bench.pods.commands == []


def test_a_move_whose_node_is_drained_meanwhile_goes_on_where_it_was_sent(bench: Bench) -> None:
    bench.put("workflows", workflow(steps("a", "Running", ("n1", None))))
    bench.put("pods", pod(on="n1"))
    bench.begin()
    bench.put("nodes", tainted("n1", time.time()))
    bench.until(lambda: not shown(bench, "n1").ready)
    assert bench.world.apply(TO_N2).done
    bench.until(lambda: bench.pods.commands)
    notes = (bench.pod() or {})["metadata"]["annotations"]
    bench.put("pods", over(75, on="n1", notes=notes, conditions=[DISRUPTED], deleted=time.time()))
    bench.put("workflows", workflow(steps("a", "Running", ("n1", "75"), ("", None))))
    bench.put("pods", pod(attempt=1, gated=True))
    bench.until(lambda: not (bench.pod(attempt=1) or {})["spec"].get("schedulingGates"))
    assert (bench.pod(attempt=1) or {})["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "host-n2"}


def test_evictions_use_up_no_retry_of_the_authors_however_many_they_are(bench: Bench) -> None:
    made = workflow(steps("a", "Running", *[("n1", "75")] * 9, ("n1", None)))
    made["spec"]["templates"][1]["retryStrategy"] = {"limit": "100", "expression": retries("sweep", 3)}
    bench.put("workflows", made)
    for attempt in range(9):
        bench.put("pods", over(75, attempt=attempt, on="n1", conditions=[DISRUPTED]))
    bench.put("pods", pod(attempt=9, on="n1"))
    bench.begin()
    key = f"{NAMESPACE}/{WORKFLOW}"
    mark = f"{ANNOTATION_TRIES}sweep-a"
    bench.until(lambda: bench.fake.store.objects["workflows"][key]["metadata"]["annotations"].get(mark) == "12")
    assert bench.trial().phase is Phase.RUNNING


def notes(bench: Bench) -> dict[str, str]:
    return {key: value for key, value in (bench.pod() or {})["metadata"]["annotations"].items() if value is not None}


def karpenters(name: str) -> dict[str, Any]:
    made = node(name)
    made["metadata"]["labels"]["karpenter.sh/nodepool"] = "default"
    return made


def test_karpenter_is_kept_from_a_node_whose_trial_ends_soon_and_no_longer(bench: Bench) -> None:
    soon = [True]
    bench.put("nodes", karpenters("n1"))
    bench.put("pods", pod(on="n1"))
    bench.begin(ends_soon=lambda _: soon[0])
    bench.until(lambda: notes(bench).get(ANNOTATION_DO_NOT_DISRUPT) == "true")
    soon[0] = False
    bench.until(lambda: ANNOTATION_DO_NOT_DISRUPT not in notes(bench))
    assert ANNOTATION_STAYS not in notes(bench)


@pytest.mark.parametrize(("made", "own"), [(node("n1"), {}), (karpenters("n1"), {ANNOTATION_DO_NOT_DISRUPT: "false"})])
def test_other_nodes_and_what_an_author_wrote_are_left_alone(
    bench: Bench, made: dict[str, Any], own: dict[str, str]
) -> None:
    bench.put("nodes", made)
    bench.put("pods", pod(on="n1", notes=own))
    bench.begin(ends_soon=lambda _: True)
    bench.settle()
    assert ANNOTATION_STAYS not in notes(bench)
    assert notes(bench).get(ANNOTATION_DO_NOT_DISRUPT) == own.get(ANNOTATION_DO_NOT_DISRUPT)
