"""A sweep is started wherever its user is: in another environment, behind a proxy, inside another job."""

import json
import os
import queue
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

SPECON = Path(sys.executable).with_name("specon")
SWEEP = """
from hera.workflows import Workflow
from hera_specon import Sweep, choice, minimize

with Workflow(generate_name="c-", entrypoint="c") as w:
    Sweep(name="c", image="x:1", command=["python", "train.py"], space={"x": choice(1)}, search="grid",
          objective=minimize("loss"), env={"GIVEN": "by the sweep"})
"""
TRAIN = """
import json, os, sys
import mlflow
import controllers.mine
import queue
try: import my_library
except ImportError: my_library = None
said = {"prefix": sys.prefix, "controllers": controllers.mine.NAME, "queue": getattr(queue, "NAME", "")}
said["library"] = getattr(my_library, "NAME", "")
said |= {name: os.environ.get(name, "") for name in ("GIVEN", "RANK", "WORLD_SIZE", "MASTER_ADDR", "NO_PROXY")}
said["slurm"] = json.dumps({name: value for name, value in os.environ.items() if name.startswith("SLURM_")})
open("said.json", "w").write(json.dumps(said))
mlflow.log_metric("loss", 1.0)
"""


def started(folder: Path, words: Sequence[str] = (), **env: str) -> tuple[int, str, dict[str, str]]:
    """Run a sweep of one trial in a folder, and return the exit code, what was printed, and what the trial saw."""
    (folder / "sweep.py").write_text(SWEEP)
    (folder / "train.py").write_text(TRAIN)
    (folder / "controllers").mkdir()
    (folder / "controllers" / "__init__.py").write_text("")
    (folder / "controllers" / "mine.py").write_text("NAME = 'mine'")
    whole = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"} | env
    done = subprocess.run(
        [SPECON, "run", "sweep.py", "--plain", "--policy", "default", "--nodes", "1", "--cpus-per-node", "1", *words],
        cwd=folder,
        env=whole,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    said = folder / "said.json"
    return done.returncode, done.stdout + done.stderr, json.loads(said.read_text()) if said.exists() else {}


@pytest.mark.slow
def test_neither_a_proxy_nor_another_job_nor_the_users_own_modules_get_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "a project? 100%20 & #1"
    folder.mkdir()
    # It hides a module of Python from every library of a script beside it, as by hand, but from nothing of ours.
    (folder / "queue.py").write_text(Path(queue.__file__).read_text(encoding="utf-8") + "NAME = 'mine'\n")
    library = tmp_path / "library"
    (library / "controllers").mkdir(parents=True)
    (library / "controllers" / "__init__.py").write_text("raise ImportError('not ours')")
    code, told, said = started(
        folder,
        http_proxy="http://127.0.0.1:9",
        HTTP_PROXY="http://127.0.0.1:9",
        NO_PROXY="example.org",
        RANK="1",
        WORLD_SIZE="2",
        MASTER_ADDR="elsewhere",
        MLFLOW_RUN_ID="of-another-job",
        SPECON_TRIAL_ID="other",
        PYTHONPATH=str(library),
    )
    assert code == 0, told
    assert said["controllers"] == said["queue"] == "mine"
    assert (said["GIVEN"], said["NO_PROXY"]) == ("by the sweep", "example.org,127.0.0.1,localhost")
    assert [said[name] for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR")] == ["", "", ""]


@pytest.mark.slow
def test_a_trial_trains_in_the_environment_that_is_active(tmp_path: Path) -> None:
    project = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", project], check=True)
    ours = next(entry for entry in sys.path if entry.endswith("site-packages"))
    installed = next(project.glob("lib/python*/site-packages"))
    (installed / "ours.pth").write_text(ours)
    (installed / "my_library.py").write_text("NAME = 'of the project only'")
    path = f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}"
    code, told, said = started(tmp_path, PATH=path, VIRTUAL_ENV=str(project))
    assert code == 0, told
    assert (said["prefix"], said["library"]) == (str(project), "of the project only")
    assert f"python means {project / 'bin' / 'python'}" in told


@pytest.mark.slow
def test_inside_an_allocation_a_trial_has_what_was_let_through_and_nothing_else_of_it(tmp_path: Path) -> None:
    allocation = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "CUDA_VISIBLE_DEVICES": ""}
    code, told, said = started(tmp_path, ["--inherit", "SLURM_JOB_ID"], **allocation)
    assert code == 0, told
    assert json.loads(said["slurm"]) == {"SLURM_JOB_ID": "7"}
