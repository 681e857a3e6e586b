"""Real trainings whose attempts share no disk, only a store of objects."""

import json
import signal
import time
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from mlflow_hooks.store_address import open_store
from tests.mlflow_hooks.hook_jobs import Ended, RunJob, Server, StartJob, wait_for
from tests.mlflow_hooks.object_servers import S3Server

pytestmark = pytest.mark.slow
TOTAL = str(sum(range(30)))
in_each_store = pytest.mark.parametrize("store", ["folder", "s3", "mlflow"], indirect=True)


def on(machine: str, tmp_path: Path, **more: str) -> dict[str, str]:
    """Return the variables of an attempt with a disk of its own."""
    return {"SPECON_STATE_ROOT": str(tmp_path / machine), "SPECON_ATTEMPT": machine, **more}


def points(folder: Path, key: str = "total") -> list[tuple[int, float]]:
    lines = map(json.loads, (folder / "points.jsonl").read_text().splitlines())
    return [(line["step"], line["value"]) for line in lines if line["key"] == key]


EVERY_STEP_ONCE = [(n, float(sum(range(n + 1)))) for n in range(30)]


@in_each_store
def test_a_move_to_a_machine_that_shares_no_disk_loses_no_step(
    run_job: RunJob, tmp_path: Path, store: dict[str, str]
) -> None:
    left = run_job("plain", "s.a", JOB_SIGNAL="11:SIGTERM", **on("m1", tmp_path), **store)
    assert left.code == 75, left.err
    ended = run_job("plain", "s.a", **on("m2", tmp_path), **store)
    assert (ended.code, ended.out) == (0, {"start": "12", "total": TOTAL}), ended.err
    assert points(tmp_path / "m2" / "s.a") == EVERY_STEP_ONCE


@in_each_store
def test_a_machine_that_is_lost_costs_what_came_after_the_last_commit(
    run_job: RunJob, tmp_path: Path, store: dict[str, str]
) -> None:
    run_job("plain", "s.a", JOB_SIGNAL="5:SIGTERM", **on("m1", tmp_path), **store)
    assert run_job("plain", "s.a", JOB_SIGNAL="17:SIGKILL", **on("m2", tmp_path), **store).code == -9
    ended = run_job("plain", "s.a", **on("m3", tmp_path), **store)
    assert (ended.code, ended.out) == (0, {"start": "6", "total": TOTAL}), ended.err
    assert points(tmp_path / "m3" / "s.a") == EVERY_STEP_ONCE


@in_each_store
def test_an_attempt_that_was_replaced_leaves_and_writes_nothing_more(
    run_job: RunJob, start_job: StartJob, tmp_path: Path, store: dict[str, str]
) -> None:
    slow = {"JOB_STEPS": "4000", "JOB_SLEEP_S": "0.02", "JOB_EVERY_S": "1"}
    older = start_job("plain", "s.a", **on("m1", tmp_path), **store, **slow)
    kept = tmp_path / "m1" / "s.a" / "points.kept"
    wait_for(lambda: kept.exists() and int(kept.read_text()) > 0)
    newer = run_job("plain", "s.a", **on("m2", tmp_path), **store, JOB_STEPS="4000", JOB_SIGNAL="3900:SIGTERM")
    assert newer.code == 75, newer.err
    assert older.wait(timeout=60) == 75
    ended = run_job("plain", "s.a", **on("m3", tmp_path), **store, JOB_STEPS="4000")
    assert (ended.code, ended.out["start"]) == (0, "3901")
    assert [step for step, _ in points(tmp_path / "m3" / "s.a")] == list(range(4000))


def test_mlflow_has_each_step_once_after_moves_a_kill_and_two_attempts_at_once(
    run_job: RunJob, start_job: StartJob, tmp_path: Path, s3_server: S3Server, mlflow_server: Server
) -> None:
    told = {"MLFLOW_TRACKING_URI": mlflow_server.uri, "MLFLOW_EXPERIMENT_NAME": tmp_path.name, "SPECON_FLUSH_S": "60"}
    store = {"SPECON_STATE_STORE": s3_server.address, **s3_server.environment, **told, "JOB_STEPS": "1500"}
    slow = {"JOB_SLEEP_S": "0.02", "JOB_EVERY_S": "1"}
    older = start_job("plain", "s.a", **on("m1", tmp_path), **store, **slow)
    sent = tmp_path / "m1" / "s.a" / "points.sent"
    wait_for(lambda: sent.exists() and int(sent.read_text()) > 0)
    assert run_job("plain", "s.a", **on("m2", tmp_path), **store, **slow, JOB_SIGNAL="600:SIGKILL").code == -9
    assert older.wait(timeout=60) == 75
    assert run_job("plain", "s.a", **on("m3", tmp_path), **store, **slow, JOB_SIGNAL="900:SIGTERM").code == 75
    ended = run_job("plain", "s.a", **on("m4", tmp_path), **store)
    assert ended.code == 0, ended.err
    client = MlflowClient(mlflow_server.uri)
    experiment = client.get_experiment_by_name(tmp_path.name)
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    history = client.get_metric_history(run.info.run_id, "total")
    assert [point.step for point in history] == list(range(1500))
    assert [point.value for point in history] == [float(sum(range(n + 1))) for n in range(1500)]
    assert run.info.status == "FINISHED"


def test_a_store_that_goes_away_never_harms_the_training(
    start_job: StartJob, tmp_path: Path, s3_server: S3Server
) -> None:
    store = {"SPECON_STATE_STORE": s3_server.address, **s3_server.environment}
    job = start_job("plain", "s.a", **on("m1", tmp_path), **store, JOB_STEPS="600", JOB_SLEEP_S="0.02", JOB_EVERY_S="1")
    kept = tmp_path / "m1" / "s.a" / "points.kept"
    wait_for(lambda: kept.exists() and int(kept.read_text()) > 0)
    s3_server.signal(signal.SIGSTOP)
    time.sleep(4)
    s3_server.signal(signal.SIGCONT)
    out, err = job.communicate(timeout=200)
    assert job.returncode == 0, err
    assert f"total {sum(range(600))}" in out
    assert int(kept.read_text()) == (tmp_path / "m1" / "s.a" / "points.jsonl").stat().st_size


def test_an_attempt_that_cannot_know_where_to_go_on_waits_and_leaves_when_asked(
    start_job: StartJob, tmp_path: Path
) -> None:
    nowhere = {
        "SPECON_STATE_STORE": "s3://trials/sweeps",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }
    job = start_job("plain", "s.a", **on("m1", tmp_path), **nowhere)
    time.sleep(3)
    assert job.poll() is None
    job.send_signal(signal.SIGTERM)
    out, err = job.communicate(timeout=100)
    assert job.returncode == 75, err
    assert "start" not in out
    assert "does not answer" in err


def test_a_move_gives_up_waiting_for_the_store_before_it_is_killed(
    start_job: StartJob, run_job: RunJob, tmp_path: Path, s3_server: S3Server
) -> None:
    store = {"SPECON_STATE_STORE": s3_server.address, **s3_server.environment}
    job = start_job(
        "plain", "s.a", **on("m1", tmp_path), **store, JOB_STEPS="6000", JOB_SLEEP_S="0.02", SPECON_GRACE_S="12"
    )
    kept = tmp_path / "m1" / "s.a" / "points.kept"
    wait_for(lambda: kept.exists() and int(kept.read_text()) > 0)
    s3_server.signal(signal.SIGSTOP)
    asked = time.monotonic()
    job.send_signal(signal.SIGTERM)
    _, err = job.communicate(timeout=60)
    assert (job.returncode, time.monotonic() - asked < 12) == (75, True), err
    assert "has not taken the newest" in err
    s3_server.signal(signal.SIGCONT)
    ended: Ended = run_job("plain", "s.a", **on("m2", tmp_path), **store)
    assert ended.code == 0, ended.err


def test_what_is_no_store_is_told_before_anything_is_trained(run_job: RunJob, tmp_path: Path) -> None:
    ended = run_job("plain", "s.a", **on("m1", tmp_path), SPECON_STATE_STORE="ftp://x/y")
    assert ended.code == 1
    assert "'ftp://x/y' is no store for checkpoints" in ended.err


def test_a_finished_trial_is_whole_in_the_store(run_job: RunJob, tmp_path: Path) -> None:
    address = f"file://{tmp_path}/store"
    run_job("plain", "s.a", **on("m1", tmp_path), SPECON_STATE_STORE=address)
    found = open_store(address).read("s.a/head.json")
    assert found is not None
    head = json.loads(found[0])
    assert json.loads(head["notes"]["ended.json"])["status"] == "FINISHED"
    assert [one["step"] for one in head["checkpoints"]] == [30]
