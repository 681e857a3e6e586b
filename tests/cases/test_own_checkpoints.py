"""Ordinary scripts without hooks that save themselves and go on, beside some that begin again: each is told truly."""

import json
import signal
import sqlite3
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.workbench import Workbench, results

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
EPOCHS: Final = 16
STAYS: Final = 6
"""The epoch that none begins before the sweep was interrupted."""
GOING_ON: Final = ("same_run", "new_run", "prints")
AGAIN: Final = ("run_again", "prints_again")
TRAIN: Final = """
import argparse, json, pathlib, time
p = argparse.ArgumentParser(); p.add_argument("--kind"); kind = p.parse_args().kind
ck = pathlib.Path(f"{kind}.json")
saves = kind in ("same_run", "new_run", "prints")
state = json.loads(ck.read_text()) if saves and ck.exists() else {"epoch": 0, "run": None}

def train(log, run):
    for epoch in range(state["epoch"], 16):
        while epoch == 6 and not pathlib.Path("go").exists():
            time.sleep(0.1)
        log(1 / (epoch + 1), epoch)
        if saves:
            beside = ck.with_suffix(".new")
            beside.write_text(json.dumps({"epoch": epoch + 1, "run": run}))
            beside.replace(ck)
        # Last of all: the sweep is interrupted as soon as it is seen.
        pathlib.Path(f"{kind}.epoch").write_text(str(epoch))

if kind.startswith("prints"):
    train(lambda loss, epoch: print(f"epoch {epoch} loss {loss:.6f}", flush=True), None)
else:
    import mlflow
    # As TensorFlow's CheckpointManager and MLflow's own way to resume: the id lies in the checkpoint.
    with mlflow.start_run(run_id=state["run"] if kind == "same_run" else None) as run:
        train(lambda loss, epoch: mlflow.log_metric("loss", loss, step=epoch), run.info.run_id)
"""


def command(*kinds: str) -> tuple[str, ...]:
    return (
        "run", "train.py", f"kind={','.join(kinds)}", "--minimize", "loss", "--plain", "--nodes", str(len(kinds)),
        "--cpus-per-node", "0.3", "--json", "out.json",
    )  # fmt: skip


def trained(folder: Path, kind: str) -> int:
    try:
        return int((folder / f"{kind}.epoch").read_text() or 0)
    except (OSError, ValueError):
        return 0


def runs_named_again(folder: Path) -> int:
    with sqlite3.connect(folder / ".specon" / "mlflow" / "mlflow.db") as database:
        return len(database.execute("SELECT 1 FROM runs WHERE name LIKE '%(began again)'").fetchall())


def test_scripts_that_go_on_by_themselves_have_one_history_and_others_begin_again(tmp_path: Path) -> None:
    workbench = Workbench(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    kinds = (*GOING_ON, *AGAIN)
    process = workbench.start(*command(*kinds))
    workbench.wait_for(lambda: all(trained(tmp_path, kind) == STAYS - 1 for kind in kinds), within_s=300)
    process.send_signal(signal.SIGINT)
    stopped, _ = process.communicate(timeout=200)
    assert process.returncode == 130, stopped
    (tmp_path / "go").touch()
    done = workbench.run(*command(*kinds))
    assert done.code == 0, done.output

    (run,) = results(tmp_path / "out.json")
    trials: dict[str, dict[str, Any]] = {trial["params"]["kind"]: trial for trial in run["trials"]}
    assert [round(trials[kind]["final_metric"], 4) for kind in kinds] == [round(1 / EPOCHS, 4)] * len(kinds)
    begun_again = {kind: trials[kind]["begun_again"] for kind in kinds}
    assert begun_again == {**dict.fromkeys(GOING_ON, 0), **dict.fromkeys(AGAIN, 1)}, done.output
    # What goes on is one history, and each training that counts is whole.
    whole = list(range(EPOCHS))
    histories = workbench.histories()
    shown = {kind: histories[f"{workbench.uid}.train.{trials[kind]['id'].rpartition('.')[2]}"] for kind in kinds}
    assert {kind: shown[kind] for kind in ("same_run", "prints", *AGAIN)} == dict.fromkeys(
        ("same_run", "prints", *AGAIN), whole
    )
    assert shown["new_run"] == whole[STAYS:]
    assert runs_named_again(tmp_path) == 1
    # No word says more than is known.
    status = json.loads(workbench.run("status", workbench.newest_run.name, "--json").output)
    told = [line for line in status["warnings"] if "began again" in line]
    assert len(told) == len(AGAIN), status["warnings"]
    assert "keeps no checkpoint" not in stopped + done.output
    at_stake = [line for line in stopped.splitlines() if "is lost" in line]
    assert len(at_stake) == len(kinds), stopped
    assert all("that specon knows of; unless it keeps its own, " in line for line in at_stake)
    assert "is lost" not in done.output
