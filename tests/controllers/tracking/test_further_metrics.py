"""What counts beside the objective is read in the same query, and marks of the front are set and taken back."""

import math
from dataclasses import replace

from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

from controllers.core.model import TrialId
from controllers.core.results import RunResult, TrialResult
from controllers.tracking.front_tags import TAG_ON_FRONT, tag_front
from controllers.tracking.mlflow_source import MlflowSource, Scope
from controllers.tracking.sweep_runs import SweepRun, close_sweep
from tests.controllers.tracking.test_mlflow_source import experiment, trial

A, B = TrialId("uid.s.a"), TrialId("uid.s.b")


def source(client: MlflowClient, where: str, **further: tuple[str, ...]) -> MlflowSource:
    names, also = {A: "loss", B: "loss"}, {TrialId(f"uid.s.{name}"): metrics for name, metrics in further.items()}
    return MlflowSource(client, lambda: Scope([where], "uid."), lambda: names, float, further=lambda: also)


def test_each_trial_gets_its_own_further_metrics_and_only_finite_ones(client: MlflowClient) -> None:
    where = experiment(client, "further")
    trial(client, where, "uid.s.a", loss=(0.5, 1, 1), latency=(7.0, 1, 1), memory=(math.nan, 1, 1), other=(1.0, 1, 1))
    trial(client, where, "uid.s.b", loss=(0.4, 1, 1), latency=(8.0, 1, 1))
    found = source(client, where, a=("latency", "memory")).poll()
    assert (found[A].also, found[B].also) == ((("latency", 7.0),), ())


def test_a_metric_that_comes_after_the_last_report_makes_a_new_sample(client: MlflowClient) -> None:
    where = experiment(client, "late")
    run = trial(client, where, "uid.s.a", loss=(0.5, 1, 1))
    reader = source(client, where, a=("latency",))
    before = reader.poll()[A]
    client.log_batch(run, metrics=[Metric("latency", 7.0, 2000, 0)])
    after = reader.poll()[A]
    assert (before.also, after.also) == ((), (("latency", 7.0),))
    assert (before.value, before.step, before.at) == (after.value, after.step, after.at)
    assert reader.logged[A] >= {"loss", "latency"}


def test_of_names_without_number_a_hundred_are_read(client: MlflowClient) -> None:
    where = experiment(client, "many")
    many = tuple(f"m{number:03d}" for number in range(500))
    trial(client, where, "uid.s.a", loss=(0.5, 1, 1), **dict.fromkeys(many, (1.0, 1.0, 1)))
    assert len(source(client, where, a=many).poll()[A].also) == 100


def front(*latencies: float) -> RunResult:
    """Return a sweep of trials a, b, ... whose loss is the same."""
    base = TrialResult("", 0.0, 1.0, "n", 0, 1, 1.0, objective="loss", sweep="s", further_objectives="minimize latency")
    named = zip("abc", latencies, strict=False)
    return RunResult("ahead", tuple(replace(base, id=f"s.{n}", values={"latency": value}) for n, value in named))


def test_marks_of_the_front_are_set_and_taken_from_those_that_are_beaten_later(client: MlflowClient) -> None:
    where = experiment(client, "marks")
    runs = [trial(client, where, f"uid.s.{name}", loss=(1.0, 1, 1)) for name in "ab"]
    sweep = SweepRun("uid.s", where, client.create_run(where).info.run_id)

    def marked() -> list[bool]:
        return [TAG_ON_FRONT in client.get_run(run).data.tags for run in runs]

    tag_front(client, sweep, [where], front(1.0, 2.0))
    assert marked() == [True, False]
    tag_front(client, sweep, [where], front(3.0, 2.0))
    assert marked() == [False, True]
    close_sweep(client, sweep, front(3.0, 2.0))
    tags = client.get_run(sweep.run_id).data.tags
    assert tags["specon.front"] == '["s.b"]'
    assert "specon.best_trial" not in tags
