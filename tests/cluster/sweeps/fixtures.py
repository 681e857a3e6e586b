"""Fixtures of the tests that run sweeps on the cluster. A test module names this one as its plugin."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from controllers.worlds.argo.api import KubeApi
from tests.cluster.cluster import Cluster
from tests.cluster.sweeps.bench import Bench
from tests.cluster.sweeps.namespace import make_namespace, remove_namespace
from tests.cluster.sweeps.pods_seen import PodsSeen
from tests.cluster.sweeps.ports import free_ports
from tests.cluster.sweeps.tracking import Tracking


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The cluster that runs."""
    found = Cluster()
    if not found.is_up:
        pytest.fail("no cluster is up: python -m tests.cluster up")
    return found


@pytest.fixture(scope="session")
def tracking(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tracking]:
    """An MLflow server for all tests."""
    assert cluster.is_up
    server = Tracking(tmp_path_factory.mktemp("mlflow"), free_ports(1)[0])
    server.start()
    yield server
    server.stop()


@pytest.fixture
def bench(cluster: Cluster, tracking: Tracking, tmp_path: Path) -> Iterator[Bench]:
    """A namespace for one test."""
    name = f"sweeps-{uuid.uuid4().hex[:6]}"
    make_namespace(cluster, name, tmp_path / "state")
    api = KubeApi.load(str(cluster.kubeconfig))
    made = Bench(cluster, name, tracking, tmp_path, api, PodsSeen(api, name))
    yield made
    made.close()
    remove_namespace(cluster, name)
