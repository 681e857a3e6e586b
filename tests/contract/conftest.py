"""The worlds that must keep the contract, one parameter for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.argo_bench import ArgoBench
from tests.contract.bench import Bench, DeviceBench, GangBench
from tests.contract.local_bench import LocalBench
from tests.contract.simulated_bench import SimulatedBench


@pytest.fixture(params=["simulated", "local", pytest.param("argo", marks=pytest.mark.cluster)])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A world to submit trials to; one parameter for each world that there is."""
    world = _bench(request, tmp_path)
    yield world
    world.close()


@pytest.fixture(params=["simulated", pytest.param("argo", marks=pytest.mark.cluster)])
def device_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DeviceBench]:
    """A world that gives out devices; the local world refuses whoever asks for one."""
    world = SimulatedBench(tmp_path) if request.param == "simulated" else _argo_bench(request, tmp_path)
    yield world
    world.close()


@pytest.fixture(params=["simulated", "local"])
def gang_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GangBench]:
    """A world whose trials may have several workers."""
    world = SimulatedBench(tmp_path) if request.param == "simulated" else LocalBench(tmp_path)
    yield world
    world.close()


def _bench(request: pytest.FixtureRequest, folder: Path) -> Bench:
    match request.param:
        case "simulated":
            return SimulatedBench(folder)
        case "local":
            return LocalBench(folder)
        case _:
            return _argo_bench(request, folder)


def _argo_bench(request: pytest.FixtureRequest, folder: Path) -> ArgoBench:
    cluster = request.getfixturevalue("cluster")
    cluster.show_folder(folder)
    return ArgoBench(str(cluster.kubeconfig), folder)
