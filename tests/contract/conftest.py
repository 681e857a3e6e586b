"""The worlds that must keep the contract, one parameter for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.bench import LocalBench


@pytest.fixture(params=["local"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalBench]:
    """A world to submit trials to; one parameter for each world that there is."""
    assert request.param == "local"
    world = LocalBench(tmp_path)
    yield world
    world.close()
