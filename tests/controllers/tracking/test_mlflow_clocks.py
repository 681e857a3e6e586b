"""Whatever the clock of a trial's node says, its reports are as old as they are."""

import time

import pytest
from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.driving.clock import SweepClock
from controllers.tracking.mlflow_source import MlflowSource, Scope
from tests.controllers.tracking.test_mlflow_source import BEGAN, experiment, trial


class Watched:
    """A trial's run, and a source that reads it at the times of its test."""

    def __init__(self, client: MlflowClient, name: str) -> None:
        self.client, self.now = client, BEGAN
        where = experiment(client, name)
        self.run = trial(client, where, "uid.s.a")
        objectives = {TrialId("uid.s.a"): "loss"}
        self.source = MlflowSource(
            client,
            lambda: Scope([where], "uid."),
            lambda: objectives,
            lambda epoch_s: epoch_s - BEGAN,
            lambda: self.now,
        )

    def reported_at(self, step: int, stamp_s: float, now: float) -> float:
        """Report ``step`` with the stamp of a node's clock, and return when the source says that it was, at ``now``."""
        self.client.log_batch(self.run, metrics=[Metric("loss", 1.0 / (step + 1), int(stamp_s * 1000), step)])
        self.now = BEGAN + now
        (sample,) = self.source.poll().values()
        assert sample.step == step
        return sample.at


@pytest.mark.parametrize("ahead_s", [600.0, 1e12, 1e15], ids=["ten minutes", "milliseconds", "microseconds"])
def test_a_stamp_from_the_future_is_as_new_as_its_reading_and_delays_no_later_one(
    client: MlflowClient, ahead_s: float
) -> None:
    watched = Watched(client, f"ahead by {ahead_s:g}")
    assert watched.reported_at(3, BEGAN + 10 + ahead_s, 10.0) == 10.0
    # After a move, the clock of the new node is right.
    assert watched.reported_at(4, BEGAN + 20, 20.0) == 20.0
    assert watched.reported_at(5, BEGAN + 29, 30.0) == 29.0


@pytest.mark.parametrize("off_s", [3600.0, -3600.0])
def test_reports_go_on_while_the_clock_of_everybody_is_set(
    client: MlflowClient, monkeypatch: pytest.MonkeyPatch, off_s: float
) -> None:
    where = experiment(client, f"all set by {off_s:g}")
    run, clock, real = trial(client, where, "uid.s.a"), SweepClock(100.0), time.time
    source = MlflowSource(
        client,
        lambda: Scope([where], "uid."),
        lambda: {TrialId("uid.s.a"): "loss"},
        clock.from_epoch,
        clock.epoch,
    )
    times: list[float] = []
    for step in range(4):
        if step == 2:
            monkeypatch.setattr(time, "time", lambda: real() + off_s)
        client.log_batch(run, metrics=[Metric("loss", 1.0, int(time.time() * 1000), step)])
        (sample,) = source.poll().values()
        times.append(sample.at)
    assert times == sorted(times)
    assert 99.0 <= times[0] <= times[-1] <= clock.now() + 1


def test_a_report_that_is_read_again_keeps_its_time(client: MlflowClient) -> None:
    watched = Watched(client, "read again")
    assert watched.reported_at(3, BEGAN + 610, 10.0) == 10.0
    watched.now = BEGAN + 50
    (again,) = watched.source.poll().values()
    assert again.at == 10.0


def test_a_clock_that_is_behind_makes_no_report_older_than_the_last_look(client: MlflowClient) -> None:
    watched = Watched(client, "behind")
    watched.reported_at(3, BEGAN + 10, 10.0)
    assert watched.reported_at(4, BEGAN - 590, 40.0) >= 10.0
    assert watched.reported_at(5, BEGAN - 580, 70.0) >= 25.0
