"""Whole sweeps of programs in other languages, which print their metrics: of a shell with awk, and of C."""

import shutil
import sqlite3
import subprocess
import textwrap
from pathlib import Path

import pytest

from controllers.record.timeline import read_timeline
from tests.integration.workbench import Workbench, results

pytestmark = pytest.mark.slow

EPOCHS = 200
COMPILER = shutil.which("gcc")
SWEEP = """
from hera.workflows import Resources, Workflow
from hera_specon import Sweep, choice, minimize, printed, printed_json

with Workflow(generate_name="other-", entrypoint="other") as w:
    Sweep(
        name="other",
        image="none:1",
        command={command},
        space={{"lr": choice(1, 2)}},
        search="grid",
        objective=minimize("val_loss"),
        metrics={metrics},
        resources=Resources(cpu_request="50m", memory_request="16Mi"),
        grace=10,
    )
"""
SHELL = r"""#!/bin/sh
lr=${1#--lr=}
i=0
saved=$SPECON_TRIAL_FOLDER/saved
[ -f "$saved" ] && i=$(cat "$saved")
trap 'echo $i > "$saved"; exit 75' TERM
while [ $i -lt 200 ]; do
  awk "BEGIN { printf \"epoch %d of 200: val_loss=%.2f, acc=%g\n\", $i, $lr * 100 - $i, $i / 200 }"
  i=$((i+1))
  sleep 0.1
done
"""
C = r"""
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    double lr = atof(strchr(argv[1], '=') + 1);
    for (int step = 0; step < 20; step++)
        printf("{\"step\": %d, \"val_loss\": %g, \"eval\": {\"acc\": %g}}\n",
               step, lr * 100 - step, step == 3 ? NAN : 1.0);
    return 0;
}
"""


def write(bench: Workbench, command: list[str], metrics: str) -> None:
    (bench.folder / "sweep.py").write_text(SWEEP.format(command=command, metrics=metrics))


def histories(bench: Workbench, key: str) -> list[list[tuple[int, float]]]:
    """Return the steps and values of a metric of each run that is finished and nested under another."""
    with sqlite3.connect(bench.folder / ".specon" / "mlflow" / "mlflow.db") as database:
        rows = database.execute(
            "SELECT r.run_uuid, m.step, m.value FROM metrics m JOIN runs r ON r.run_uuid = m.run_uuid "
            "JOIN tags t ON t.run_uuid = r.run_uuid AND t.key = 'mlflow.parentRunId' "
            "WHERE m.key = ? AND r.status = 'FINISHED' ORDER BY r.run_uuid, m.step",
            (key,),
        ).fetchall()
    found: dict[str, list[tuple[int, float]]] = {}
    for run, step, value in rows:
        found.setdefault(run, []).append((step, value))
    return sorted(found.values(), key=lambda history: history[0][1])


def test_a_shell_script_is_seen_while_it_runs_paused_and_goes_on_with_one_history(workbench: Workbench) -> None:
    (workbench.folder / "train.sh").write_text(SHELL)
    form = r"""printed(r"epoch (?P<epoch>\d+) of .*val_loss=(?P<val_loss>[-0-9.]+), acc=(?P<acc>\S+)")"""
    write(workbench, ["sh", "train.sh"], form)
    running = workbench.start("run", "sweep.py", "--policy", "default", "--plain", "--json", "out.json")
    workbench.wait_for(lambda: workbench.steps_journalled() > 20)
    paused = workbench.run("pause", workbench.newest_run.name, "other.t000")
    assert paused.code == 0, paused.output
    timeline = next(workbench.newest_run.glob("*/timeline.jsonl"))
    workbench.wait_for(lambda: any(event.phase == "suspended" for event in read_timeline(timeline)))
    resumed = workbench.run("resume", workbench.newest_run.name, "--all")
    assert resumed.code == 0, resumed.output
    output, _ = running.communicate(timeout=200)
    assert running.returncode == 0, output
    first, second = histories(workbench, "val_loss")
    assert first == [(step, 100.0 - step) for step in range(EPOCHS)]
    assert second == [(step, 200.0 - step) for step in range(EPOCHS)]
    assert [len(history) for history in histories(workbench, "acc")] == [EPOCHS, EPOCHS]
    (run,) = results(workbench.folder / "out.json")
    assert {trial["params"]["lr"]: trial["final_metric"] for trial in run["trials"]} == {1: -99.0, 2: 1.0}
    (trial,) = (trial for trial in run["trials"] if trial["id"] == "other.t000")
    assert (trial["suspensions"], trial["begun_again"]) == (1, 0), output


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_a_program_of_c_prints_json(workbench: Workbench) -> None:
    source = workbench.folder / "train.c"
    source.write_text(textwrap.dedent(C))
    subprocess.run([COMPILER or "", "-o", str(workbench.folder / "train"), str(source)], check=True)
    write(workbench, ["./train"], 'printed_json("val_loss", "eval.acc", step="step")')
    done = workbench.run("run", "sweep.py", "--plain")
    assert done.code == 0, done.output
    assert histories(workbench, "val_loss") == [[(step, lr * 100.0 - step) for step in range(20)] for lr in (1, 2)]
    assert [len(history) for history in histories(workbench, "eval.acc")] == [20, 20], "NaN is a value, too"


def test_a_sweep_without_a_line_that_matched_ends_with_the_last_lines(workbench: Workbench) -> None:
    write(workbench, ["sh", "-c", "for i in 1 2 3 4 5 6 7; do echo Verlust $i; done"], 'printed("(?P<val_loss>nie)")')
    done = workbench.run("run", "sweep.py", "--plain", "--yes")
    assert done.code == 1, done.output
    assert "no trial of other logged its objective 'val_loss'" in done.output
    assert "    Verlust 6\n    Verlust 7\n" in done.output
    assert "Verlust 2\n" not in done.output
    assert_no_folder_of_pods(workbench.folder)


def assert_no_folder_of_pods(folder: Path) -> None:
    assert not [path for path in folder.rglob("*") if "specon-python" in path.name]
