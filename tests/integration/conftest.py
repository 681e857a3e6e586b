"""A user's folder for each test."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.workbench import Workbench


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    """A user's empty folder; whatever still runs there afterwards is ended."""
    bench = Workbench(tmp_path)
    yield bench
    for process in bench.processes():
        if process.pid != os.getpid():
            os.kill(process.pid, signal.SIGKILL)
