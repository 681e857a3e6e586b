"""Sweeps under a real Kueue: quotas, a borrow, a preemption, and shares that change."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from controllers.core import kueue
from controllers.worlds.argo.calls.untrusted import mappings, text
from mlflow_hooks.contract import EXIT_MIGRATE
from tests.cluster.cluster import Cluster
from tests.cluster.kueue_install import kueue_running, queue_of, usage
from tests.cluster.sweeps import labelled_descent_sweep, queued_descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow, opened_bench
from tests.cluster.sweeps.pods_seen import SeenPod
from tests.cluster.sweeps.proofs import check_whole, resizes
from tests.cluster.sweeps.tracking import Tracking

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
POD_MILLI: Final = 60
"""What Kueue counts of a trial: 50 of its own, and 10 of Argo's container beside it."""
NOMINAL_MILLI: Final = 150
"""Room for two trials of each namespace, and for a third that borrows from the other; together for five."""


@pytest.fixture(scope="module")
def with_kueue(own_cluster: Cluster) -> Iterator[Cluster]:
    """Run Kueue for these tests."""
    with kueue_running(own_cluster):
        yield own_cluster


@pytest.fixture
def teams(with_kueue: Cluster, tracking: Tracking, tmp_path: Path) -> Iterator[tuple[Bench, Bench]]:
    """Two namespaces, each with a queue, in one cohort."""
    with ExitStack() as stack:
        benches = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            with_kueue.show_folder(folder)
            bench = stack.enter_context(opened_bench(with_kueue, tracking, folder))
            stack.enter_context(queue_of(with_kueue, bench.namespace, "both", f"{NOMINAL_MILLI}m"))
            benches.append(bench)
        first, second = benches
        yield first, second


def borrowed(bench: Bench) -> float:
    return usage(bench.cluster, bench.namespace)[1]


def conditions(pod: SeenPod) -> set[str]:
    return {text(one, "type") for one in mappings(pod.last, "status", "conditions")}


def preempted(bench: Bench, workflow: Workflow) -> list[SeenPod]:
    return [pod for pod in bench.pods.all(workflow.name) if kueue.TERMINATION_TARGET in conditions(pod)]


def test_two_teams_borrow_and_take_back_and_every_trial_goes_on_where_it_was(teams: tuple[Bench, Bench]) -> None:
    lender, borrower = teams[1], teams[0]
    for bench in teams:
        bench.controller("ahead").start().wait_ready()
    large = borrower.submit(queued_descent_sweep, steps=160)
    borrower.wait(lambda: borrowed(borrower) > 0, "the first team borrows", 120)
    borrower.wait(lambda: len(borrower.running(large)) == 4, "all its trials run", 120)
    borrower.wait_all_training(large)
    assert usage(borrower.cluster, borrower.namespace)[0] == 4 * POD_MILLI
    small = lender.submit(queued_descent_sweep, steps=60)
    borrower.wait(lambda: bool(preempted(borrower, large)), "the second team takes back what it lent", 120)
    most = 0.0
    while lender.phase(small) not in {"Succeeded", "Failed", "Error"}:
        totals = [usage(bench.cluster, bench.namespace)[0] for bench in teams]
        most = max(most, sum(totals))
    lender.wait_for_end(small)
    borrower.wait_for_end(large)
    assert most <= 2 * NOMINAL_MILLI
    check_whole(lender, small)
    check_whole(borrower, large)
    moved = preempted(borrower, large)
    assert moved
    assert all(pod.exit_code in {EXIT_MIGRATE, None} for pod in moved), [str(pod) for pod in moved]
    kept = [pod for bench, flow in ((borrower, large), (lender, small)) for pod in bench.pods.all(flow.name)]
    assert not [
        str(pod) for pod in kept if "deleted" in pod.moments and kueue.TERMINATION_TARGET not in conditions(pod)
    ]
    assert resizes(borrower, large) + resizes(lender, small) > 0
    assert all(milli(share) <= 50 for pod in kept for share in pod.shares), "a share grew above what was admitted"


def milli(share: str) -> float:
    return float(share[:-1]) if share.endswith("m") else 1000 * float(share)


def test_a_pod_that_is_no_group_is_never_resized(teams: tuple[Bench, Bench]) -> None:
    bench = teams[0]
    bench.controller("ahead").start().wait_ready()
    workflow = bench.submit(labelled_descent_sweep, steps=80)
    bench.wait(lambda: "ShareKept" in reasons(bench), "it is told why", 120)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    assert resizes(bench, workflow) == 0
    assert not preempted(bench, workflow)


def reasons(bench: Bench) -> set[str]:
    return {str(event["reason"]) for event in json.loads(bench.kubectl("get", "events", "-o", "json"))["items"]}
