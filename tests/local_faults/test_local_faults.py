"""Sweeps on this machine through faults of every kind: whatever is struck, the same command comes to the same end.

``FAULTS_LOCAL=300`` tries seeds 0 to 299, ``FAULTS_LOCAL=17-17`` seed 17 alone.
"""

import os
from pathlib import Path

import pytest

from controllers.worlds.local.mlflow_server import LocalMlflow
from tests.local_faults.bench import bench, can_mount
from tests.local_faults.case import draw_case
from tests.local_faults.nursery import Nursery
from tests.local_faults.whole import problems

_FEW = 6


def _seeds() -> range:
    first, _, last = os.environ.get("FAULTS_LOCAL", str(_FEW)).rpartition("-")
    return range(int(first or 0), int(last) + bool(first))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", _seeds())
def test_whatever_is_struck_nothing_is_lost_doubled_or_left(
    seed: int, tmp_path: Path, mlflow_server: LocalMlflow, nursery: Nursery
) -> None:
    case = draw_case(seed)
    if case.room_mib and not can_mount(tmp_path):
        pytest.skip("a file system of its own takes root")
    with bench(tmp_path, case, nursery) as made:
        made.run("" if case.own_server else mlflow_server.uri)
        database = made.database if case.own_server else Path(mlflow_server.store.removeprefix("sqlite:///"))
        wrong = problems(made, database)
        assert not wrong, "\n".join([f"seed {seed}: {case.text()}", *wrong, made.told()])
