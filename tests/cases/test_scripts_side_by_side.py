"""One run of ordinary scripts that end oddly, log oddly or share files: each comes to what it comes to by hand."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROOT: Final = Path(__file__).parents[2]
SWEEPS: Final = """
print("loading the sweep")
from hera.workflows import DAG, Resources, Workflow
from hera_specon import Sweep, choice, minimize

def sweep(name, values, command=None, retries=0):
    return Sweep(
        name=name, image="x", command=command or ["python", f"{name}.py"], space={"x": choice(*values)}, search="grid",
        objective=minimize("loss"), retries=retries, resources=Resources(cpu_request="100m", memory_request="16Mi"),
    )

with Workflow(generate_name="s-", entrypoint="main") as w:
    sweeps = [
        sweep("licence", [1], retries=2),
        sweep("streams", [1]),
        sweep("tee", [1, 2], ["bash", "-c", 'python tee.py "$@" | tee -a tee.txt', "sh"], retries=1),
        sweep("truth", [True, False]),
        sweep("chance", [1, 2]),
        sweep("saves", [1, 2]),
    ]
    with DAG(name="main"):
        for one in sweeps:
            one()
"""
SCRIPTS: Final = {
    # EX_TEMPFAIL of sysexits.h
    "licence": "import sys; print('no licence left, try later'); sys.exit(75)",
    "streams": """
import sys
from mlflow_hooks import trial
with trial() as t:
    for step in t.steps(3): t.log(loss=step)
sys.stderr.close()
""",
    "tee": """
import sys
from mlflow_hooks import trial
with trial() as t:
    for step in t.steps(6):
        t.log(loss=6 - step)
        if step == 3 and "--x=2" in sys.argv: raise ValueError("a mistake at step 3")
""",
    "truth": """
import argparse
from mlflow_hooks import trial
p = argparse.ArgumentParser(); p.add_argument("--x", type=bool, default=False); a = p.parse_args()
with trial() as t:
    for step in t.steps(2): t.log(loss=1.0 if a.x else 2.0)
""",
    "chance": """
import random
import numpy as np
from mlflow_hooks import trial
print("drew", np.random.rand(), random.random(), np.random.default_rng().random())
with trial() as t:
    for step in t.steps(2): t.log(loss=np.random.rand())
""",
    "saves": """
import time
from pathlib import Path
from mlflow_hooks import trial
best = Path("best.txt")
with trial() as t:
    for step in t.steps(4):
        best.write_text(str(t.params["x"]))
        time.sleep(0.5)
        t.log(loss=int(best.read_text() or 0))  # the other may be about to write it
""",
}


@dataclass(frozen=True)
class Done:
    """What a run printed, and what it came to."""

    code: int
    out: str
    err: str
    folder: Path

    def trials(self, sweep: str) -> list[dict[str, Any]]:
        (run,) = json.loads(self.out)["runs"]
        return [trial for trial in run["trials"] if trial["id"].startswith(f"{sweep}.")]

    def logs(self, sweep: str) -> list[str]:
        return [path.read_text() for path in sorted(self.folder.rglob(f"*.{sweep}.t*.log"))]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("project")
    (folder / "sweep.py").write_text(SWEEPS)
    for name, text in SCRIPTS.items():
        (folder / f"{name}.py").write_text(text)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MLFLOW_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        [sys.executable, "-m", "hera_specon.cli", "run", "sweep.py", "--plain", "--policy", "default", "--json", "-"],
        cwd=folder,
        env={**kept, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    return Done(ended.returncode, ended.stdout, ended.stderr, folder / ".specon")


def test_a_sweep_that_prints_leaves_standard_output_to_the_json(done: Done) -> None:
    assert len(json.loads(done.out)["runs"]) == 1, done.err
    assert "loading the sweep" in done.err
    assert done.code == 1


def test_a_script_that_exits_with_75_by_itself_fails_after_a_few_attempts_and_is_told(done: Done) -> None:
    (trial,) = done.trials("licence")
    assert not trial["succeeded"]
    assert done.logs("licence")[0].count("no licence left") == trial["attempts"] <= 6
    assert "licence.t000 failed under default with exit code 75: no licence left, try later" in done.err


def test_a_script_that_closes_a_stream_at_its_end_has_succeeded(done: Done) -> None:
    assert [trial["succeeded"] for trial in done.trials("streams")] == [True]


def test_a_crash_behind_a_pipe_is_retried_and_a_failure(done: Done) -> None:
    assert [(trial["succeeded"], trial["attempts"]) for trial in done.trials("tee")] == [(True, 1), (False, 2)]
    assert "tee.t001 failed under default" in done.err


def test_a_truth_value_that_the_script_takes_for_another_is_told_before_the_start(done: Done) -> None:
    assert [trial["final_metric"] for trial in done.trials("truth")] == [1.0, 1.0]
    told, started = done.err.find("is passed as --x=true or --x=false"), done.err.find("succeeded")
    assert 0 <= told < started


def test_trials_that_draw_without_a_seed_draw_other_numbers(done: Done) -> None:
    first, second = (log.splitlines()[0].split()[1:] for log in done.logs("chance"))
    assert len(first) == len(second) == 3
    assert not set(first) & set(second)


def test_trials_that_save_under_one_name_are_warned_of(done: Done) -> None:
    assert "saves.t000, saves.t001" in done.err
    assert f"{done.folder.parent / 'best.txt'}" in done.err
    assert "tee.txt" not in done.err
