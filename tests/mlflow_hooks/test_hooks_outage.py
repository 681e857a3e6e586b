"""MLflow slow or down: the training doesn't notice, and nothing is missing in the end."""

import signal
from pathlib import Path

import pytest
from mlflow import MlflowClient

from mlflow_hooks import deliver_leftovers
from mlflow_hooks.journal import Journal, count_unsent
from mlflow_hooks.points import Point
from mlflow_hooks.state_folder import Ending, Identity, write_ending, write_identity
from tests.mlflow_hooks.hook_jobs import RunJob, Server, StartJob, wait_for

pytestmark = pytest.mark.slow


def steps_in_mlflow(uri: str, trial_id: str) -> tuple[str, list[int]]:
    client = MlflowClient(uri)
    (run,) = client.search_runs(["0"], f"tags.`specon.trial_id` = '{trial_id}'")
    return run.info.status, sorted(metric.step for metric in client.get_metric_history(run.info.run_id, "total"))


def logged_lines(folder: Path) -> int:
    path = folder / "points.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_trial_ends_while_the_server_is_down_and_its_leftovers_arrive_later(
    run_job: RunJob, stopped_server: Server, state_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At its end it tries for so long.
    ended = run_job("plain", "s.a", MLFLOW_TRACKING_URI=stopped_server.uri, SPECON_FLUSH_S="20")
    assert ended.code == 0
    assert "MLflow is away" in ended.err
    unsent = count_unsent(state_root / "s.a")
    assert unsent == (state_root / "s.a/points.jsonl").read_text().count("\n") >= 30 * 2 + 3

    monkeypatch.setenv("MLFLOW_TRACKING_URI", stopped_server.uri)
    assert deliver_leftovers(state_root / "s.a", deadline_s=0.5) == unsent
    stopped_server.start()
    assert deliver_leftovers(state_root / "s.a", deadline_s=120) == 0
    assert steps_in_mlflow(stopped_server.uri, "s.a") == ("FINISHED", list(range(30)))


def test_training_goes_on_while_the_server_hangs_and_the_server_gets_all_when_it_is_back(
    start_job: StartJob, stopped_server: Server, state_root: Path
) -> None:
    stopped_server.start()
    more = {"JOB_STEPS": "800", "JOB_SLEEP_S": "0.02", "MLFLOW_HTTP_REQUEST_TIMEOUT": "2"}
    job = start_job("plain", "s.b", MLFLOW_TRACKING_URI=stopped_server.uri, **more)
    sent = state_root / "s.b/points.sent"
    wait_for(sent.exists)
    stopped_server.signal(signal.SIGSTOP)
    before = logged_lines(state_root / "s.b")
    wait_for(lambda: logged_lines(state_root / "s.b") > before + 300)
    stopped_server.signal(signal.SIGCONT)
    assert job.wait(timeout=120) == 0
    assert steps_in_mlflow(stopped_server.uri, "s.b") == ("FINISHED", list(range(800)))


def test_a_server_that_lost_its_database_gets_everything_again(
    run_job: RunJob, stopped_server: Server, state_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_server.start()
    assert run_job("plain", "s.c", JOB_SIGNAL="9:SIGTERM", MLFLOW_TRACKING_URI=stopped_server.uri).code == 75
    monkeypatch.setenv("MLFLOW_TRACKING_URI", stopped_server.uri)
    assert deliver_leftovers(state_root / "s.c", deadline_s=60) == 0
    assert steps_in_mlflow(stopped_server.uri, "s.c") == ("RUNNING", list(range(10)))
    stopped_server.stop()
    (stopped_server.folder / "mlflow.db").unlink()
    stopped_server.start()
    assert run_job("plain", "s.c", MLFLOW_TRACKING_URI=stopped_server.uri).code == 0
    assert deliver_leftovers(state_root / "s.c", deadline_s=60) == 0
    assert steps_in_mlflow(stopped_server.uri, "s.c") == ("FINISHED", list(range(30)))


def test_a_point_that_mlflow_refuses_is_reported_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    write_identity(tmp_path, Identity("s.d", "d", "Default", None, None, {"lr": 0.1}))
    points = [Point("total", step, step, 1) for step in range(9)]
    Journal(tmp_path).append([*points[:4], Point("not\na name", 1.0, 0, 1), *points[4:]])
    write_ending(tmp_path, Ending.now("FAILED"))
    assert deliver_leftovers(tmp_path, deadline_s=120) == 0
    assert "MLflow refuses Point(key='not\\na name'" in capsys.readouterr().err
    assert steps_in_mlflow(uri, "s.d") == ("FAILED", list(range(9)))


def test_a_folder_without_a_trial_has_no_leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert deliver_leftovers(tmp_path / "none", deadline_s=5) == 0
