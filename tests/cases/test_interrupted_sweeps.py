"""A sweep behind a shell, with workers and with plain variables: Ctrl-C, a changed file, and the same command again."""

import importlib.util
import signal
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.integration.workbench import Workbench

pytestmark = [
    pytest.mark.slow,
    pytest.mark.pytorch,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the pytorch extra"),
]
SWEEPS: Final = """
from hera.workflows import DAG, Resources, Workflow
from hera_specon import Sweep, choice, minimize

SHELL = 'PYTHON train.py "$@"; code=$?; echo ended $code; exit $code'
COMMANDS = {
    "shell": ["sh", "-c", SHELL, "sh"], "pool": ["PYTHON", "pool.py"], "variables": ["PYTHON", "variables.py"],
}
with Workflow(generate_name="s-", entrypoint="main") as w:
    sweeps = [
        Sweep(
            name=name, image="x", command=command, space={"k": choice(0)}, search="grid", objective=minimize("loss"),
            resources=Resources(cpu_request="100m", memory_request="16Mi"), retries=3,
        )
        for name, command in COMMANDS.items()
    ]
    with DAG(name="main"):
        for one in sweeps:
            one()
"""
# However slow the machine is, none comes to its end before all are interrupted.
WAITS: Final = """
import time
def wait(t, begun, step):
    while begun == 0 and step == 5 and not t.stopping: time.sleep(0.02)
"""
COUNTS: Final = """
import json
from pathlib import Path
from mlflow_hooks import trial
class Count:
    n = 0
    def save(self, folder): Path(folder, "n.json").write_text(json.dumps(self.n))
    def load(self, folder): self.n = json.loads(Path(folder, "n.json").read_text())
"""
TRAIN: Final = """
count = Count()
with trial() as t:
    t.track(count)
    begun = t.next_step; print("begins at", begun, count.n, flush=True)
    for step in t.steps(12):
        wait(t, begun, step)
        time.sleep(0.1)
        count.n += 1
        print("did", step, flush=True)
        t.log(loss=1.0 / (step + 1))
"""
POOL: Final = """
from concurrent.futures import ProcessPoolExecutor
def batch(i):
    time.sleep(0.1)
    return i
if __name__ == "__main__":
    count = Count()
    with trial() as t, ProcessPoolExecutor(2) as pool:
        t.track(count)
        begun = t.next_step; print("begins at", begun, count.n, flush=True)
        for step in t.steps(12):
            wait(t, begun, step)
            for _ in range(2):
                list(pool.map(batch, range(2)))
            count.n += 1
            print("did", step, flush=True)
            t.log(loss=1.0 / (step + 1))
"""
# As in many public scripts: the best value is a plain variable beside the loop.
VARIABLES: Final = """
import torch
from mlflow_hooks import trial
from mlflow_hooks.pytorch import torch_state
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = float("inf")
with trial() as t:
    t.track(torch_state(model, optimizer))
    begun = t.next_step; print("begins at", begun, begun, flush=True)
    for step in t.steps(12):
        wait(t, begun, step)
        time.sleep(0.1)
        best = min(best, 12 - step)
        print("did", step, flush=True)
        t.log(loss=best)
"""
NAMES: Final = ("shell", "pool", "variables")


def said(folder: Path, name: str) -> str:
    return "".join(path.read_text() for path in folder.rglob(f"*.{name}.t000.log"))


def lines(folder: Path, name: str, beginning: str) -> list[str]:
    return [
        line.removeprefix(beginning).strip()
        for line in said(folder, name).splitlines()
        if line.startswith(f"{beginning} ")
    ]


def test_an_interrupted_sweep_loses_no_step_and_a_changed_file_drops_nothing(workbench: Workbench) -> None:
    folder = workbench.folder
    sweeps = SWEEPS.replace("PYTHON", sys.executable)
    scripts = {"train": COUNTS + TRAIN, "pool": COUNTS + POOL, "variables": VARIABLES}
    (folder / "sweep.py").write_text(sweeps)
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(WAITS + text)
    command = ("run", "sweep.py", "--plain", "--policy", "default", "--nodes", "2", "--cpus-per-node", "0.6")
    process = workbench.start(*command)
    workbench.wait_for(lambda: all("did 4" in said(folder, name) for name in NAMES), within_s=400)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=200)
    assert all(f"{name}.t000 goes on at step" in output for name in NAMES), output

    (folder / "sweep.py").write_text(sweeps.replace("choice(0)", "choice(0, 1)"))
    changed = workbench.run(*command)
    assert changed.code == 2, changed.output
    assert "was cut short, and sweep.py has been changed since" in changed.output
    assert "--extend" in changed.output

    (folder / "sweep.py").write_text(sweeps)
    done = workbench.run(*command)
    assert done.code == 0, done.output
    for name in NAMES:
        (began, again), steps = lines(folder, name, "begins at"), lines(folder, name, "did")
        assert steps == [str(step) for step in range(12)], name
        assert began == "0 0"
        first, count = again.split()
        assert int(first) == int(count) > 4, name
    assert said(folder, "variables").count("plain variables of the script") == 1
    assert "plain variables" not in said(folder, "shell")
