"""MLflow's server starts as one process, and as `mlflow server` where an MLflow lacks what that takes."""

import os
from pathlib import Path

import psutil
import pytest
from mlflow.server import constants
from mlflow.tracking import MlflowClient

from controllers.worlds.local import serve_mlflow
from controllers.worlds.local.mlflow_server import LocalMlflow
from controllers.worlds.local.processes import proctree


def test_the_server_of_a_run_keeps_runs_and_artifacts_without_mlflow_server(tmp_path: Path) -> None:
    server = LocalMlflow(tmp_path / "mlflow")
    server.start()
    try:
        server.wait_ready()
        commands = [" ".join(psutil.Process(pid).cmdline()) for pid in proctree.tree(server.pid)]
        client = MlflowClient(server.uri)
        run = client.create_run("0").info.run_id
        client.log_text(run, "weights", "model.txt")
        kept = [item.path for item in client.list_artifacts(run)]
    finally:
        server.close()
    assert not [command for command in commands if "mlflow server" in command or "uvicorn" in command]
    assert kept == ["model.txt"]
    assert [path.read_text() for path in (tmp_path / "mlflow" / "artifacts").rglob("model.txt")] == ["weights"]


def test_an_mlflow_without_what_it_takes_is_served_by_its_own_command(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[list[str]] = []

    def execv(_: str, command: list[str]) -> None:
        begun.append(command)
        raise SystemExit

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.delattr(constants, "SERVE_ARTIFACTS_ENV_VAR")
    with pytest.raises(SystemExit):
        serve_mlflow.serve(5001, "sqlite:///kept.db", "artifacts")
    (command,) = begun
    assert command[1:4] == ["-m", "mlflow", "server"]
    assert command[-6:] == [
        "--port",
        "5001",
        "--backend-store-uri",
        "sqlite:///kept.db",
        "--artifacts-destination",
        "artifacts",
    ]


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="sessions are not scheduled as one here")
def test_trials_come_before_the_server_also_where_each_session_is_scheduled_as_one(tmp_path: Path) -> None:
    server = LocalMlflow(tmp_path / "mlflow")
    server.start()
    try:
        server.wait_ready()
        niceness = psutil.Process(server.pid).nice()
        of_its_session = Path(f"/proc/{server.pid}/autogroup").read_text().split()
    finally:
        server.close()
    assert niceness > 0
    assert of_its_session[1:] == ["nice", str(niceness)]


def test_a_server_that_was_killed_while_it_made_its_database_comes_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{serve_mlflow.DATABASE}.new").write_bytes(b"half of a database")
    serve_mlflow._make_database(Path(serve_mlflow.DATABASE))
    assert [one.name for one in MlflowClient(f"sqlite:///{serve_mlflow.DATABASE}").search_experiments()] == ["Default"]
    assert [path.name for path in tmp_path.iterdir()] == [serve_mlflow.DATABASE]
