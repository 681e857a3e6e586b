"""A sweep that really ran on this machine, recorded and simulated."""

import json

import pytest

from controllers.simulation.workload_file import read_workload
from tests.integration.workbench import Workbench

pytestmark = pytest.mark.slow

RUN = ("run", "sweep.py", "--nodes", "2", "--cpus-per-node", "0.3", "--plain")
QUICK = "specon:interval=2,alpha=0.2+flowcon:interval=2"


def test_a_real_sweep_is_recorded_and_simulated_as_it_was(workbench: Workbench) -> None:
    workbench.write(steps=(60, 120), rates=(0.01, 0.02))
    done = workbench.run(*RUN, "--policy", "default", "--policy", QUICK)
    assert done.code == 0, done.output
    name = workbench.newest_run.name

    told = workbench.run("replay", name, "--seeds", "5", "--json", "replay.json", "--workload-out", "workload")

    assert told.code == 0, told.output
    figures = json.loads((workbench.folder / "replay.json").read_text())
    default, specon = figures["checks"]
    # Others may use this machine too: what they take is measured, but only every few seconds.
    assert abs(default["makespan_error"]) < 0.25, told.output
    assert abs(default["mean_completion_error"]) < 0.25, told.output
    assert abs(specon["makespan_error"]) < 0.4, told.output
    assert [policy["policy"] for policy in figures["policies"]] == ["default", "specon+flowcon"]

    workload = read_workload(workbench.folder / "workload")
    # 60 or 120 steps of 8 CPU milliseconds, and what MLflow costs beside them.
    works = sorted(trial.work_s for trial in workload.trials)
    assert works == pytest.approx([0.5, 0.5, 1.0, 1.0], rel=0.8)
    assert sorted(len(trial.reports) for trial in workload.trials) == [60, 60, 120, 120]
