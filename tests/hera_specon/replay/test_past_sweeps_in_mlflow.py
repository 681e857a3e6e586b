from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from controllers.core.errors import SpeconError
from controllers.core.model import Direction
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep, PastSweepError
from hera_specon.records.history import Stretch
from hera_specon.replay.past_sweeps import KnownObjective, move_times, stays
from hera_specon.replay.sources import Where, find_past
from tests.hera_specon.replay.tracked import START_MS, STEPS, log_run, log_sweep, new_client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> MlflowClient:
    return new_client(tmp_path_factory.mktemp("mlflow"))


def found(client: MlflowClient, wanted: str, objective: KnownObjective | None = None) -> PastSweep:
    where = Where(Path("nowhere"), str(client.tracking_uri), None, objective or KnownObjective())
    (sweep,) = find_past(wanted, where).sweeps
    return sweep


def test_any_nested_runs_are_a_sweep_by_experiment_or_by_parent(client: MlflowClient) -> None:
    experiment, parent = log_sweep(client, "nested runs")
    sweeps = [found(client, wanted) for wanted in ("nested runs", experiment, parent)]
    for sweep in sweeps:
        assert [trial.id for trial in sweep.trials] == [f"trial {n}" for n in range(4)]
        assert [trial.submitted_at for trial in sweep.trials] == [0.0, 10.0, 20.0, 30.0]
        assert [trial.completion_s for trial in sweep.trials] == [100.0] * 4
        assert (sweep.policy, sweep.nodes, sweep.counted) == (None, (), False)


def test_what_is_not_finite_is_no_point_of_a_curve(client: MlflowClient) -> None:
    experiment = client.create_experiment("one run")
    log_run(client, experiment, "only")
    (trial,) = found(client, "one run").trials
    assert [point.step for point in trial.objective] == [step for step in range(STEPS) if step != 20]
    assert trial.began_epoch_s == START_MS / 1000


def test_points_without_steps_are_counted_by_time(client: MlflowClient) -> None:
    experiment = client.create_experiment("without steps")
    log_run(client, experiment, "only", stepless=True)
    (trial,) = found(client, "without steps").trials
    assert [point.step for point in trial.objective] == list(range(STEPS - 1))
    assert trial.objective[0].value > trial.objective[-1].value


def test_of_several_metrics_one_must_be_named_and_its_direction_shows(client: MlflowClient) -> None:
    experiment = client.create_experiment("two metrics")
    log_run(client, experiment, "only", metrics=("accuracy", "loss"))
    with pytest.raises(PastSweepError, match="Name it with --objective: accuracy, loss"):
        found(client, "two metrics")
    with pytest.raises(PastSweepError, match=r"no trial logged 'los'; name one of these .*: accuracy, loss"):
        found(client, "two metrics", KnownObjective("los"))
    assert found(client, "two metrics", KnownObjective("accuracy")).direction is Direction.MAXIMIZE
    assert found(client, "two metrics", KnownObjective("loss")).direction is Direction.MINIMIZE
    assert found(client, "two metrics", KnownObjective("loss", Direction.MAXIMIZE)).direction is Direction.MAXIMIZE


def test_runs_that_did_not_finish_are_left_out_by_name(client: MlflowClient) -> None:
    experiment = client.create_experiment("some unfinished")
    log_run(client, experiment, "whole")
    log_run(client, experiment, "cut short", finished=False)
    sweep = found(client, "some unfinished")
    assert [trial.id for trial in sweep.trials] == ["whole"]
    assert sweep.left_out == ("cut short did not finish",)


def test_a_sweep_of_which_nothing_finished_is_refused(client: MlflowClient) -> None:
    experiment = client.create_experiment("none finished")
    log_run(client, experiment, "cut short", finished=False)
    with pytest.raises(PastSweepError, match="cut short did not finish"):
        found(client, "none finished")


def test_runs_of_one_name_are_told_apart_and_no_name_steers_a_terminal(client: MlflowClient) -> None:
    experiment = client.create_experiment("same names")
    for _ in range(2):
        log_run(client, experiment, "twin\x1b[2J")
    ids = [trial.id for trial in found(client, "same names").trials]
    assert len(set(ids)) == 2
    assert all(name.isprintable() and name.startswith("twin") for name in ids)


@pytest.mark.parametrize("wanted", ["no such thing", "deadbeef", "x' OR '1'='1", ""])
def test_what_is_nowhere_is_named(client: MlflowClient, wanted: str) -> None:
    with pytest.raises(SpeconError, match="Nor has it an experiment"):
        found(client, wanted)


def test_without_an_mlflow_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SpeconError, match="--mlflow-tracking-uri"):
        find_past("vae", Where(tmp_path, None, None, KnownObjective()))


def test_an_mlflow_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(SpeconError, match="MLflow does not answer"):
        find_past("vae", Where(tmp_path, "http://127.0.0.1:9", None, KnownObjective()))


def test_stays_and_moves_are_read_from_what_a_trial_went_through() -> None:
    went = (
        Stretch("t", 0, 5, "running", "a", attempt=1),
        Stretch("t", 5, 9, "running", "a", category="converged", attempt=1),
        Stretch("t", 9, 11, "moving", "a", attempt=1),
        Stretch("t", 11, 14, "pending", attempt=1),
        Stretch("t", 14, 20, "running", "b", attempt=2),
        Stretch("t", 20, 21, "moving", "b", attempt=2),
        Stretch("t", 21, 30, "running", "a", attempt=3),
    )
    assert [(stay.node, stay.start, stay.end) for stay in stays(went)] == [("a", 0, 11), ("b", 14, 21), ("a", 21, 30)]
    assert [(move.leave_s, move.next_attempt_s) for move in move_times(went)] == [(2, 3), (1, 0)]
