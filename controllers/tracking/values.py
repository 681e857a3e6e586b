"""The values of metrics out of MLflow, as their trials logged them: all code that reads a metric reads it here.

MLflow's SQL stores have no infinities. They keep the greatest finite numbers in their place, and hand these out as if a
trial had logged them.
"""

import math
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

_MOST_STEP: Final = 2**63


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One point of a metric: its value may be NaN or infinite. ``epoch_s`` is in Unix seconds."""

    value: float
    step: int
    epoch_s: float


def as_logged(value: float) -> float:
    """Return the value that a trial logged where MLflow keeps ``value``: an infinity is one again."""
    return math.copysign(math.inf, value) if abs(value) >= sys.float_info.max else value


def newest_of(run: Run) -> Mapping[str, MetricPoint]:
    """Return the newest point of each metric of a run."""
    # run.data.metrics drops step and timestamp; the protobuf form keeps them.
    return {m.key: MetricPoint(as_logged(m.value), m.step, m.timestamp / 1000) for m in run.data.to_proto().metrics}


def newest_in_json(metric: Mapping[str, Any]) -> MetricPoint:
    """Return a metric's newest point out of a run in the JSON of MLflow's REST API.

    Raises:
        TypeError: it is no metric.
        ValueError: likewise.
    """
    # Zero is left out of protobuf's JSON, and NaN and infinities are strings in it: all are what float and int take.
    value, step, at = (metric.get(name, 0) for name in ("value", "step", "timestamp"))
    if abs(int(step)) > _MOST_STEP:
        message = f"step {str(step)[:40]} is beyond the 64 bits that MLflow counts with"
        raise ValueError(message)
    return MetricPoint(as_logged(float(value)), int(step), int(at) / 1000)


def newest_in_database(file: Path) -> dict[str, float]:
    """Return the newest value of each metric that any run logged into an SQLite database; none where it has no such."""
    if not file.exists():
        return {}
    with closing(sqlite3.connect(file)) as opened, suppress(sqlite3.Error):
        rows = opened.execute("SELECT key, value, is_nan FROM latest_metrics ORDER BY timestamp").fetchall()
        return {str(key): math.nan if is_nan else as_logged(float(value)) for key, value, is_nan in rows}
    return {}


def history_of(client: MlflowClient, run_id: str, metric: str) -> list[MetricPoint]:
    """Return all points of a metric, in the order in which MLflow hands them out.

    Raises:
        MlflowException: MLflow is away or refuses.
    """
    points = client.get_metric_history(run_id, metric)
    return [MetricPoint(as_logged(float(m.value)), int(m.step), m.timestamp / 1000) for m in points]
