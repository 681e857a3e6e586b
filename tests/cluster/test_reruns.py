"""What people do with a workflow that failed: Retry, Resubmit and memoized Resubmit, by Argo's own command line."""

import json
import subprocess
from dataclasses import dataclass
from typing import Any, Final

import pytest
from click.testing import CliRunner
from mlflow.tracking import MlflowClient

from hera_specon.cli import main
from mlflow_hooks import contract
from tests.cluster import rerun_sweep
from tests.cluster.building import binary
from tests.cluster.sweeps.bench import Bench
from tests.cluster.sweeps.bench import Workflow as Submitted

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
ARGO: Final = binary("argo")
HEALTHY, FAILING = "t000", "t001"


@dataclass(frozen=True)
class Start:
    """At which step an attempt began, and who it was."""

    step: int
    token: str
    node: str


def argo(bench: Bench, *arguments: str) -> dict[str, Any]:
    """Call Argo's command line, which does what the buttons of its page do; return the workflow that came of it."""
    if not ARGO.exists():
        pytest.skip(f"ARGO'S RERUNS ARE NOT TESTED: there is no {ARGO}")
    access = ["--kubeconfig", str(bench.cluster.kubeconfig), "--namespace", bench.namespace]
    command = [str(ARGO), *arguments, *access, "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rerun(bench: Bench, *arguments: str) -> Submitted:
    """Rerun a workflow so that nothing fails any more, and wait until it has succeeded."""
    metadata = argo(bench, *arguments, "--parameter", "fails=no")["metadata"]
    workflow = Submitted(metadata["name"], metadata["uid"], rerun_sweep.STEPS, rerun_sweep.RATES)
    bench.wait(lambda: bench.phase(workflow) == "Succeeded", f"{workflow.name} has succeeded", 240)
    return workflow


@pytest.fixture
def failed(bench: Bench) -> Submitted:
    """A workflow with one trial that succeeded and one that failed halfway."""
    access = ["--kubeconfig", str(bench.cluster.kubeconfig), "-n", bench.namespace]
    tracking = ["--mlflow-tracking-uri", bench.tracking.uri]
    result = CliRunner().invoke(main, ["submit", rerun_sweep.__file__, *access, *tracking, "--json"])
    assert result.exit_code == 0, result.stderr
    made = json.loads(result.stdout)
    workflow = Submitted(made["name"], made["uid"], rerun_sweep.STEPS, rerun_sweep.RATES)
    bench.wait(lambda: bench.phase(workflow) == "Failed", "the workflow has failed", 240)
    assert [start.step for start in starts(bench, workflow.uid, FAILING)] == [0]
    return workflow


def starts(bench: Bench, uid: str, trial: str) -> list[Start]:
    """Return the attempts of a trial that trained, in order."""
    notes = bench.state / f"starts-{uid}.rerun.{trial}"
    rows = [line.split() for line in notes.read_text().splitlines()] if notes.exists() else []
    return [Start(int(step), token, node) for step, token, node in rows]


def check_runs(bench: Bench, uid: str, trials: tuple[str, ...] = (HEALTHY, FAILING)) -> None:
    """Check that MLflow has one finished run for each trial, in which each step stands once, with its own value."""
    client = MlflowClient(bench.tracking.uri)
    experiment = client.get_experiment_by_name("rerun")
    assert experiment is not None
    for trial, rate in zip((HEALTHY, FAILING), rerun_sweep.RATES, strict=True):
        wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{uid}.rerun.{trial}'"
        found = client.search_runs([experiment.experiment_id], wanted)
        assert len(found) == (trial in trials)
        for run in found:
            assert run.info.status == "FINISHED"
            history = sorted(client.get_metric_history(run.info.run_id, "loss"), key=lambda point: point.step)
            assert [point.step for point in history] == list(range(rerun_sweep.STEPS))
            assert history[-1].value == pytest.approx((1 - rate) ** (2 * rerun_sweep.STEPS))


def test_a_retried_workflow_goes_on_with_the_failed_trial_alone_where_it_stood(bench: Bench, failed: Submitted) -> None:
    again = rerun(bench, "retry", failed.name)

    assert again.uid == failed.uid
    assert len(starts(bench, failed.uid, HEALTHY)) == 1
    first, second = starts(bench, failed.uid, FAILING)
    assert 0 < second.step <= rerun_sweep.FAILS_AT
    assert first.token != second.token  # although both pods have the same name
    assert second.node in set(bench.cluster.node_names)
    check_runs(bench, failed.uid)


def test_a_resubmitted_workflow_starts_every_trial_anew(bench: Bench, failed: Submitted) -> None:
    again = rerun(bench, "resubmit", failed.name)

    assert again.uid != failed.uid
    assert [start.step for start in starts(bench, again.uid, HEALTHY)] == [0]
    assert [start.step for start in starts(bench, again.uid, FAILING)] == [0]
    assert len(starts(bench, failed.uid, FAILING)) == 1
    check_runs(bench, again.uid)


def test_a_resubmitted_workflow_goes_on_where_its_owner_says_so(bench: Bench, failed: Submitted) -> None:
    again = rerun(bench, "resubmit", failed.name, "--parameter", f"continue-sweep={failed.uid}")

    assert starts(bench, again.uid, FAILING) == []
    assert len(starts(bench, failed.uid, HEALTHY)) == 1  # it had nothing left to do
    _, second = starts(bench, failed.uid, FAILING)
    assert 0 < second.step <= rerun_sweep.FAILS_AT
    check_runs(bench, failed.uid)


def test_a_memoized_resubmit_runs_the_failed_trial_alone_and_anew(bench: Bench, failed: Submitted) -> None:
    again = rerun(bench, "resubmit", failed.name, "--memoized")

    assert starts(bench, again.uid, HEALTHY) == []
    assert [start.step for start in starts(bench, again.uid, FAILING)] == [0]
    check_runs(bench, again.uid, trials=(FAILING,))


def test_a_memoized_resubmit_can_go_on_too(bench: Bench, failed: Submitted) -> None:
    rerun(bench, "resubmit", failed.name, "--memoized", "--parameter", f"continue-sweep={failed.uid}")

    assert len(starts(bench, failed.uid, HEALTHY)) == 1
    _, second = starts(bench, failed.uid, FAILING)
    assert 0 < second.step <= rerun_sweep.FAILS_AT
    check_runs(bench, failed.uid)
