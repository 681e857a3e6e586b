"""The run of each trial in MLflow: made by the campaign, by the hooks, or by a script itself."""

import json
from collections.abc import Callable

import pytest

from controllers.core.model import Phase
from controllers.record.timeline import EventKind
from mlflow_hooks import contract
from tests.controllers.cluster.clusters_in_memory import trial
from tests.controllers.cluster.conftest import Stage


def test_a_trial_that_never_logs_its_objective_is_a_warning_and_stops_nothing(
    stage: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    it = stage()
    it.world.now = {it.trial: trial(it.trial, phase=Phase.SUCCEEDED)}
    it.world.objectives = lambda: {it.trial: "accuracy"}  # type: ignore[method-assign]
    run = it.start()
    it.step_until(run, it.parents)
    it.report(0.9)
    it.step_until(run, lambda: run.without_objective == 1)
    run.step(it.campaign)
    told = [record.getMessage() for record in caplog.records if "accuracy" in record.getMessage()]
    assert len(told) == 1


def test_a_trials_run_is_made_under_its_sweep_before_its_pod_starts(stage: Callable[..., Stage]) -> None:
    it = stage()
    run = it.start()
    # Asked at once, when even the run of the sweep may not be there yet.
    made = it.cluster.run_of[it.uid](it.trial, {"lr": 0.1}, may_make=True)
    (parent,) = it.parents()
    tags = it.tags(made)
    assert tags["mlflow.parentRunId"] == parent.info.run_id
    assert (tags[contract.TAG_TRIAL_ID], tags[contract.TAG_SWEEP_ID]) == (it.trial, it.sweep)
    # A script may log its own under the same names, in another form.
    assert it.client.get_run(made).data.params == {}
    assert it.cluster.run_of[it.uid](it.trial, {"lr": 0.1}, may_make=True) == made
    # What a script logs there by MLflow alone is the trial's progress.
    it.client.log_metric(made, "loss", 0.25, step=1)
    it.step_until(run, lambda: it.is_told(EventKind.REPORT))
    run.close()
    again = it.start()
    it.step_until(again, it.parents)
    assert it.cluster.run_of[it.uid](it.trial, {}, may_make=True) == made


def test_a_run_that_nobody_else_ended_ends_with_its_sweep_and_gets_parameters(
    stage: Callable[..., Stage],
) -> None:
    it = stage()
    it.world.short = lambda name: name.removeprefix(f"{it.uid}.")  # type: ignore[method-assign]
    run = it.start()
    made = it.cluster.run_of[it.uid](it.trial, {"lr": 0.1, "width": 1}, may_make=True)
    it.client.log_param(made, "width", "1.0")
    it.step_until(run, it.parents)
    it.finish(run)
    assert it.client.get_run(made).info.status == "FINISHED"
    assert it.client.get_run(made).data.params == {"lr": "0.1", "width": "1.0"}


@pytest.mark.parametrize("name", ["x' OR 'a' = 'a", "a b", "x" * 300])
def test_no_run_is_made_for_an_id_that_could_be_more_than_a_name(stage: Callable[..., Stage], name: str) -> None:
    it = stage()
    it.start()
    assert it.cluster.run_of[it.uid](f"{it.sweep}.{name}", {}, may_make=True) == ""


def test_runs_that_a_script_makes_itself_are_followed_nested_and_one_for_the_trial_in_the_end(
    stage: Callable[..., Stage],
) -> None:
    it = stage()
    it.world.short = lambda name: name.removeprefix(f"{it.uid}.")  # type: ignore[method-assign]
    run = it.start()
    it.step_until(run, it.parents)
    first = it.logs_by_itself(0.9)
    it.step_until(run, lambda: "mlflow.parentRunId" in it.tags(first))
    again = it.logs_by_itself(0.5, attempt="pod-2")
    it.step_until(run, lambda: it.tags(again).get("specon.category") == it.tags(first).get("specon.category"))
    assert it.cluster.run_of[it.uid](it.trial, {}, may_make=False) == again
    it.step_until(run, lambda: it.is_told(EventKind.REPORT))
    it.finish(run)
    (parent,) = it.parents()
    assert it.tags(again)["mlflow.parentRunId"] == parent.info.run_id
    assert it.tags(first)["mlflow.parentRunId"] == again
    assert contract.TAG_TRIAL_ID not in it.tags(first)
    assert [it.client.get_run(one).info.status for one in (first, again)] == ["KILLED", "FINISHED"]
    assert it.client.get_run(again).data.params == {"lr": "0.1"}
    assert json.loads(it.artifact("result.json"))["trials"][0]["final_metric"] == 0.5


def test_a_script_that_names_its_own_experiment_is_followed_there_and_its_reader_is_told_once(
    stage: Callable[..., Stage], caplog: pytest.LogCaptureFixture
) -> None:
    it = stage()
    it.world.short = lambda name: name.removeprefix(f"{it.uid}.")  # type: ignore[method-assign]
    run = it.start()
    it.step_until(run, it.parents)
    elsewhere = f"of the script {it.uid}"
    own = it.logs_by_itself(0.25, elsewhere)
    it.step_until(run, lambda: "mlflow.parentRunId" in it.tags(own))
    it.step_until(run, lambda: it.is_told(EventKind.REPORT))
    # Its attempts could not use a run of another experiment than they name.
    assert it.cluster.run_of[it.uid](it.trial, {}, may_make=False) == ""
    it.finish(run)
    told = [record.getMessage() for record in caplog.records if elsewhere in record.getMessage()]
    assert len(told) == 1
    assert it.client.get_run(own).info.status == "FINISHED"


def test_a_trial_that_logged_nowhere_has_a_run_in_the_end(stage: Callable[..., Stage]) -> None:
    it = stage()
    it.world.short = lambda name: name.removeprefix(f"{it.uid}.")  # type: ignore[method-assign]
    run = it.start()
    it.step_until(run, it.parents)
    it.finish(run)
    (parent,) = it.parents()
    wanted = f"tags.`{contract.TAG_TRIAL_ID}` = '{it.trial}'"
    (made,) = it.client.search_runs([parent.info.experiment_id], wanted)
    assert (made.info.status, made.data.params) == ("FINISHED", {"lr": "0.1"})
