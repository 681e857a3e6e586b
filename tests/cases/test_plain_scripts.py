"""A whole sweep of an ordinary script without hooks, behind a pipe: broken off, gone on with, and told truly."""

import json
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.integration.workbench import Workbench, results

pytestmark = pytest.mark.slow

SWEEP = """
from hera.workflows import Resources, Workflow
from hera_specon import Sweep, choice, minimize

with Workflow(generate_name="plain-", entrypoint="plain") as w:
    Sweep(
        name="plain", image="x", command=["bash", "-c", 'PYTHON train.py "$@" | tee -a log-$SPECON_TRIAL_ID', "sh"],
        space={"width": choice(1, 2, 3), "amp": choice(True)}, search="grid", objective=minimize("loss"), retries=0,
        resources=Resources(cpu_request="50m", memory_request="16Mi"),
    )
"""

TRAIN = """
import argparse, time
import mlflow

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=float)
parser.add_argument("--amp", type=lambda text: text == "true")
args = parser.parse_args()
mlflow.set_experiment("of-the-script" if args.width == 2 else "plain")
with mlflow.start_run(run_name="first"):
    mlflow.log_metric("accuracy", 1.0)
with mlflow.start_run(run_name="second"):
    mlflow.log_params(vars(args))
    with mlflow.start_run(nested=True):
        mlflow.log_param("width", "another")
    for step in range(30):
        mlflow.log_metric("loss", 20 * args.width - step, step=step)
        time.sleep(0.4)
    if args.width == 3:
        raise ValueError("a mistake that the pipe hides")
"""


def counted(folder: Path) -> dict[str, list[int]]:
    """Return the steps of each trial's loss in the runs that count, by the value of ``width`` there."""
    with sqlite3.connect(folder / ".specon" / "mlflow" / "mlflow.db") as database:
        rows = database.execute(
            "SELECT p.value, m.step FROM tags t JOIN metrics m ON m.run_uuid = t.run_uuid AND m.key = 'loss' "
            "JOIN params p ON p.run_uuid = t.run_uuid AND p.key = 'width' "
            "WHERE t.key = 'specon.trial_id' ORDER BY m.step"
        ).fetchall()
    steps: dict[str, list[int]] = {}
    for width, step in rows:
        steps.setdefault(width, []).append(step)
    return steps


def logged(folder: Path) -> int:
    database = folder / ".specon" / "mlflow" / "mlflow.db"
    if not database.exists():
        return 0
    try:
        with sqlite3.connect(database) as opened:
            return len(
                opened.execute("SELECT DISTINCT run_uuid FROM metrics WHERE key = 'loss' AND step > 1").fetchall()
            )
    except sqlite3.OperationalError:
        return 0


def test_a_plain_script_trains_as_in_a_shell_and_what_is_told_of_it_is_true(tmp_path: Path) -> None:
    workbench = Workbench(tmp_path)
    (tmp_path / "sweep.py").write_text(SWEEP.replace("PYTHON", sys.executable))
    (tmp_path / "train.py").write_text(TRAIN)
    command = ("run", "sweep.py", "--plain", "--nodes", "3", "--cpus-per-node", "0.6", "--json", "out.json")
    process = workbench.start(*command)
    workbench.wait_for(lambda: logged(tmp_path) == 3, within_s=400)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=200)
    assert "has saved no checkpoint that specon knows of; unless it keeps its own, what it has trained" in output
    assert ": each begins again unless it keeps its own" in output
    assert "save their state" not in output
    done = workbench.run(*command)
    assert ": each begins again unless it keeps its own" in done.output
    assert "plain.t000 began again from nothing" in done.output
    assert done.output.count("trials log to the experiment 'of-the-script'") == 1
    (run,) = results(tmp_path / "out.json")
    trials = {trial["params"]["width"]: trial for trial in run["trials"]}
    assert {width: trial["succeeded"] for width, trial in trials.items()} == {1: True, 2: True, 3: False}, done.output
    assert {trial["begun_again"] for trial in trials.values()} == {1}
    assert [trials[width]["final_metric"] for width in (1, 2)] == [-9.0, 11.0]
    # What the script logs stays as it is, and nothing of the attempts before counts.
    assert counted(tmp_path) == {f"{width}.0": list(range(30)) for width in (1, 2, 3)}
    status = workbench.run("status", workbench.newest_run.name, "--json")
    assert any("began again from nothing" in line for line in json.loads(status.output)["warnings"])
