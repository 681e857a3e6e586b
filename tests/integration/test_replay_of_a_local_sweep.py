"""A sweep that really ran on this machine, recorded and simulated."""

import json

import pytest

from controllers.lab.simulation.workload_file import read_workload
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
    recorded = [json.loads(path.read_text()) for path in sorted(workbench.newest_run.glob("*/result.json"))]
    checks = figures["checks"]
    assert [check["makespan_s"] for check in checks] == pytest.approx([run["makespan_s"] for run in recorded])
    assert [policy["policy"] for policy in figures["policies"]] == ["default", "ahead"]

    workload = read_workload(workbench.folder / "workload")
    assert sorted(len(trial.reports) for trial in workload.trials) == [60, 60, 120, 120]
    # A step is busy for 8 CPU milliseconds, and MLflow costs something beside.
    works = sorted(trial.work_s for trial in workload.trials)
    assert all(work > 0.9 * steps * 0.008 for work, steps in zip(works, (60, 60, 120, 120), strict=True)), works
    # How near a simulation comes is measured by benchmarks.believable; no load of the machine can make it faster than
    # its nodes are.
    for check in checks:
        assert check["simulated_makespan_s"]["low"] > 0.9 * sum(works) / 0.6, told.output
        assert set(check["completion_errors"]) == {trial.id for trial in workload.trials}
