"""Deadlines in the place of CPU requests, on a cluster: who starts when, with how much, and what is foreseen."""

import pytest
from mlflow.tracking import MlflowClient

from controllers.core.results import RunResult
from hera_specon.records.tracked import tracked_record
from mlflow_hooks import contract
from tests.cluster.sweeps import deadline_descent_sweep
from tests.cluster.sweeps.bench import Bench, Workflow
from tests.cluster.sweeps.deadline_descent_sweep import HOPELESS
from tests.cluster.sweeps.descent_sweep import NAME
from tests.cluster.sweeps.proofs import check_nothing_left, check_whole, resizes, runs_of

pytest_plugins = ["tests.cluster.sweeps.fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def test_deadlines_are_kept_by_resizes_and_one_that_cannot_be_is_named_while_its_trial_still_runs(bench: Bench) -> None:
    bench.controller().start().wait_ready()
    workflow = bench.submit(
        deadline_descent_sweep, policy="deadline:interval=3,probe=0.2", steps=120, pause_ms=0, work_ms=250
    )
    bench.wait(
        lambda: "will miss its deadline" in _outlook(bench, workflow, HOPELESS), "what can't be is foreseen", 180
    )
    assert HOPELESS in bench.running(workflow)
    bench.wait_for_end(workflow)
    check_whole(bench, workflow)
    firsts = [bench.pods.of(workflow.name, trial)[0] for trial in workflow.trials]
    assert all(pod.moments["ungated"] > pod.moments["created"] for pod in firsts), "a first attempt was not held back"
    assert resizes(bench, workflow) >= 3
    assert [_outlook(bench, workflow, trial) for trial in workflow.trials if trial != HOPELESS] == ["", "", ""]
    check_nothing_left(bench, workflow)
    bench.wait(lambda: bool(_results(bench, workflow)), "the result is in MLflow", 60)
    (result,) = _results(bench, workflow)
    assert (result.deadlines.asked, result.deadlines.met) == (4, 3)


def _results(bench: Bench, workflow: Workflow) -> list[RunResult]:
    return tracked_record(MlflowClient(bench.tracking.uri), workflow.name).results()


def _outlook(bench: Bench, workflow: Workflow, trial: str) -> str:
    found = runs_of(bench, workflow).get(f"{workflow.uid}.{NAME}.{trial}", [])
    return next((run.data.tags.get(contract.TAG_OUTLOOK, "") for run in found), "")
