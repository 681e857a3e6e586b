"""Whole sweeps, and tests of what they are made of, where Python sees no ``/proc`` and none of the calls of Linux."""

import json
import os
import subprocess
import sys
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
    steps=(80, 120, 160),
    step_ms=50.0,
    actions=16,
    own_server=True,
    room_mib=0,
    faults=(
        Fault("kill trial", after_s=4.0),
        Fault("kill fork server", "ledger save", nth=4),
        Fault("interrupt driver", "ledger save", nth=7),
    ),
)
PARTS = (
    "tests/controllers/worlds/local/processes/test_keeper.py",
    "tests/controllers/worlds/local/processes/test_launcher.py",
    "tests/controllers/worlds/local/processes/test_nothing_outlives_the_controller.py",
    "tests/controllers/worlds/local/test_timeouts.py",
    "tests/controllers/worlds/local/shares/test_pacer_survival.py",
)
NOT_PROMISED = (
    # Daemons that have left the session of their attempt, and exit codes of attempts that a dead server has left.
    "test_a_daemon_that_ignores_sigterm_does_not_survive_a_killed_fork_server",
    "test_whoever_an_attempt_leaves_behind_is_killed_even_in_a_session_of_its_own",
    # Nothing is imported ahead.
    "test_a_module_that_can_not_be_preloaded_is_reported_and_the_rest_goes_on",
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


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_processes_start_end_and_are_paced_as_elsewhere() -> None:
    others = " and ".join(f"not {name}" for name in NOT_PROMISED)
    pytest_alone = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-k", others]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*pytest_alone, *PARTS], cwd=ROOT, env=env | WITHOUT_PROC, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:]
