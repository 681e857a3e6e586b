"""Fixtures of the tests that run sweeps on the cluster. A test module names this one as its plugin."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from controllers.worlds.argo.api import KubeApi
from tests.cluster.any_cluster import AnyCluster
from tests.cluster.cluster import Cluster
from tests.cluster.sweeps.bench import Bench
from tests.cluster.sweeps.namespace import sweep_namespace
from tests.cluster.sweeps.pods_seen import PodsSeen
from tests.cluster.sweeps.ports import free_ports
from tests.cluster.sweeps.tracking import Tracking


@pytest.fixture(scope="session")
def own_cluster(cluster: AnyCluster) -> Cluster:
    """A cluster on this machine."""
    if not isinstance(cluster, Cluster):
        pytest.skip("MLflow and the trials' state are on this machine: not done where KUBECONFIG names another cluster")
    return cluster


@pytest.fixture(scope="session")
def tracking(own_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tracking]:
    """An MLflow server for all tests."""
    assert own_cluster.is_up
    server = Tracking(tmp_path_factory.mktemp("mlflow"), free_ports(1)[0])
    server.start()
    yield server
    server.stop()


@pytest.fixture
def bench(own_cluster: Cluster, tracking: Tracking, tmp_path: Path) -> Iterator[Bench]:
    """A namespace for one test."""
    with sweep_namespace(own_cluster.kubectl, f"sweeps-{secrets.token_hex(3)}", tmp_path / "state") as inside:
        api = KubeApi.load(str(own_cluster.kubeconfig))
        made = Bench(own_cluster, inside, tracking, tmp_path, api, PodsSeen(api, inside.namespace))
        try:
            yield made
        finally:
            click.echo(made.story())  # shown where the test failed
            made.close()
