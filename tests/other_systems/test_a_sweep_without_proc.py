"""Whole sweeps, and tests of what they are made of, where Python sees no ``/proc`` and none of the calls of Linux."""

import json
import os
from pathlib import Path

import pytest

from tests.local_faults.bench import ROOT, bench
from tests.local_faults.case import Case, Fault
from tests.local_faults.nursery import Nursery
from tests.local_faults.whole import problems

WITHOUT_PROC = {"PYTHONPATH": os.pathsep.join((str(Path(__file__).with_name("without_proc")), str(ROOT)))}
CASE = Case(
    seed=3,
    variants=1,
    steps=(40, 80, 120),
    step_ms=30.0,
    actions=8,
    own_server=True,
    room_mib=0,
    faults=(
        Fault("kill trial", after_s=4.0),
        Fault("interrupt driver", "move", done=True),
        Fault("kill fork server", "ledger save", nth=6),
    ),
)
OURS = ("processes.fork_server", "shares.pacer_process", "local.serve_mlflow", "hash_chain_job.py")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_comes_to_its_end_through_moves_kills_and_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    monkeypatch.setenv("WITHOUT_PROC_TOLD", str(told))
    folder = tmp_path / "user"
    folder.mkdir()
    nursery = Nursery(WITHOUT_PROC)
    try:
        with bench(folder, CASE, nursery) as made:
            made.run("")
            wrong = problems(made, made.database)
            assert not wrong, "\n".join([*wrong, made.told()])
            assert len(list((folder / "struck").iterdir())) == len(CASE.faults)
            (result,) = json.loads((folder / "result.json").read_text())["runs"]
            assert sum(trial["moves"] for trial in result["trials"]) >= 1
    finally:
        nursery.close()
    programs = told.read_text()
    assert [name for name in OURS if name not in programs] == []
