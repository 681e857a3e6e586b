"""An infinity that a trial logged is one for everybody who reads it, though MLflow's SQL stores keep none."""

import json
import math
import re
import sys
from pathlib import Path

import pytest
from mlflow.entities import Metric
from mlflow.tracking import MlflowClient

from controllers.core.model import Direction, TrialId
from controllers.core.progress import merge
from controllers.tracking.metric_source import find_runs
from controllers.tracking.mlflow_source import MlflowSource, Scope
from controllers.tracking.values import as_logged
from hera_specon.cluster.sweep_state import tracked_sweeps
from hera_specon.replay.tracked_trials import history, tracked_trials
from mlflow_hooks import contract
from tests.controllers.tracking.test_mlflow_runs import run, server

ROOT = Path(__file__).parents[3]
INFINITIES = [math.inf, -math.inf]
NAME = TrialId("uid.s.a")


@pytest.fixture(params=["sql", "files"])
def store(
    request: pytest.FixtureRequest, client: MlflowClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> MlflowClient:
    """A store that keeps infinities as the greatest numbers, and one that keeps them as they are."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return client if request.param == "sql" else MlflowClient(str(tmp_path / "mlruns"))


def logged(client: MlflowClient, name: str, *values: float, first: float | None = None) -> str:
    """Log ``values`` of a trial's objective; return its experiment."""
    where = str(client.create_experiment(name))
    tags = {contract.TAG_SWEEP_ID: "uid.s", contract.TAG_TRIAL_ID: str(NAME)}
    points = [Metric("score", value, 1000 * step, step) for step, value in enumerate(values)]
    points += [] if first is None else [Metric(contract.METRIC_OBJECTIVE_FIRST, first, 0, 0)]
    client.log_batch(client.create_run(where, tags=tags).info.run_id, metrics=points)
    return where


@pytest.mark.parametrize("value", INFINITIES)
def test_policies_searches_and_the_result_get_it_as_it_was_logged(store: MlflowClient, value: float) -> None:
    where = logged(store, f"newest {value}", 0.1, 0.2, value, first=-value)
    (found,) = MlflowSource(store, lambda: Scope([where], "uid."), lambda: {NAME: "score"}, float).poll().values()
    assert (found.value, found.first) == (value, -value)
    assert merge(None, found, Direction.MAXIMIZE) is None


@pytest.mark.parametrize("value", INFINITIES)
def test_a_replay_sees_neither_it_nor_a_first_value_that_is_none(store: MlflowClient, value: float) -> None:
    where = logged(store, f"history {value}", value, 0.2, 0.1, value, first=value)
    (trial,) = tracked_trials(store, [where], "")
    assert [(point.step, point.value) for point in history(store, trial.run_id, "score")] == [(1, 0.2), (2, 0.1)]
    assert trial.objective_first == value


@pytest.mark.parametrize("value", INFINITIES)
def test_the_status_of_a_sweep_in_a_cluster_shows_no_number_for_it(store: MlflowClient, value: float) -> None:
    logged(store, f"status {value}", 0.1, value)
    (found,) = tracked_sweeps(store, {"uid.s": f"status {value}"}, {NAME: ("score",)}).trials.values()
    assert found.progress("score") is None
    assert found.metrics["score"].value == value


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        (sys.float_info.max, math.inf),
        (-sys.float_info.max, -math.inf),
        (1e308, 1e308),
    ],
)
def test_a_server_tells_it_as_a_word_or_as_the_greatest_number(told: object, value: float) -> None:
    with server(lambda _: (200, json.dumps({"runs": [run("t", score=told)]}).encode())) as client:
        (found,) = find_runs(client, ["7"], "", ["score"])
    assert found.metrics["score"].value == value


@pytest.mark.parametrize("value", [0.0, -1.5, 1e308, math.nextafter(sys.float_info.max, 0.0)])
def test_every_other_number_stays_what_it_is(value: float) -> None:
    assert as_logged(value) == value
    assert math.isnan(as_logged(math.nan))


@pytest.mark.parametrize("value", [sys.float_info.max, math.inf])
def test_both_ends_of_what_a_store_keeps_are_infinities_again(value: float) -> None:
    assert (as_logged(value), as_logged(-value)) == (math.inf, -math.inf)


def test_values_of_metrics_are_read_out_of_mlflow_in_one_module_only() -> None:
    files = [path for name in ("controllers", "hera_specon", "mlflow_hooks") for path in (ROOT / name).rglob("*.py")]
    readers = {str(path.relative_to(ROOT)) for path in files if reads_values(path.read_text())}
    assert readers == {"controllers/tracking/values.py"}


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("x = run.data.metrics['loss']", True),
        ("y = dict(run.data.metrics)", True),
        ("for m in run.data.to_proto().metrics: print(m)", True),
        ("client.get_metric_history(run, 'loss')", True),
        ("sorted(runs, key=lambda run: not run.data.metrics)", False),
        ("any(run.data.metrics for run in runs)", False),
    ],
)
def test_whether_a_run_has_any_metrics_is_no_value_of_theirs(source: str, reads: bool) -> None:  # noqa: FBT001 - as parametrized
    assert reads_values(source) is reads


def reads_values(source: str) -> bool:
    """Return whether a module reads values of metrics, and not just whether a run has any."""
    asked_only = re.compile(r"not \w+\.data\.metrics\b|any\(\w+\.data\.metrics for ")
    reading = re.compile(r"get_metric_history|data\.metrics|\.to_proto\(\)\.metrics|latest_metrics")
    return bool(reading.search(asked_only.sub("", source)))
