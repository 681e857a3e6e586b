"""The worlds that must keep the contract, one parameter for each."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.contract.argo_bench import ArgoBench
from tests.contract.argo_gang_bench import ArgoGangBench
from tests.contract.bench import Bench, DeviceBench, GangBench
from tests.contract.local_bench import LocalBench
from tests.contract.simulated_bench import SimulatedBench

_Argo = TypeVar("_Argo", bound=ArgoBench)


@pytest.fixture(params=["simulated", "local", pytest.param("argo", marks=pytest.mark.cluster)])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A world to submit trials to; one parameter for each world that there is."""
    world = _bench(request, tmp_path, ArgoBench)
    yield world
    world.close()


@pytest.fixture(params=["simulated", pytest.param("argo", marks=pytest.mark.cluster)])
def device_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DeviceBench]:
    """A world that gives out devices; the local world refuses a trial that asks for one."""
    world = SimulatedBench(tmp_path) if request.param == "simulated" else _argo_bench(request, tmp_path, ArgoBench)
    yield world
    world.close()


@pytest.fixture(params=["simulated", "local", pytest.param("argo", marks=pytest.mark.cluster)])
def gang_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GangBench]:
    """A world whose trials may have several workers."""
    world = _bench(request, tmp_path, ArgoGangBench)
    yield world
    world.close()


def _bench(request: pytest.FixtureRequest, folder: Path, argo: type[_Argo]) -> SimulatedBench | LocalBench | _Argo:
    match request.param:
        case "simulated":
            return SimulatedBench(folder)
        case "local":
            return LocalBench(folder)
        case _:
            return _argo_bench(request, folder, argo)


def _argo_bench(request: pytest.FixtureRequest, folder: Path, kind: type[_Argo]) -> _Argo:
    cluster = request.getfixturevalue("cluster")
    cluster.show_folder(folder)
    return kind(str(cluster.kubeconfig), folder)
