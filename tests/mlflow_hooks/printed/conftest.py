"""Programs whose printed metrics are read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mlflow_hooks.printed.reading import Readings, readings_in


@pytest.fixture
def readings(tmp_path: Path) -> Iterator[Readings]:
    yield from readings_in(tmp_path / "state")
