"""What people see in MLflow: the parent run of a sweep."""

import math
from dataclasses import replace

from mlflow.tracking import MlflowClient

from controllers.core.results import RunResult, TrialResult
from controllers.tracking.sweep_runs import Steering, close_sweep, open_sweep, sweep_is_closed

STEERING = Steering("s · default", "default", "uid")


def trial(name: str, value: float) -> TrialResult:
    return TrialResult(name, 0.0, 12.5, "n1", 0, 1, value, params={"lr": value}, sweep="s")


def test_a_resumed_sweep_continues_in_its_parent_run(client: MlflowClient) -> None:
    first = open_sweep(client, "uid.s", "resumed", STEERING)
    assert open_sweep(client, "uid.s", "resumed", STEERING) == first
    assert open_sweep(client, "other.s", "resumed", STEERING) != first


def test_a_workflow_that_continues_another_ones_sweep_has_a_parent_run_of_its_own(client: MlflowClient) -> None:
    first = open_sweep(client, "uid.s", "continued", STEERING)
    later = replace(STEERING, title="t · default", workflow="later")
    assert open_sweep(client, "uid.s", "continued", later) != first
    close_sweep(client, first, None)
    assert sweep_is_closed(client, "uid.s", "continued", STEERING)
    assert not sweep_is_closed(client, "uid.s", "continued", later)


def test_a_finished_sweep_shows_its_figures(client: MlflowClient) -> None:
    sweep = open_sweep(client, "uid.s", "finished", STEERING)
    close_sweep(client, sweep, RunResult("default", (trial("s.t000", 0.5), trial("s.t001", 0.25))))
    run = client.get_run(sweep.run_id)
    assert (run.info.status, run.data.metrics["specon.makespan_s"]) == ("FINISHED", 12.5)
    assert run.data.metrics["specon.best_objective"] == 0.25
    assert run.data.tags["specon.best_trial"] == "s.t001"
    assert run.data.tags["specon.best_params"] == '{"lr": 0.25}'


def test_a_sweep_shows_the_best_of_its_own_trials(client: MlflowClient) -> None:
    sweep = open_sweep(client, "uid.s", "own", STEERING)
    others = (replace(trial("z.t000", 0.1), sweep="z"), replace(trial("s.t001", math.nan), sweep="s"))
    close_sweep(client, sweep, RunResult("default", (trial("s.t000", 0.5), *others)))
    assert client.get_run(sweep.run_id).data.tags["specon.best_trial"] == "s.t000"
