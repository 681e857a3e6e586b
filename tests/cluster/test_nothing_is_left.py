"""Bringing a cluster up and down leaves the host as it was, even if bringing it up was cut short."""

import os
import signal
import subprocess
import sys

import pytest

from tests.cluster.cluster import Cluster, running_cluster
from tests.cluster.host_state import HostState, differences, host_state
from tests.cluster.machine import REPOSITORY

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("no_cluster")]


@pytest.fixture
def before() -> HostState:
    Cluster().down()
    return host_state()


def test_a_cluster_shows_in_the_state_of_its_host_and_is_gone_from_it_afterwards(before: HostState) -> None:
    cluster = Cluster()
    try:
        cluster.up()
        during = host_state()
    finally:
        cluster.down()
    shown = {difference.partition(":")[0] for difference in differences(before, during)}
    assert shown >= {"cgroups", "links", "addresses", "routes", "processes"}
    assert differences(before, host_state()) == []
    assert running_cluster() is None


@pytest.mark.parametrize("step", ["starting the control plane", "starting the nodes", "waiting for the nodes"])
def test_what_a_killed_start_left_is_removed(before: HostState, step: str) -> None:
    command = [sys.executable, "-m", "tests.cluster", "up"]
    starting = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert starting.stdout is not None
    with starting:
        assert any(step in line for line in starting.stdout)
        os.kill(starting.pid, signal.SIGKILL)
    Cluster().down()
    assert differences(before, host_state()) == []
