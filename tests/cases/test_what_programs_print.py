"""Whole sweeps of programs that only print: ordinary lines, numbers of other languages, and coloured tables."""

import sqlite3
import sys
from pathlib import Path

import pytest

from tests.integration.workbench import Workbench, results

pytestmark = pytest.mark.slow

LINES = {
    "plain": ["epoch 1 loss 3.0", "epoch 2 loss 0.7", "epoch 5 loss 0.6"],
    "diverged": ["loss: 0.5", "loss: Inf"],
    "thousands": ["loss: 2,000.5", "loss: 1,234.5"],
    "comma": ["loss: 0.95", "loss: 0,81"],
    "table": ["epoch  train_loss  loss", "1      0.9         0.8", "2      0.7         0.75"],
}
TRAIN = f"""
import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--kind")
for line in {LINES!r}[parser.parse_args().kind]:
    print(line)
    time.sleep(0.1)
"""
COLOURED = """
for epoch in range(12):
    better = epoch % 3 != 2
    print(f"      {epoch}  " + (f"\\x1b[36m{1 - epoch / 20}\\x1b[0m" if better else f"{1 - epoch / 20}") + "  0.01")
"""
SWEEP = f"""
from hera.workflows import Workflow
from hera_specon import Sweep, choice, minimize, printed

with Workflow(generate_name="table-", entrypoint="table") as w:
    Sweep(
        name="table", command=[{sys.executable!r}, "coloured.py"], space={{"lr": choice(1)}}, search="grid",
        objective=minimize("valid_loss"), metrics=printed(r"^\\s+(?P<epoch>\\d+)\\s+(?P<valid_loss>\\S+)\\s+\\S+\\s*$"),
    )
"""


def history(folder: Path, metric: str) -> dict[str, list[tuple[int, float]]]:
    """Return the steps and values of each trial, by the only parameter that it has."""
    with sqlite3.connect(folder / ".specon" / "mlflow" / "mlflow.db") as database:
        rows = database.execute(
            "SELECT p.value, m.step, m.value FROM metrics m JOIN params p ON p.run_uuid = m.run_uuid "
            "WHERE m.key = ? ORDER BY m.step, m.timestamp",
            (metric,),
        ).fetchall()
    found: dict[str, list[tuple[int, float]]] = {}
    for name, step, value in rows:
        found.setdefault(name, []).append((step, value))
    return found


def test_a_script_that_prints_its_loss_needs_no_change(workbench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    done = workbench.run(
        *("run", "train.py", f"kind={','.join(LINES)}", "--minimize", "loss", "--plain", "--json", "out.json")
    )
    (run,) = results(tmp_path / "out.json")
    finals = {trial["params"]["kind"]: trial["final_metric"] for trial in run["trials"]}
    assert {kind: finals[kind] for kind in ("plain", "thousands", "comma", "table")} == {
        "plain": 0.6,
        "thousands": 1234.5,
        "comma": 0.95,
        "table": 0.75,
    }, done.output
    assert finals["diverged"] != 0.5, "it is diverged"
    assert done.output.count("'0,81' is no number and counts as none, in the line 'loss: 0,81'") == 1
    steps = history(tmp_path, "loss")
    assert steps["plain"] == [(1, 3.0), (2, 0.7), (5, 0.6)]
    assert steps["table"] == [(1, 0.8), (2, 0.75)]
    assert steps["thousands"] == [(0, 2000.5), (1, 1234.5)]


def test_coloured_rows_of_a_table_count_as_others(workbench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "coloured.py").write_text(COLOURED)
    (tmp_path / "sweep.py").write_text(SWEEP)
    done = workbench.run("run", "sweep.py", "--plain")
    assert [step for step, _ in history(tmp_path, "valid_loss")["1"]] == list(range(12)), done.output
