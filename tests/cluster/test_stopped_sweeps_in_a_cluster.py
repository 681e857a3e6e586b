"""A sweep on a cluster that its author's rule ends: what runs saves and succeeds, what waits never trains."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.cluster.sweeps import stopped_descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.controllers import ROOT, environment
from tests.cluster.sweeps.proofs import check_nothing_left

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def status(bench: Bench, workflow: Workflow) -> dict[str, Any]:
    """Return what ``specon status`` tells."""
    command = [sys.executable, "-m", "hera_specon.cli", "status", workflow.name, "--json"]
    command += ["--kubeconfig", str(bench.cluster.kubeconfig), "--namespace", bench.namespace]
    command += ["--mlflow-tracking-uri", bench.tracking.uri]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("policy", ["default", "ahead"])
def test_a_sweep_that_is_good_enough_ends_and_argo_calls_it_a_success(bench: Bench, policy: str) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(stopped_descent_sweep, policy=policy, steps=2000, pause_ms=250)
    bench.wait_for_end(workflow)
    assert bench.phase(workflow) == "Succeeded", bench.story()
    told = status(bench, workflow)
    assert told["counts"]["stopped"] == len(workflow.trials), bench.story()
    assert told["ended"].keys() == {"descent"}
    assert "reached 0.001" in told["ended"]["descent"]
    done = [bench.steps_done(workflow, trial) for trial in workflow.trials]
    assert 0 < max(done) < 2000
    # Without a policy that holds trials back, all of them may have begun by then.
    assert policy == "default" or done.count(0) >= 1, f"every trial trained: {done}"
    check_nothing_left(bench, workflow)


def test_another_controller_goes_on_ending_the_sweep(bench: Bench) -> None:
    first = bench.controller().start()
    first.wait_ready()
    workflow = bench.submit(stopped_descent_sweep, policy="default", steps=2000, pause_ms=250)
    bench.wait(lambda: bool(status(bench, workflow)["ended"]), "the sweep is ended", 180)
    first.kill()
    bench.controller().start().wait_ready()
    bench.wait_for_end(workflow)
    assert bench.phase(workflow) == "Succeeded", bench.story()
