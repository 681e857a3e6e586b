"""The worlds that must keep the contract, one parameter for each."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.argo_bench import ArgoBench
from tests.contract.bench import Bench
from tests.contract.local_bench import LocalBench


@pytest.fixture(params=["local", pytest.param("argo", marks=pytest.mark.cluster)])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A world to submit trials to; one parameter for each world that there is."""
    world = LocalBench(tmp_path) if request.param == "local" else _argo_bench(tmp_path)
    yield world
    world.close()


def _argo_bench(folder: Path) -> ArgoBench:
    kubeconfig = os.environ.get("KUBECONFIG")
    if not kubeconfig:
        pytest.fail("KUBECONFIG names no cluster: bring one up with python -m tests.cluster up, and set it")
    folder.chmod(0o755)
    return ArgoBench(kubeconfig, folder)
