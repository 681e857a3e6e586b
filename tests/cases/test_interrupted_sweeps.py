"""A sweep behind a shell, with workers and with plain variables: Ctrl-C, a changed file, and the same command again."""

import importlib.util
import signal
import sys
from pathlib import Path
from typing import Final

import pytest

from controllers.record.forecasts import FORECASTS_FILE, read_forecasts
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
COUNTS: Final = """
import json, time
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
    print("begins at", t.next_step, count.n, flush=True)
    for step in t.steps(24):
        time.sleep(0.8)  # as for a GPU: hardly any CPU of ours
        count.n += 1
        print("did", step, flush=True)
        t.log(loss=1.0 / (step + 1))
"""
POOL: Final = """
from concurrent.futures import ProcessPoolExecutor
def batch(i):
    time.sleep(0.2)
    return i
if __name__ == "__main__":
    count = Count()
    with trial() as t, ProcessPoolExecutor(2) as pool:
        t.track(count)
        print("begins at", t.next_step, count.n, flush=True)
        for step in t.steps(24):
            for _ in range(4):
                list(pool.map(batch, range(2)))
            count.n += 1
            print("did", step, flush=True)
            t.log(loss=1.0 / (step + 1))
"""
# As in many public scripts: the best value is a plain variable beside the loop.
VARIABLES: Final = """
import time
import torch
from mlflow_hooks import trial
from mlflow_hooks.pytorch import torch_state
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = float("inf")
with trial() as t:
    t.track(torch_state(model, optimizer))
    print("begins at", t.next_step, t.next_step, flush=True)
    for step in t.steps(24):
        time.sleep(0.8)
        best = min(best, 24 - step)
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
    texts = {"sweep": sweeps, "train": COUNTS + TRAIN, "pool": COUNTS + POOL, "variables": VARIABLES}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
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
        assert steps == [str(step) for step in range(24)], name
        assert began == "0 0"
        first, count = again.split()
        assert int(first) == int(count) > 4, name
    assert said(folder, "variables").count("plain variables of the script") == 1
    assert "plain variables" not in said(folder, "shell")
    assert_trials_that_wait_were_foreseen(workbench.newest_run)


def assert_trials_that_wait_were_foreseen(run: Path) -> None:
    """Check that no forecast told of an end at once, while each trial had steps of 0.8 s to go."""
    (file,) = run.rglob(FORECASTS_FILE)
    told = [one for one in read_forecasts(file) if one.end is not None]
    assert told
    over = max(one.at for one in told)
    early = [one for one in told if one.at < over - 5]
    assert early
    assert all(one.end is not None and one.end.high > one.at + 1 for one in early)
