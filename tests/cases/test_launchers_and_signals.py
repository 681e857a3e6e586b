"""A trial that is asked to leave saves and goes on at its next step, whatever has launched its program."""

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from controllers.core.actions import Migrate, Suspend
from controllers.core.model import NodeName, Phase
from tests.cases.local_trials import LocalTrial

HOOKED = """
import json, sys, time
from pathlib import Path
from mlflow_hooks import trial
class Count:
    n = 0
    def save(self, folder): Path(folder, "n").write_text(str(self.n))
    def load(self, folder): self.n = int(Path(folder, "n").read_text())
def train(step): time.sleep(0.1)
def main():
    count = Count()
    with trial() as t:
        t.track(count)
        first = t.next_step == 0
        print("begins at", t.next_step, flush=True)
        for step in t.steps(16):
            while first and step == 3 and Path("waits").exists() and not t.stopping: time.sleep(0.02)
            train(step)
            count.n += 1
            print("did", step, flush=True)
            t.log(loss=1 / (step + 1))
"""
"""Where a file says so, it waits to be asked: on a busy machine it would come to its end before."""
MAIN = 'if __name__ == "__main__": main()\n'
POOLS = {
    "a pool of executors": """
from concurrent.futures import ProcessPoolExecutor
def nap(_): time.sleep(0.05)
def train(step):
    global pool
    if not step or "pool" not in globals(): pool = ProcessPoolExecutor(2)
    list(pool.map(nap, range(4)))
""",
    "a pool of multiprocessing": """
import multiprocessing
def nap(_): time.sleep(0.05)
def train(step):
    global pool
    if "pool" not in globals(): pool = multiprocessing.get_context("spawn").Pool(2)
    pool.map(nap, range(4))
""",
    "a child that must not fail": """
import subprocess
def train(step): subprocess.run(["sleep", "0.1"], check=True)
""",
}
# Programs of other languages know no hooks: they keep to the contract.
PLAIN = """
import signal, sys, time
from pathlib import Path
state = Path("plain-step")
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
first = not state.exists()
step = 0 if first else int(state.read_text())
print("begins at", step, flush=True)
while step < 16:
    while first and step == 3 and not asked: time.sleep(0.02)
    time.sleep(0.1)
    print("did", step, flush=True)
    step += 1
    if asked:
        time.sleep(0.5)
        state.write_text(str(step))
        sys.exit(75)
"""
WRAPPER = """
import subprocess, sys
print("wraps", flush=True)
subprocess.run([sys.executable, *sys.argv[1:]], check=True)
"""
HASTY = """
import signal, subprocess, sys
child = subprocess.Popen([sys.executable, *sys.argv[1:]])
def forward(number, frame):
    child.send_signal(number)
    sys.exit(1)
signal.signal(signal.SIGTERM, forward)
sys.exit(child.wait())
"""
LAUNCHERS = {
    "nothing": "{python} train.py",
    "a shell that tells the code": 'sh -c "{python} train.py; code=$?; echo ended $code; exit $code"',
    "a shell that goes on": 'sh -c "{python} train.py; echo the shell goes on"',
    "a shell that cleans up": "bash -c \"trap 'echo cleaned up' EXIT; {python} train.py; exit $?\"",
    "a shell that waits": 'sh -c "{python} train.py & wait"',
    "a shell in a shell": "bash -c \"true; sh -c '{python} train.py; exit $?'; exit $?\"",
    "a pipe": 'bash -c "{python} train.py | tee log.txt"',
    "a session of its own": 'sh -c "setsid {python} train.py; exit $?"',
    "timeout": "timeout 100 {python} train.py",
    "a wrapper": "{python} wrapper.py train.py",
    "a hasty wrapper": "{python} hasty.py train.py",
    "a script": "./run.sh",
}


def some_of_them(*quick: str) -> list[ParameterSet]:
    """Return all launchers; each sweep takes seconds, so only the ``quick`` ones are tried each time."""
    slow = {name: [] if name in quick else [pytest.mark.slow] for name in LAUNCHERS}
    return [pytest.param(command, id=name, marks=slow[name]) for name, command in LAUNCHERS.items()]


def split(text: str) -> list[str]:
    return shlex.split(text.format(python=sys.executable))


def moved(trial: LocalTrial) -> list[int]:
    """Move the trial once it has made two steps, and return where its attempts began."""
    trial.until_said("did 2")
    target = next(node for node in ("node-1", "node-2") if node != trial.trial.nodes[0])
    assert trial.world.apply(Migrate(trial.trial.id, (NodeName(target),))).done
    trial.drive(lambda: trial.world.finished)
    return [int(step) for step in trial.lines("begins at")]


def assert_went_on(trial: LocalTrial) -> None:
    first, second = moved(trial)
    done = [int(step) for step in trial.lines("did")]
    assert (first, second) == (0, done.index(second))
    assert second > 2
    assert done == list(range(16))
    assert (trial.job.phase, trial.job.failures, trial.job.moves) == (Phase.SUCCEEDED, 0, 1)


def prepare(folder: Path, program: str, *, waits: bool = True) -> None:
    (folder / "train.py").write_text(program)
    if waits:
        (folder / "waits").touch()
    (folder / "wrapper.py").write_text(WRAPPER)
    (folder / "hasty.py").write_text(HASTY)
    (folder / "run.sh").write_text(f"#!/bin/sh\n{sys.executable} train.py\necho the script goes on\n")
    (folder / "run.sh").chmod(0o755)


@pytest.mark.parametrize("launcher", some_of_them("nothing", "a shell that tells the code", "a pipe", "a wrapper"))
def test_a_program_with_hooks_saves_behind(local_trial: LocalTrial, launcher: str) -> None:
    prepare(local_trial.folder, HOOKED + MAIN)
    assert_went_on(local_trial.start(split(launcher)))


@pytest.mark.parametrize("launcher", some_of_them("a shell that goes on", "a hasty wrapper", "a wrapper"))
def test_a_program_without_hooks_saves_behind(local_trial: LocalTrial, launcher: str) -> None:
    prepare(local_trial.folder, PLAIN)
    assert_went_on(local_trial.start(split(launcher)))


@pytest.mark.parametrize("pool", POOLS.values(), ids=list(POOLS))
def test_workers_live_until_their_program_has_saved(local_trial: LocalTrial, pool: str) -> None:
    prepare(local_trial.folder, HOOKED + pool + MAIN)
    assert_went_on(local_trial.start(split(LAUNCHERS["nothing"])))


def test_a_stopped_program_behind_a_shell_goes_on_to_save(local_trial: LocalTrial) -> None:
    prepare(local_trial.folder, HOOKED + MAIN)
    trial = local_trial.start(split(LAUNCHERS["a pipe"]), kind="pacer")
    trial.until_said("did 2")
    assert trial.world.apply(Suspend(trial.trial.id)).done
    trial.drive(lambda: trial.trial.phase is Phase.SUSPENDED)
    newest = max(int(step) for step in trial.lines("did"))
    manifests = list(trial.folder.glob("state/*/checkpoints/*/manifest.json"))
    assert max(json.loads(path.read_text())["step"] for path in manifests) == newest + 1


@pytest.mark.parametrize(
    "end",
    ["raise ValueError('a mistake')", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "sys.exit(3)"],
    ids=["an exception", "a kill", "an exit code"],
)
def test_a_failure_behind_a_pipe_is_no_success(local_trial: LocalTrial, end: str) -> None:
    prepare(local_trial.folder, HOOKED + f"\ndef train(step):\n    if step == 3: {end}\n" + MAIN, waits=False)
    trial = local_trial.start(split(LAUNCHERS["a pipe"]))
    trial.drive(lambda: trial.world.finished)
    assert (trial.job.phase, trial.job.failures) == (Phase.FAILED, 1)
    assert trial.job.exit_code != 0


@pytest.mark.parametrize("launcher", ["nothing", "a pipe", "a shell that goes on"])
def test_a_training_that_comes_to_its_end_is_a_success_behind(local_trial: LocalTrial, launcher: str) -> None:
    prepare(local_trial.folder, HOOKED + "\ndef train(step): pass\n" + MAIN, waits=False)
    trial = local_trial.start(split(LAUNCHERS[launcher]))
    trial.drive(lambda: trial.world.finished)
    assert (trial.job.phase, trial.job.attempt) == (Phase.SUCCEEDED, 1)


@pytest.mark.slow
@pytest.mark.pytorch
@pytest.mark.parametrize("program", ["torchrun", "uv"])
def test_a_program_with_hooks_saves_behind_a_real_launcher(local_trial: LocalTrial, program: str) -> None:
    here = Path(sys.executable).with_name(program)
    found = str(here) if here.exists() else shutil.which(program)
    if found is None:
        pytest.skip(f"there is no {program}")
    words = ["--standalone", "--nproc-per-node=1"] if program == "torchrun" else ["run", "--no-project", sys.executable]
    prepare(local_trial.folder, HOOKED + MAIN)
    assert_went_on(local_trial.start([found, *words, "train.py"]))
