"""Fixtures of the hooks: jobs that train, and servers that take their metrics."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mlflow_hooks.hook_jobs import JOBS, Ended, RunJob, Server, StartJob, job_environment
from tests.mlflow_hooks.more_object_servers import MORE, MoreObjects
from tests.mlflow_hooks.object_servers import S3Server, WithoutConditions, variables
from tests.mlflow_hooks.one_server import mlflow_server  # noqa: F401 - a fixture


@pytest.fixture
def s3_server() -> Iterator[S3Server]:
    """Give a server of objects to one test, which may freeze it."""
    server = S3Server()
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoreObjects]:
    yield from _started("versitygw", tmp_path_factory.mktemp("versitygw"))


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoreObjects]:
    yield from _started("azurite", tmp_path_factory.mktemp("azurite"))


def _started(kind: str, folder: Path) -> Iterator[MoreObjects]:
    server = MORE[kind](folder)
    if server is None:
        pytest.skip(f"{kind} is not installed (make test-stores does it)")
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Give the variables that send a trial's state to a store of the kind that the test is parametrized with."""
    if request.param == "folder":
        yield {"SPECON_STATE_STORE": f"file://{tmp_path}/store"}
    elif request.param == "mlflow":
        mlflow: Server = request.getfixturevalue("mlflow_server")
        told = {"MLFLOW_TRACKING_URI": mlflow.uri, "MLFLOW_EXPERIMENT_NAME": tmp_path.name, "SPECON_FLUSH_S": "60"}
        yield {"SPECON_STATE_STORE": "mlflow", **told}
    elif request.param in MORE:
        more: MoreObjects = request.getfixturevalue(request.param)
        yield {"SPECON_STATE_STORE": f"{more.address}/{tmp_path.name}", **more.environment}
    else:
        server: S3Server = request.getfixturevalue("s3_server")
        if request.param == "s3":
            yield {"SPECON_STATE_STORE": server.address, **server.environment}
            return
        between = WithoutConditions(server.port)
        yield {"SPECON_STATE_STORE": server.address, **variables(between.port)}
        between.stop()


@pytest.fixture
def in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have ``trial()`` of this very process begin trial ``s.a`` in ``tmp_path``, and give SIGTERM back afterwards."""
    for name in [name for name in os.environ if name.startswith(("SPECON_", "MLFLOW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SPECON_STATE_ROOT", str(tmp_path))
    monkeypatch.setenv("SPECON_TRIAL_ID", "s.a")
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def stopped_server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def state_root(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def start_job(state_root: Path) -> Iterator[StartJob]:
    started: list[subprocess.Popen[str]] = []

    def start(name: str, trial_id: str, **more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(JOBS / f"{name}_job.py")],
            env=job_environment(trial_id, state_root, more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a job in a pod ends what leads its group of processes
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def run_job(start_job: StartJob) -> RunJob:
    def run(name: str, trial_id: str, **more: str) -> Ended:
        process = start_job(name, trial_id, **more)
        out, err = process.communicate(timeout=240)
        words = (line.partition(" ") for line in out.splitlines())
        return Ended(process.returncode, {key: value for key, _, value in words}, err)

    return run
