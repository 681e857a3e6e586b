"""Of the runs of a large sweep most have ended: these are read seldom, and nothing that they log late is missed."""

import math
from typing import Any

import pytest
from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.tracking.mlflow_source import MlflowSource, Scope
from controllers.tracking.reading_plan import SOON_S, WATCHED_S, WHOLE_S
from mlflow_hooks import contract
from tests.controllers.tracking.test_mlflow_source import BEGAN, experiment


class Sweep:
    """A sweep in MLflow whose runs begin ten seconds apart, a source, and with how many runs a look was answered."""

    def __init__(self, client: MlflowClient, name: str) -> None:
        self.client, self.where, self.now = client, experiment(client, name), 0.0
        self.tracking_uri = client.tracking_uri
        self.objectives: dict[TrialId, str] = {}
        self.answered = self.begun = 0
        self.source = MlflowSource(
            self,  # type: ignore[arg-type]  # only what a source asks of it
            lambda: Scope([self.where], "uid."),
            lambda: self.objectives,
            lambda epoch_s: epoch_s - BEGAN,
            lambda: BEGAN + self.now,
            lambda: self.now,
        )

    def search_runs(self, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - handed on
        """Count what is answered."""
        found = self.client.search_runs(*args, **named)
        self.answered += len(found)
        return found

    def get_metric_history(self, *args: Any) -> Any:  # noqa: ANN401 - handed on
        """Return the points of a run that has ended; these are asked for once."""
        return self.client.get_metric_history(*args)

    def begin(self, name: str, value: float = 0.5) -> str:
        """Add a trial whose run goes on."""
        self.objectives[TrialId(f"uid.s.{name}")] = "loss"
        self.begun += 1
        tags = {contract.TAG_SWEEP_ID: "uid.s", contract.TAG_TRIAL_ID: f"uid.s.{name}"}
        run = str(self.client.create_run(self.where, start_time=self.begun * 10_000, tags=tags).info.run_id)
        self.client.log_batch(run, metrics=[Metric("loss", value, int(BEGAN * 1000), 1)])
        return run

    def log(self, run: str, value: float, step: int = 2) -> None:
        """Log a value."""
        self.client.log_batch(run, metrics=[Metric("loss", value, int((BEGAN + self.now) * 1000), step)])

    def end(self, *runs: str) -> None:
        """End runs."""
        for run in runs:
            self.client.set_terminated(run)

    def look(self, after_s: float = 1.0) -> dict[str, float]:
        """Return the value of each trial."""
        self.now += after_s
        self.answered = 0
        return {name.rpartition(".")[2]: sample.value for name, sample in self.source.poll().items()}


@pytest.fixture
def sweep(client: MlflowClient, request: pytest.FixtureRequest) -> Sweep:
    return Sweep(client, request.node.name)


def test_runs_that_ended_before_the_last_look_are_not_read_again(sweep: Sweep) -> None:
    sweep.end(*[sweep.begin(f"over{number}") for number in range(20)])
    going_on = sweep.begin("on")
    assert len(sweep.look()) == 21
    sweep.log(going_on, 0.4)
    sweep.look()
    assert sweep.look()["on"] == 0.4
    assert sweep.answered <= 3


def test_what_a_run_logs_right_before_its_end_is_seen(sweep: Sweep) -> None:
    run = sweep.begin("a")
    sweep.look()
    sweep.log(run, 0.3)
    sweep.end(run)
    assert sweep.look() == {"a": 0.3}


@pytest.mark.parametrize(("waited", "looks"), [(WATCHED_S / 2, 1), (WATCHED_S * 2, WHOLE_S)], ids=["soon", "late"])
def test_points_that_come_after_the_end_of_a_run_are_seen(sweep: Sweep, waited: float, looks: float) -> None:
    run = sweep.begin("a")
    sweep.look()
    sweep.end(run)
    sweep.look()
    sweep.look(waited)
    sweep.log(run, 0.2)
    seen = [sweep.look() for _ in range(math.ceil(looks))]
    assert seen[-1] == {"a": 0.2}


def test_the_last_look_reads_all_runs_whatever_was_read_before(sweep: Sweep) -> None:
    run = sweep.begin("a")
    sweep.end(run)
    sweep.look()
    sweep.log(run, 0.1)
    (sample,) = sweep.source.poll(whole=True).values()
    assert sample.value == 0.1


def test_a_run_that_goes_on_after_its_end_is_seen_at_once(sweep: Sweep) -> None:
    run = sweep.begin("a")
    sweep.end(run)
    sweep.look()
    sweep.look(WATCHED_S + 1)
    sweep.client.update_run(run, status="RUNNING")
    sweep.log(run, 0.1)
    assert sweep.look() == {"a": 0.1}


def test_a_trial_that_began_and_ended_between_two_looks_is_seen_at_once(sweep: Sweep) -> None:
    sweep.begin("a")
    b = sweep.begin("b", 0.6)
    sweep.client.delete_run(b)
    assert sweep.look() == {"a": 0.5}
    sweep.look()
    sweep.client.restore_run(b)
    sweep.end(b)
    assert sweep.look() == {"a": 0.5, "b": 0.6}


def test_trials_that_were_submitted_since_are_found_although_their_runs_have_ended(sweep: Sweep) -> None:
    run = sweep.begin("old")
    sweep.end(run)
    late = sweep.objectives.pop(TrialId("uid.s.old"))
    sweep.begin("a")
    assert sweep.look() == {"a": 0.5}
    sweep.objectives[TrialId("uid.s.old")] = late
    assert sweep.look(SOON_S + 1) == {"a": 0.5, "old": 0.5}


def test_a_run_that_was_deleted_is_forgotten(sweep: Sweep) -> None:
    run = sweep.begin("a")
    sweep.begin("b")
    sweep.look()
    sweep.client.delete_run(run)
    assert sweep.look() == {"b": 0.5}


def test_the_oldest_of_two_runs_of_a_trial_counts_whichever_is_read_again(sweep: Sweep) -> None:
    first = sweep.begin("a", 0.5)
    second = sweep.begin("a", 0.9)
    sweep.look()
    sweep.log(second, 0.8)
    assert sweep.look() == {"a": 0.5}
    assert sweep.source.run_ids == {"uid.s.a": first}


@pytest.mark.parametrize("value", [0.5, math.nan])
def test_a_trial_without_news_keeps_its_sample(sweep: Sweep, value: float) -> None:
    sweep.begin("a", value)
    (first,) = sweep.source.poll().values()
    (second,) = sweep.source.poll(whole=True).values()
    assert second is first
