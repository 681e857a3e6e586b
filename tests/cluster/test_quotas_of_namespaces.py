"""ResourceQuota on a real API server: it refuses a share, holds a start back, and is kept by who reads it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controllers.core.actions import Resize
from controllers.core.model import Phase, TrialId
from controllers.worlds.argo.calls.api import EVENTS, QUOTAS, KubeApi
from controllers.worlds.argo.calls.errors import ForbiddenError
from controllers.worlds.argo.calls.untrusted import at, quantity
from controllers.worlds.argo.reading.resize_answers import answer_to
from controllers.worlds.argo.writing.pod_changes import set_request
from tests.cluster.any_cluster import AnyCluster
from tests.cluster.sweeps import descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.proofs import check_whole
from tests.contract.argo_bench import ArgoBench
from tests.contract.bench import Behaviour

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
NAME = "team"
STEPS = 20_000
"""Enough that the trial does not end before the test does, however slow the machine is."""


@pytest.fixture
def contract_bench(cluster: AnyCluster, tmp_path: Path) -> Iterator[ArgoBench]:
    cluster.show_folder(tmp_path)
    made = ArgoBench(str(cluster.kubeconfig), tmp_path)
    yield made
    made.close()


def make_quota(api: KubeApi, namespace: str, cpu: str) -> None:
    api.create(QUOTAS.path(namespace), {"metadata": {"name": NAME}, "spec": {"hard": {"requests.cpu": cpu}}})


def quota(api: KubeApi, namespace: str) -> dict[str, Any]:
    return api.get(QUOTAS.path(namespace, NAME))


def used(api: KubeApi, namespace: str) -> float:
    return quantity(quota(api, namespace), "status", "used", "requests.cpu")


def reasons(api: KubeApi, namespace: str) -> list[str]:
    return [str(event["reason"]) for event in api.get(EVENTS.path(namespace))["items"]]


def test_a_quota_refuses_a_share_in_known_words_and_who_reads_it_asks_for_no_more_than_is_left(
    contract_bench: ArgoBench,
) -> None:
    bench, namespace = contract_bench, contract_bench._namespace
    bench.submit(a=Behaviour(steps=STEPS))
    bench.until_running("a")
    trial = TrialId(bench.trial("a").id)
    make_quota(bench._api, namespace, "10")
    bench.until(lambda: used(bench._api, namespace) > 0)
    bench._api.patch(
        QUOTAS.path(namespace, NAME), {"spec": {"hard": {"requests.cpu": f"{used(bench._api, namespace) + 0.05:g}"}}}
    )
    bench.until(lambda: quantity(quota(bench._api, namespace), "status", "hard", "requests.cpu") < 1)
    attempt = bench.world.attempt(trial)
    assert attempt is not None
    with pytest.raises(ForbiddenError) as refusal:
        set_request(bench._api, attempt.lead, 0.3)
    answer = answer_to(refusal.value)
    assert answer is not None
    assert "raise the ResourceQuota" in answer.line

    def granted() -> bool:
        # Asked again, as a policy does: on a busy machine a kubelet may take so long that the share is taken back.
        bench.world.apply(Resize(trial, 0.3))
        return bench.trial("a").cpu == pytest.approx(0.15)

    bench.until(granted)
    bench.until(lambda: "has 0 cores left" in bench.world.apply(Resize(trial, 0.3)).detail)
    assert "ResizeFailed" not in reasons(bench._api, namespace)
    done = len(bench.steps("a"))
    bench.until(lambda: len(bench.steps("a")) > done)
    assert bench.trial("a").phase is Phase.RUNNING
    steps = bench.steps("a")
    assert steps == list(range(len(steps)))


def test_a_start_that_exceeds_the_quota_waits_for_room_and_no_share_takes_that(bench: Bench) -> None:
    make_quota(bench.api, bench.namespace, "200m")
    bench.wait(lambda: bool(at(quota(bench.api, bench.namespace), "status", "hard")), "the quota counts", 30)
    bench.controller("ahead").start().wait_ready()
    workflow = bench.submit(descent_sweep, steps=80)
    bench.wait(lambda: "exceeded quota" in said_of_steps(bench, workflow), "a start is held back", 120)
    assert len(bench.pods.all(workflow.name)) <= 3
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert "ResizeFailed" not in reasons(bench.api, bench.namespace)


def said_of_steps(bench: Bench, workflow: Workflow) -> str:
    """Return what Argo says of the workflow's nodes."""
    nodes = at(bench.workflow(workflow), "status", "nodes") or {}
    return json.dumps([at(node, "message") for node in nodes.values()])
