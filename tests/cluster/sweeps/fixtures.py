"""Fixtures of the tests that run sweeps on the cluster. A test module names this one as its plugin."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cluster.any_cluster import AnyCluster
from tests.cluster.cluster import Cluster
from tests.cluster.sweeps.bench import Bench, opened_bench
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
    with opened_bench(own_cluster, tracking, tmp_path) as made:
        yield made
        click.echo(made.story())  # shown where the test failed
