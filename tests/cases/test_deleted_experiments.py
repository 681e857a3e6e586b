"""A sweep whose experiment somebody has deleted in MLflow says so before it trains, and how to put it back."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tests.integration.workbench import Workbench

pytestmark = pytest.mark.slow


def _own(bench: Workbench, name: str) -> None:
    """Leave the database of an MLflow that ran here before."""
    folder = bench.folder / ".specon" / "mlflow"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "mlflow.db")) as opened:
        opened.execute("CREATE TABLE experiments (experiment_id INTEGER, name TEXT, lifecycle_stage TEXT)")
        opened.execute("INSERT INTO experiments VALUES (7, ?, 'deleted')", (name,))
        opened.commit()


@pytest.mark.parametrize("whose", ["own", "user's"])
def test_an_experiment_that_is_deleted_is_told_before_anything_trains(served: Workbench, whose: str) -> None:
    served.write()
    if whose == "own":
        served.tracking_uri = ""
        _own(served, "descent")
    else:
        client = MlflowClient(served.tracking_uri)
        client.delete_experiment(client.create_experiment("descent"))
    done = served.run("run", "sweep.py", "--plain")
    assert done.code == 2, done.output
    assert "experiment 'descent' is deleted in MLflow" in done.output
    assert "mlflow experiments restore --experiment-id" in done.output
    assert not list(Path(served.folder / ".specon").glob("runs/*"))
    if whose == "user's":
        client.restore_experiment(str(getattr(client.get_experiment_by_name("descent"), "experiment_id", "")))
