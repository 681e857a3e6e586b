"""An MLflow that wants a login, and keeps checkpoints too: logins that are wrong or run out harm no training."""

import base64
import json
import signal
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from mlflow.tracking import MlflowClient

from tests.mlflow_hooks.hook_jobs import RunJob, Server, StartJob, wait_for
from tests.mlflow_hooks.test_trainings_in_stores import EVERY_STEP_ONCE, TOTAL, on, points

pytestmark = pytest.mark.slow
USER: Final = "admin"
FIRST: Final = "the first password"
CONFIG: Final = """
[mlflow]
default_permission = NO_PERMISSIONS
database_uri = sqlite:///{folder}/logins.db
admin_username = {user}
admin_password = {password}
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
"""


@dataclass
class Guarded:
    """A server that wants a login, whose only password can be changed."""

    server: Server
    password: str = FIRST

    def change(self, password: str) -> None:
        """Change the password: a client with the old one is refused from then on."""
        request = urllib.request.Request(  # noqa: S310 - our own server
            f"{self.server.uri}/api/2.0/mlflow/users/update-password",
            json.dumps({"username": USER, "password": password, "current_password": self.password}).encode(),
            {"Content-Type": "application/json", "Authorization": _basic(self.password)},
            method="PATCH",
        )
        with urllib.request.urlopen(request, timeout=30):  # noqa: S310 - as above
            self.password = password

    def told(self, password: str, tmp_path: Path) -> dict[str, str]:
        """Return the variables of a trial that has been given a password."""
        return {
            "SPECON_STATE_STORE": "mlflow",
            "MLFLOW_TRACKING_URI": self.server.uri,
            "MLFLOW_TRACKING_USERNAME": USER,
            "MLFLOW_TRACKING_PASSWORD": password,
            "MLFLOW_EXPERIMENT_NAME": tmp_path.name,
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
            "SPECON_FLUSH_S": "1",
        }


def _basic(password: str) -> str:
    return f"Basic {base64.b64encode(f'{USER}:{password}'.encode()).decode()}"


@pytest.fixture
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "logins.ini").write_text(CONFIG.format(folder=folder, user=USER, password=FIRST))
    variables = {
        "MLFLOW_AUTH_CONFIG_PATH": str(folder / "logins.ini"),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "of a test",
    }
    server = Server(folder, options=("--app-name", "basic-auth"), variables=variables)
    try:
        server.start()
        yield Guarded(server)
    finally:
        server.stop()


def test_with_a_login_a_trial_moves_and_loses_no_step(run_job: RunJob, guarded: Guarded, tmp_path: Path) -> None:
    told = guarded.told(FIRST, tmp_path)
    left = run_job("plain", "s.a", JOB_SIGNAL="11:SIGTERM", **on("m1", tmp_path), **told)
    assert left.code == 75, left.err
    ended = run_job("plain", "s.a", **on("m2", tmp_path), **told)
    assert (ended.code, ended.out) == (0, {"start": "12", "total": TOTAL}), ended.err
    assert points(tmp_path / "m2" / "s.a") == EVERY_STEP_ONCE


def test_a_wrong_login_is_told_and_nothing_is_trained_that_might_be_there_already(
    start_job: StartJob, guarded: Guarded, tmp_path: Path
) -> None:
    job = start_job("plain", "s.a", **on("m1", tmp_path), **guarded.told("another", tmp_path))
    time.sleep(15)
    assert job.poll() is None
    job.send_signal(signal.SIGTERM)
    out, err = job.communicate(timeout=100)
    assert job.returncode == 75, err
    assert "start" not in out
    assert "does not answer" in err
    assert "not authenticated" in err or "401" in err
    assert "another" not in err


def test_a_login_that_runs_out_lets_the_training_go_on_and_nothing_is_lost(
    start_job: StartJob, guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {"JOB_STEPS": "1500", "JOB_SLEEP_S": "0.02", "JOB_EVERY_S": "1"}
    job = start_job("plain", "s.a", **on("m1", tmp_path), **guarded.told(FIRST, tmp_path), **slow)
    folder = tmp_path / "m1" / "s.a"
    wait_for(lambda: (folder / "points.sent").exists() and int((folder / "points.sent").read_text()) > 0)
    guarded.change("the second password")
    before = len(points(folder))
    wait_for(lambda: len(points(folder)) > before + 300)
    kept = int((folder / "points.kept").read_text())
    assert kept < (folder / "points.jsonl").stat().st_size
    guarded.change(FIRST)
    out, err = job.communicate(timeout=200)
    assert job.returncode == 0, err
    assert f"total {sum(range(1500))}" in out
    assert "401" in err or "not authenticated" in err
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", USER)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", FIRST)
    client = MlflowClient(guarded.server.uri)
    experiment = client.get_experiment_by_name(tmp_path.name)
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert [point.step for point in client.get_metric_history(run.info.run_id, "total")] == list(range(1500))
    assert run.info.status == "FINISHED"
