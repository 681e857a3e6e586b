"""A sweep of a gang on this machine, from its workflow to its report: it grows and shrinks while it trains."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hera_specon.records.run_folder import load_run, run_states
from hera_specon.sweep_state import to_json
from tests.integration.gang_sweep import HERE, SIZES, THERE
from tests.integration.workbench import ROOT, Workbench, assert_whole, results

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).with_name("gang_sweep.py")


def start(workbench: Workbench) -> "subprocess.Popen[str]":
    env = {name: text for name, text in os.environ.items() if name != "MLFLOW_TRACKING_URI"} | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(DRIVER)],
        cwd=workbench.folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def workers_running(workbench: Workbench) -> int:
    ledgers = [json.loads(path.read_text()) for path in workbench.folder.glob(".specon/runs/*/*/ledger.json")]
    jobs = [job for ledger in ledgers for job in ledger["jobs"].values() if job["phase"] == "running"]
    return sum(len(job["pids"]) for job in jobs)


def test_a_gang_grows_and_shrinks_in_mid_training_and_everything_tells_of_it(workbench: Workbench) -> None:
    output, _ = (process := start(workbench)).communicate(timeout=280)
    assert process.returncode == 0, output
    (run,) = results(workbench.folder / "out.json")
    (trial,) = run["trials"]
    assert (trial["succeeded"], trial["scales"], trial["workers"], trial["attempts"]) == (True, 2, 2, 3), output
    assert (trial["first_nodes"], run["scales"]) == ([HERE], 2)
    assert_whole(workbench.histories(), {260: 1})
    record = load_run(workbench.newest_run)
    (stretches,) = record.runs[0].history.stretches.values()
    assert list(dict.fromkeys(s.places for s in stretches if s.phase == "running")) == [nodes for _, nodes in SIZES]
    assert "one of 3 workers, on node-1, node-2, node-2" in (workbench.folder / "report.html").read_text()
    (state,) = run_states(workbench.newest_run)
    (row,) = to_json(state)["trials"]
    assert (row["phase"], row["workers"]) == ("succeeded", 2)
    (tags,) = workbench.run_tags().values()
    assert (tags["specon.workers"], tags["specon.node"]) == ("2", f"{THERE}, {HERE}")
    assert not list(workbench.folder.glob(".specon/runs/*/*/state/*/gang"))
    assert not [p for p in workbench.processes() if p.pid != os.getpid()]


def test_a_controller_killed_while_a_gang_trains_leaves_no_worker_and_is_gone_on_with(workbench: Workbench) -> None:
    process = start(workbench)
    workbench.wait_for(lambda: workers_running(workbench) == 3)
    process.kill()
    process.communicate()
    workbench.wait_for(lambda: not [p for p in workbench.processes() if p.pid != os.getpid()], within_s=45)
    output, _ = (again := start(workbench)).communicate(timeout=280)
    assert again.returncode == 0, output
    assert "going on" in output
    (run,) = results(workbench.folder / "out.json")
    assert (run["trials"][0]["succeeded"], run["trials"][0]["scales"]) == (True, 2)
    assert_whole(workbench.histories(), {260: 1})
