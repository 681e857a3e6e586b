"""Sweeps of an ordinary script in one line: it has neither hooks nor a file of a sweep, and prints its loss."""

import sqlite3

import pytest

from tests.integration.workbench import Workbench, results

pytestmark = pytest.mark.slow

TRAIN = """
import argparse, sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
seen = Path(f"seen-{args.rate}")
if args.rate == 2 and not seen.exists():
    seen.touch()
    print("Loss: -99", flush=True)
    sys.exit(1)
if args.rate == 3:
    import mlflow

    with mlflow.start_run():
        mlflow.log_metric("loss", 30.0)
for epoch in range(args.epochs):
    print(f"epoch {epoch}: Loss: {10 * args.rate - epoch:.2f}, accuracy: 0.5")
"""


def test_what_a_script_prints_is_its_objective_unless_it_logs_it(workbench: Workbench) -> None:
    (workbench.folder / "train.py").write_text(TRAIN)
    line = ("run", "train.py", "rate=1,2,3", "epochs=5", "--minimize", "loss", "--save", "sweep.py")

    done = workbench.run(*line, "--json", "out.json", "--plain", "--nodes", "2")

    assert done.code == 0, done.output
    (run,) = results(workbench.folder / "out.json")
    found = {trial["params"]["rate"]: trial["final_metric"] for trial in run["trials"]}
    # The first attempt of the second began again, and the third logs something else.
    assert found == {1: 6.0, 2: 16.0, 3: 30.0}
    assert sorted(workbench.histories().values()) == [[0], list(range(5)), list(range(5))]
    with sqlite3.connect(workbench.folder / ".specon" / "mlflow" / "mlflow.db") as database:
        runs = dict(database.execute("SELECT run_uuid, status FROM runs").fetchall())
        rates = database.execute("SELECT value FROM params WHERE key = 'rate'").fetchall()
    assert (len(runs), set(runs.values())) == (4, {"FINISHED"})
    assert sorted(float(rate) for (rate,) in rates) == [1, 2, 3]


def test_without_an_objective_a_first_trial_tells_what_there_is(workbench: Workbench) -> None:
    (workbench.folder / "train.py").write_text(TRAIN)

    done = workbench.run("run", "train.py", "rate=4,5")

    assert done.code == 2, done.output
    lines = [line.split("#")[0].strip() for line in done.output.splitlines()]
    assert lines[-2:] == [
        "specon run train.py rate=4,5 --minimize Loss",
        "specon run train.py rate=4,5 --maximize accuracy",
    ]
    assert list((workbench.folder / ".specon").iterdir()) == []
