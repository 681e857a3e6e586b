"""Tables to read."""

from collections.abc import Mapping
from pathlib import Path

import pytest

TABLES: Mapping[str, str] = {
    "trials.csv": "trial,submitted_s,work_s,cpu\na,0,10,0.1\nb,5,20,0.1\n",
    "reports.csv": "trial,work_s,value\na,5,1.0\na,10,0.5\nb,10,2.0\nb,20,1.0\n",
    "nodes.csv": "node,cpu\nnode-1,0.5\n",
}


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder with a workload of two trials and a node."""
    folder = tmp_path / "workload"
    folder.mkdir()
    for name, text in TABLES.items():
        (folder / name).write_text(text)
    return folder
