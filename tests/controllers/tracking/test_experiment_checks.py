"""An experiment that was deleted in MLflow is told of before its sweep begins."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from controllers.tracking import still_there
from controllers.tracking.experiment_checks import (
    DeletedExperimentError,
    check_experiments,
    check_experiments_in,
    why_no_artifacts,
)
from controllers.tracking.still_there import StillThere


@dataclass
class Client:
    """Stands in for MLflow's client: one experiment, and one run with the state that it is in."""

    stage: str = "active"
    location: str = "mlflow-artifacts:/1"
    error: MlflowException | None = None

    def get_experiment_by_name(self, name: str) -> Any:  # noqa: ANN401 - as MLflow's
        found = SimpleNamespace(experiment_id="7", lifecycle_stage=self.stage, artifact_location=self.location)
        return found if name == "vae" else None

    def get_run(self, run_id: str) -> Any:  # noqa: ANN401 - as MLflow's
        if self.error is not None:
            raise self.error
        return SimpleNamespace(info=SimpleNamespace(run_id=run_id, lifecycle_stage=self.stage))


def test_a_deleted_experiment_is_refused_with_the_command_that_restores_it() -> None:
    with pytest.raises(DeletedExperimentError, match=r"'vae' is deleted .* restore --experiment-id 7.*experiment="):
        check_experiments(Client("deleted"), ["new", "vae"], "http://mlflow")  # type: ignore[arg-type]
    check_experiments(Client(), ["new", "vae"], "http://mlflow")  # type: ignore[arg-type]


def test_a_deleted_experiment_of_our_own_mlflow_is_found_in_its_database(tmp_path: Path) -> None:
    database = tmp_path / "mlflow.db"
    check_experiments_in(database, ["vae"], "sqlite:///x")
    assert not database.exists()
    with closing(sqlite3.connect(database)) as opened:
        check_experiments_in(database, ["vae"], "sqlite:///x")
        opened.execute("CREATE TABLE experiments (experiment_id INTEGER, name TEXT, lifecycle_stage TEXT)")
        opened.execute("INSERT INTO experiments VALUES (7, 'vae', 'deleted'), (8, 'mnist', 'active')")
        opened.commit()
    check_experiments_in(database, ["mnist"], "sqlite:///x")
    with pytest.raises(DeletedExperimentError, match="restore --experiment-id 7"):
        check_experiments_in(database, ["mnist", "vae"], "sqlite:///x")


def test_a_folder_of_artifacts_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for location in (tmp_path.as_uri(), f"{tmp_path}/new/1", "mlflow-artifacts:/1", "s3://bucket/1"):
        assert not why_no_artifacts(Client(location=location), ["new", "vae"])  # type: ignore[arg-type]
    (told,) = why_no_artifacts(Client(location=f"{tmp_path.as_uri()}/file/1"), ["vae"])  # type: ignore[arg-type]
    assert f"keeps its artifacts in {tmp_path}/file/1" in told


def test_a_run_that_was_deleted_while_its_sweep_trains_is_told_once_and_again_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(still_there, "_EVERY_S", 0.0)
    client = Client()
    watch = StillThere(client, {"r1": "vae"})  # type: ignore[arg-type]

    def told() -> list[str]:
        watch.poll()
        return list(watch.news())

    assert told() == []
    client.stage = "deleted"
    (line,) = told()
    assert line.startswith("Warning: the run of sweep vae (r1) was deleted in MLflow")
    client.error = MlflowException("away")
    assert told() == []
    client.error = MlflowException("gone", error_code=5)  # RESOURCE_DOES_NOT_EXIST is told by number or name
    assert told() == []
    client.stage, client.error = "active", None
    assert told() == ["the run of sweep vae is back in MLflow"]
