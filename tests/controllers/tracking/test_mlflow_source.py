"""Progress out of MLflow: newest values with step and time, for all trials in one query."""

import math
from typing import Any

import pytest
from mlflow.entities import Metric
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.tracking.mlflow_source import MlflowSource, Scope
from mlflow_hooks import contract

BEGAN = 1_000.0


def experiment(client: MlflowClient, name: str) -> str:
    return str(client.create_experiment(name))


def trial(client: MlflowClient, where: str, name: str, **metrics: tuple[float, float, int]) -> str:
    tags = {contract.TAG_SWEEP_ID: name.rpartition(".")[0], contract.TAG_TRIAL_ID: name}
    run = client.create_run(where, tags=tags).info.run_id
    points = [Metric(key, value, int(at * 1000), step) for key, (value, at, step) in metrics.items()]
    client.log_batch(run, metrics=points)
    return str(run)


def source(client: MlflowClient, where: str, **objectives: str) -> MlflowSource:
    names = {TrialId(f"uid.s.{name}"): metric for name, metric in objectives.items()}
    return MlflowSource(client, lambda: Scope([where], "uid."), lambda: names, lambda epoch_s: epoch_s - BEGAN)


def test_each_trial_gets_its_own_objective_with_step_and_sweep_time(client: MlflowClient) -> None:
    where = experiment(client, "objectives")
    trial(client, where, "uid.s.a", loss=(0.5, BEGAN + 7, 3), accuracy=(0.9, BEGAN + 7, 3))
    trial(client, where, "uid.s.b", loss=(0.4, BEGAN + 8, 4), accuracy=(0.8, BEGAN + 8, 4))
    found = source(client, where, a="loss", b="accuracy").poll()
    assert {(name, s.value, s.step, s.at) for name, s in found.items()} == {
        ("uid.s.a", 0.5, 3, 7.0),
        ("uid.s.b", 0.8, 4, 8.0),
    }


def test_what_growth_efficiency_needs_comes_with_it(client: MlflowClient) -> None:
    where = experiment(client, "extras")
    run = trial(client, where, "uid.s.a", loss=(0.5, BEGAN, 3))
    extras = {
        contract.METRIC_CPU_SECONDS: 12.5,
        contract.METRIC_OBJECTIVE_FIRST: 2.0,
        contract.METRIC_STEPS_TOTAL: 40.0,
    }
    client.log_batch(run, metrics=[Metric(key, value, 1, 0) for key, value in extras.items()])
    (found,) = source(client, where, a="loss").poll().values()
    assert (found.cpu_seconds, found.first, found.steps_total) == (12.5, 2.0, 40)


def test_nan_is_handed_on_as_what_was_logged(client: MlflowClient) -> None:
    where = experiment(client, "nan")
    trial(client, where, "uid.s.a", loss=(math.nan, BEGAN, 3))
    (found,) = source(client, where, a="loss").poll().values()
    assert math.isnan(found.value)


def test_other_sweeps_and_the_sweeps_own_parent_run_are_left_out(client: MlflowClient) -> None:
    where = experiment(client, "others")
    trial(client, where, "uid.s.a", loss=(0.5, BEGAN, 3))
    trial(client, where, "uid2.s.a", loss=(0.1, BEGAN, 3))
    client.create_run(where, tags={contract.TAG_SWEEP_ID: "uid.s"})
    assert set(source(client, where, a="loss").poll()) == {"uid.s.a"}


def test_a_trial_without_its_objective_has_no_sample_but_shows_what_it_logs(client: MlflowClient) -> None:
    where = experiment(client, "missing")
    trial(client, where, "uid.s.a", accuracy=(0.5, BEGAN, 3))
    found = source(client, where, a="loss")
    assert found.poll() == {}
    assert found.logged == {"uid.s.a": frozenset({"accuracy"})}


class Counting:
    """A client that counts its queries, or fails them."""

    def __init__(self, client: MlflowClient) -> None:
        self.client, self.queries, self.away = client, 0, False
        self.tracking_uri = client.tracking_uri

    def search_runs(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - handed on
        self.queries += 1
        if self.away:
            message = "refused"
            raise MlflowException(message)
        return self.client.search_runs(*args, **kwargs)


def test_one_query_reads_every_trial_of_the_sweep(client: MlflowClient) -> None:
    where = experiment(client, "bulk")
    for number in range(25):
        trial(client, where, f"uid.s.t{number}", loss=(0.5, BEGAN, number))
    counting = Counting(client)
    found = source(counting, where, **{f"t{n}": "loss" for n in range(25)}).poll()  # type: ignore[arg-type] # only search_runs is used
    assert (len(found), counting.queries) == (25, 1)


def test_a_server_that_is_away_gives_no_samples_and_says_so(
    client: MlflowClient, caplog: pytest.LogCaptureFixture
) -> None:
    where = experiment(client, "away")
    trial(client, where, "uid.s.a", loss=(0.5, BEGAN, 3))
    counting = Counting(client)
    found = source(counting, where, a="loss")  # type: ignore[arg-type] # only search_runs is used
    counting.away = True
    assert (found.poll(), found.poll(), found.away) == ({}, {}, True)
    assert caplog.text.count("does not answer") == 1
    counting.away = False
    assert (len(found.poll()), found.away) == (1, False)


def test_nothing_is_asked_while_no_experiment_is_known(client: MlflowClient) -> None:
    blind = MlflowSource(client, lambda: Scope([], "uid."), dict, lambda epoch_s: epoch_s)
    assert blind.poll() == {}
    assert not blind.away
