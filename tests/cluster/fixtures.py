"""A cluster for the tests that carry the marker `cluster`: a plugin of all tests."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from tests.cluster.any_cluster import AnyCluster
from tests.cluster.cluster import Cluster, running_cluster
from tests.cluster.given_cluster import GivenCluster
from tests.cluster.host_state import differences, host_state
from tests.cluster.images.build import build_images
from tests.cluster.kubectl import Kubectl
from tests.cluster.namespaces import namespace as made_namespace
from tests.cluster.requirement import require_a_capable_machine

MOST_LOGGED: Final = 200_000_000
"""Bytes that a component of the cluster writes to its log at most while all tests run."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that need that no cluster is up before those that share one."""
    items.sort(key=lambda item: "no_cluster" not in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[AnyCluster]:
    """The cluster that KUBECONFIG names, or the one that is up on this machine, or one brought up for these tests."""
    given = os.environ.get("KUBECONFIG")
    running = running_cluster()
    if given and (running is None or Path(given) != running.kubeconfig):
        yield _checked(GivenCluster(Path(given)))
    elif running:
        yield running
    else:
        require_a_capable_machine()
        yield from _own_cluster(_telling_cluster(request))


@pytest.fixture
def namespace(cluster: AnyCluster) -> Iterator[Kubectl]:
    """kubectl in a namespace of the test's own, in which workflows can run."""
    with made_namespace(cluster.kubectl, f"test-{secrets.token_hex(4)}") as inside:
        yield inside
        _show(inside)


@pytest.fixture
def no_cluster() -> None:
    """Nothing is up on this machine that the test could disturb, and it can hold a cluster."""
    if os.environ.get("KUBECONFIG"):
        pytest.skip("brings up a cluster of its own: not done where KUBECONFIG names one")
    if running_cluster() is not None:
        pytest.skip("needs that no cluster is up: python -m tests.cluster down")
    require_a_capable_machine()


def _checked(cluster: GivenCluster) -> GivenCluster:
    found = cluster.shortcomings()
    if found:
        reasons = "\n".join((f"the cluster that KUBECONFIG={cluster.kubeconfig} names can't be used:", *found))
        pytest.fail(f"{reasons}\n(docs/how-to/run-the-cluster-tests.md)", pytrace=False)
    return cluster


def _own_cluster(cluster: Cluster) -> Iterator[Cluster]:
    cluster.down()
    before = host_state()
    try:
        cluster.up(list(build_images(tell=cluster.tell).values()))
        yield cluster
        long = {file.name: file.stat().st_size for file in cluster.layout.logs.glob("*.log")}
    finally:
        cluster.down()
    assert not differences(before, host_state())
    # A component that writes more goes round in circles, takes a core from the tests, and in the end fills the disk.
    assert not {name: size for name, size in long.items() if size > MOST_LOGGED}


def _telling_cluster(request: pytest.FixtureRequest) -> Cluster:
    """A cluster whose progress is shown at once, as its first start takes minutes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def tell(line: str) -> None:
        with capture.global_and_fixture_disabled():
            click.echo(f"\ncluster: {line}", nl=False)

    return Cluster(tell=tell)


def _show(kubectl: Kubectl) -> None:
    """Print what a failed test's reader wants to know; pytest hides it where the test passed."""
    click.echo(kubectl("get", "workflows,pods", "--output=wide"))
    click.echo(kubectl("get", "events", "--sort-by=.lastTimestamp"))
