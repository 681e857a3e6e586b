"""What the cases share: an MLflow server as a user's own, and a process that commands are forked from."""

from collections.abc import Iterator

import pytest

from controllers.worlds.local.mlflow_server import LocalMlflow
from tests.local_faults.nursery import Nursery


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMlflow]:
    """Start a server that no fault strikes."""
    server = LocalMlflow(tmp_path_factory.mktemp("mlflow"))
    server.start()
    server.wait_ready()
    yield server
    server.close()


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Import once what every command imports."""
    made = Nursery()
    yield made
    made.close()
