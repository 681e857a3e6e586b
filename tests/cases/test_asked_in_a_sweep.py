"""Whole sweeps of ordinary scripts that are paused, or end by signals of their own."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.workbench import Workbench, results

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
EPOCHS: Final = 24
ASKED: Final = """
import argparse, signal, sys, time
p = argparse.ArgumentParser(); p.add_argument("--kind"); a = p.parse_args()
def leave(*_):
    print("asked to stop: saved the model of epoch", epoch, flush=True)
    if a.kind == "zero": sys.exit(0)
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, leave)
for epoch in range(24):
    time.sleep(0.5)
    print(f"epoch {epoch}: loss={1 / (epoch + 1):.4f}", flush=True)
"""
SIGNALS: Final = """
import argparse, os, signal
p = argparse.ArgumentParser(); p.add_argument("--kind"); a = p.parse_args()
print("attempt", flush=True)
print("loss: 1", flush=True)
if a.kind == "term": os.kill(os.getpid(), signal.SIGTERM)
if a.kind == "kill": os.kill(os.getpid(), signal.SIGKILL)
if a.kind == "segv": os.kill(os.getpid(), signal.SIGSEGV)
raise ValueError("x")
"""


def logs(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob(".specon/runs/*/*/logs/*.log"))


def trials(output: Path) -> dict[str, dict[str, Any]]:
    (run,) = results(output)
    return {trial["params"]["kind"]: trial for trial in run["trials"]}


def test_scripts_that_end_with_0_or_an_error_when_paused_wait_and_are_trained_to_their_end(tmp_path: Path) -> None:
    workbench = Workbench(tmp_path)
    (tmp_path / "train.py").write_text(ASKED)
    process = workbench.start(
        "run", "train.py", "kind=zero,error", "--minimize", "loss", "--plain", "--nodes", "2", "--json", "out.json"
    )
    workbench.wait_for(lambda: logs(tmp_path).count("epoch 3: ") == 2)
    name = workbench.newest_run.name
    assert workbench.run("pause", name, "--all").output.count("asked to pause") == 2
    workbench.wait_for(lambda: logs(tmp_path).count("asked to stop") == 2)
    workbench.wait_for(lambda: [row["phase"] for row in told(workbench, name)["trials"]] == ["suspended"] * 2)
    assert process.poll() is None
    workbench.run("resume", name, "--all")
    output, _ = process.communicate(timeout=240)
    ended = trials(tmp_path / "out.json")
    assert process.returncode == 0, output
    assert {kind: (trial["succeeded"], trial["attempts"], trial["begun_again"]) for kind, trial in ended.items()} == {
        "zero": (True, 2, 1),
        "error": (True, 2, 1),
    }
    assert [round(trial["final_metric"], 4) for trial in ended.values()] == [round(1 / EPOCHS, 4)] * 2


def told(workbench: Workbench, name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(workbench.run("status", name, "--json").output)
    return told["policies"][0] if "policies" in told else told


def test_scripts_that_end_by_signals_of_their_own_are_tried_as_often_as_retries_says(tmp_path: Path) -> None:
    workbench = Workbench(tmp_path)
    (tmp_path / "train.py").write_text(SIGNALS)
    done = workbench.run(
        "run", "train.py", "kind=term,kill,segv,error", "--minimize", "loss", "--plain", "--json", "out.json",
        within_s=500,
    )  # fmt: skip
    assert done.code == 1, done.output
    ended = trials(tmp_path / "out.json")
    # As many as the three that are forgiven by default, and two where it crashed alike at once.
    expected = {"term": 4, "kill": 4, "segv": 2, "error": 2}
    assert {kind: trial["attempts"] for kind, trial in ended.items()} == expected
    assert Counter(logs(tmp_path).splitlines())["attempt"] == sum(expected.values())
