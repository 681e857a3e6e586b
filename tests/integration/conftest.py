"""A user's folder for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.workbench import Workbench, opened


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    with opened(tmp_path) as bench:
        yield bench
