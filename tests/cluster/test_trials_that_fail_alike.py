"""What fails in seconds, or leaves for nothing, is not tried over and over."""

import json

import pytest
from click.testing import CliRunner

from controllers.core.after_attempt import MOST_BARREN
from controllers.worlds.argo.calls.untrusted import at
from hera_specon.cli import main
from tests.cluster.sweeps import broken_sweep, leaving_sweep
from tests.cluster.sweeps.bench import Bench

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


def test_a_trial_that_fails_twice_alike_at_once_is_given_up_and_says_why(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(broken_sweep)
    bench.wait(lambda: bench.phase(workflow) == "Failed", "the workflow has failed", 240)

    nodes = at(bench.workflow(workflow), "status", "nodes").values()
    said = [node["message"] for node in nodes if node["type"] == "Pod"]
    assert all(broken_sweep.WORDS in message and f"exit code {broken_sweep.CODE}" in message for message in said)
    # Argo may have begun a third attempt before the controller saw the second one fail.
    assert 2 * 2 <= len(said) <= 3 * 2, "the author allows five failures"

    access = ["--kubeconfig", str(bench.cluster.kubeconfig), "-n", bench.namespace]
    told = CliRunner().invoke(main, ["status", workflow.name, "--json", *access])
    assert told.exit_code == 0, told.stderr
    reasons = [trial["reason"] for trial in json.loads(told.stdout)["trials"]]
    expected = f"exit code {broken_sweep.CODE}: {broken_sweep.WORDS}, twice alike at once: it was not tried again"
    assert reasons == [expected] * 2


def test_a_trial_that_leaves_unasked_and_comes_no_further_fails_after_a_few_attempts(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(leaving_sweep)
    bench.wait(lambda: bench.phase(workflow) == "Failed", "the workflow has failed", 300)

    nodes = at(bench.workflow(workflow), "status", "nodes").values()
    attempts = [node for node in nodes if node["type"] == "Pod"]
    # The third in a row counts as a failure. Argo has begun another by then, and a controller makes that the last.
    assert 2 * MOST_BARREN <= len(attempts) <= 2 * (MOST_BARREN + 2), [node["message"] for node in attempts]
