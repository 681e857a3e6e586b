"""A sweep that is run from Python in a thread that is not the main one, as web backends and notebooks do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SWEEP = """
from hera.workflows import Workflow
from hera_specon import Sweep, choice, minimize
with Workflow(generate_name="s-", entrypoint="s") as w:
    Sweep(name="s", image="x", command=["python", "train.py"], space={"lr": choice(0.1, 0.2)}, search="grid",
          objective=minimize("loss"), retries=0)
"""
TRAIN = """
import argparse
from mlflow_hooks import trial
p = argparse.ArgumentParser(); p.add_argument("--lr", type=float); a = p.parse_args()
with trial() as t:
    for step in t.steps(3):
        t.log(loss=a.lr / (step + 1))
"""
GO = """
import signal, threading
from sweep import w
from hera_specon import run
before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
def work():
    print("best", run(w, nodes=2, cpus_per_node=0.4, live=False).best.params)
thread = threading.Thread(target=work); thread.start(); thread.join()
print("signals", before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)])
"""


@pytest.mark.slow
def test_a_sweep_runs_in_any_thread_and_leaves_the_signals_alone(tmp_path: Path) -> None:
    for name, text in {"sweep": SWEEP, "train": TRAIN, "go": GO}.items():
        (tmp_path / f"{name}.py").write_text(text)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MLFLOW_")}
    env = {**kept, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "go.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=250, check=False)
    assert done.stdout.splitlines()[-2:] == ["best {'lr': 0.1}", "signals True"], done.stderr
