from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cases.local_trials import LocalTrial
from tests.integration.workbench import Workbench, opened
from tests.mlflow_hooks.hook_jobs import Server
from tests.mlflow_hooks.one_server import mlflow_server  # noqa: F401 - a fixture


@pytest.fixture
def local_trial(tmp_path: Path) -> Iterator[LocalTrial]:
    """A trial of this machine that is still to be started, in the empty folder of a user."""
    with ExitStack() as stack:
        yield LocalTrial(tmp_path, stack)


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    """A user's empty folder, and the command line."""
    with opened(tmp_path) as bench:
        yield bench


@pytest.fixture
def served(workbench: Workbench, mlflow_server: Server) -> Workbench:  # noqa: F811 - the fixture
    """A user's empty folder, and an MLflow that is up."""
    workbench.tracking_uri = mlflow_server.uri
    return workbench
