"""Two namespaces with two sweeps each on one cluster: each team gets its part, nothing is lost, and all is told."""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.sweeps import turns_sweep
from tests.cluster.sweeps.bench import Bench, Workflow, opened_bench
from tests.cluster.sweeps.controllers import ROOT, ControllerProcess, environment
from tests.cluster.sweeps.namespace import controller_kubeconfig
from tests.cluster.sweeps.ports import free_ports
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole
from tests.cluster.sweeps.tracking import Tracking

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

SETTINGS: Final[dict[str, int | str]] = {"steps": 120, "pause_ms": 0, "work_ms": 100}
FAIR: Final = 0.2
"""Part by which the mean completions of two teams that want the same may differ here: trials are few, nodes uneven."""


@contextmanager
def two_teams(cluster: Cluster, tracking: Tracking, folder: Path) -> Iterator[tuple[Bench, Bench]]:
    """Yield a namespace for each of two teams."""
    with ExitStack() as stack:
        benches = [stack.enter_context(opened_bench(cluster, tracking, folder / team)) for team in ("red", "blue")]
        yield benches[0], benches[1]


def controller_of(benches: tuple[Bench, Bench], policy: str, shares: Path) -> ControllerProcess:
    """Return a controller of both namespaces, by one kubeconfig that has the permissions of both accounts."""
    red, blue = benches
    access = controller_kubeconfig(red.kubectl, red.folder / "both.kubeconfig")
    _let_in(red.namespace, blue)
    arguments = ["--namespace", red.namespace, "--namespace", blue.namespace, "--lease-namespace", red.namespace]
    arguments += ["--kubeconfig", str(access), "--mlflow-tracking-uri", red.tracking.uri, "--policy", policy]
    arguments += ["--interval", "1", "--no-leader-elect", "--shares", str(shares)]
    return ControllerProcess(tuple(arguments), red.folder / "both.log", free_ports(2)[0])


def _let_in(namespace: str, bench: Bench) -> None:
    """Let the controller's account of another namespace do what that of this one may do here."""
    for binding in bench.kubectl.items("rolebindings"):
        subjects = binding.get("subjects") or []
        more = [{**one, "namespace": namespace} for one in subjects if one.get("namespace") == bench.namespace]
        patch = json.dumps({"subjects": [*subjects, *more]})
        bench.kubectl("patch", "rolebinding", binding["metadata"]["name"], "--type=merge", f"--patch={patch}")


def queue(bench: Bench) -> list[dict[str, Any]]:
    """Return what ``specon queue`` tells of a namespace."""
    command = [sys.executable, "-m", "hera_specon.cli", "queue", "--json", "--namespace", bench.namespace]
    command += ["--kubeconfig", str(bench.cluster.kubeconfig)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def completions(bench: Bench, workflow: Workflow) -> list[float]:
    """Return how many seconds after the sweep's first pod was made the last pod of each trial was over."""
    pods = bench.pods.all(workflow.name)
    began = min(pod.moments["created"] for pod in pods)
    last: dict[str, float] = {}
    for pod in pods:
        if "ended" in pod.moments:
            last[pod.trial] = max(last.get(pod.trial, 0.0), pod.moments["ended"] - began)
    return list(last.values())


@pytest.mark.parametrize("policy", ["default", "ahead"])
def test_four_sweeps_of_two_teams_share_the_cluster_and_each_team_gets_its_part(
    own_cluster: Cluster, tracking: Tracking, tmp_path: Path, policy: str
) -> None:
    shares = tmp_path / "shares.yaml"
    shares.write_text("namespaces: {}\n")
    with two_teams(own_cluster, tracking, tmp_path) as benches:
        controller = controller_of(benches, policy, shares)
        try:
            controller.start().wait_ready()
            submitted = [
                (bench, bench.submit(turns_sweep, policy=policy, **SETTINGS)) for _ in range(2) for bench in benches
            ]
            for bench in benches:
                bench.wait(lambda bench=bench: _shares(bench), "its queue tells of both sweeps", 120)  # type: ignore[misc] # bound in the loop
            for bench, workflow in submitted:
                bench.wait_for_end(workflow, 900)
            for bench, workflow in submitted:
                check_whole(bench, workflow)
            red, blue = (
                statistics.fmean(
                    seconds
                    for bench, workflow in submitted
                    if bench is team
                    for seconds in completions(bench, workflow)
                )
                for team in benches
            )
            if policy != "default":  # then pods go to the scheduler as they come, and what was submitted first is first
                assert abs(red - blue) <= FAIR * min(red, blue), f"red {red:.0f} s, blue {blue:.0f} s"
            for bench, workflow in submitted[:2]:
                bench.delete(workflow)
            for bench, workflow in submitted[2:]:
                check_nothing_left(bench, workflow)
        finally:
            controller.stop()


def _shares(bench: Bench) -> bool:
    rows = queue(bench)
    return len(rows) == 2 and all(row["told_at"] and row["reason"] for row in rows)


def test_a_team_that_comes_later_gets_its_part_by_suspensions_and_no_trial_loses_more_than_a_save(
    own_cluster: Cluster, tracking: Tracking, tmp_path: Path
) -> None:
    shares = tmp_path / "shares.yaml"
    shares.write_text("namespaces: {}\n")
    long = {**SETTINGS, "steps": 4000}
    with two_teams(own_cluster, tracking, tmp_path) as benches:
        red, blue = benches
        controller = controller_of(benches, "ahead", shares)
        try:
            controller.start().wait_ready()
            first = [red.submit(turns_sweep, policy="ahead", **long) for _ in range(2)]
            red.wait(lambda: any(row["waiting"] for row in queue(red)), "red has more than fits", 180)
            second = blue.submit(turns_sweep, policy="ahead", **SETTINGS)
            blue.wait(lambda: bool(blue.running(second)), "blue runs though red had everything", 600)
            blue.wait_for_end(second, 900)
            check_whole(blue, second)
            # Both, before either is waited for: a trial that waits needs room for a moment to be stopped in.
            for workflow in first:
                red.specon("stop", workflow.name, "--all")
            for workflow in first:
                red.wait_for_end(workflow, 300)
        finally:
            controller.stop()
