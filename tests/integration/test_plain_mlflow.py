"""A script that logs by MLflow alone is a trial like any other, but for moves: its run is made before it starts."""

import sqlite3

import pytest

from tests.integration.workbench import JOB, Workbench, results

pytestmark = pytest.mark.slow


def test_what_a_script_logs_by_mlflow_alone_is_in_its_trials_run(workbench: Workbench) -> None:
    workbench.write(steps=(30,), rates=(0.01, 0.02))
    sweep = workbench.folder / "sweep.py"
    sweep.write_text(sweep.read_text().replace(str(JOB), str(JOB.with_name("plain_mlflow_job.py"))))
    done = workbench.run("run", "sweep.py", "--policy", "ahead", "--json", "out.json", "--nodes", "2", "--plain")
    assert done.code == 0, done.output
    (run,) = results(workbench.folder / "out.json")
    for trial in run["trials"]:
        assert trial["final_metric"] == pytest.approx((1 - 2 * trial["params"]["lr"]) ** 60, rel=1e-6)
    assert {len(steps) for steps in workbench.histories().values()} == {30}
    with sqlite3.connect(workbench.folder / ".specon" / "mlflow" / "mlflow.db") as database:
        runs = database.execute("SELECT run_uuid, status FROM runs").fetchall()
        nested = database.execute("SELECT run_uuid FROM tags WHERE key = 'mlflow.parentRunId'").fetchall()
        params = database.execute("SELECT run_uuid, value FROM params WHERE key = 'lr'").fetchall()
    # One parent, and one run for each trial: nothing lies beside them.
    assert len(runs) == 3
    assert {status for _, status in runs} == {"FINISHED"}
    assert len(nested) == len(params) == 2
