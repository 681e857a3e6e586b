"""A population that really trains on this machine: the worst go on from the best ones' weights, and MLflow tells it."""

import ast
import json
import sqlite3
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from mlflow_hooks.journal import points_of
from tests.integration.workbench import Workbench

pytestmark = pytest.mark.slow

JOB: Final = Path(__file__).with_name("population_job.py")
STEPS: Final = 60
SWEEP: Final = """
from hera.workflows import Resources, Workflow
from hera_specon import Population, Sweep, log_uniform, minimize, sampler, uniform

with Workflow(generate_name="digits-", entrypoint="digits") as w:
    Sweep(name="digits", image="python:3.11", command=[{python!r}, {job!r}], trials=5, seed=1,
          space={{"lr": log_uniform(1e-4, 1.0), "momentum": uniform(0.0, 0.9)}}, search=sampler("random"),
          policy=Population(perturbation_interval=0.2, quantile=0.25, interval=0.3), objective=minimize("loss"),
          retries=0, grace=10, resources=Resources(cpu_request="100m"))
"""


def test_a_population_ends_with_one_run_for_each_trial_whose_history_has_no_gap(workbench: Workbench) -> None:
    (workbench.folder / "sweep.py").write_text(SWEEP.format(python=sys.executable, job=str(JOB)))
    done = workbench.run("run", "sweep.py", "--plain", "--nodes", "1", "--cpus-per-node", "0.9", "--json", "out.json")
    assert done.code == 0, done.output
    (run,) = json.loads((workbench.folder / "out.json").read_text())["runs"]
    assert all(trial["succeeded"] for trial in run["trials"])
    tags = {name.rpartition(".")[2]: found for name, found in workbench.run_tags().items()}
    lineage = {name: found["specon.lineage"].split(",") for name, found in tags.items() if "specon.lineage" in found}
    assert lineage, done.output
    assert {name: steps for name, steps in workbench.histories().items() if steps != list(range(STEPS))} == {}

    for name, parents in lineage.items():
        assert tags[name]["specon.parent"] == parents[-1]
        folder = next(workbench.newest_run.glob(f"*/state/*.{name}"))
        path = _path(folder)
        came_from = [before for before, after in pairwise(path) if after[0] == name != before[0]]
        assert came_from, path
        assert came_from[-1][0] == parents[-1], (path, parents)
        rates = [(point.step, point.value) for point in points_of(folder) if point.key == "specon.param.lr"]
        assert rates[-1][1] == path[-1][2]
        assert len(rates) == len(parents) + 1
    assert _runs(workbench) == 5
    actions = [json.loads(line) for line in _log(workbench) if '"Clone"' in line]
    assert {one["trial"].rpartition(".")[2] for one in actions if one["outcome"] == "done"} == set(lineage)


def _path(folder: Path) -> list[list[Any]]:
    """Return which trial trained the weights of the newest attempt, from which step on, with which rate."""
    log = next((folder.parent.parent / "logs").glob(f"*{folder.name.rpartition('.')[2]}.log"))
    lines = [line for line in log.read_text().splitlines() if line.startswith("path ")]
    path: list[list[Any]] = ast.literal_eval(lines[-1].removeprefix("path "))
    return path


def _runs(workbench: Workbench) -> int:
    with sqlite3.connect(workbench.folder / ".specon" / "mlflow" / "mlflow.db") as database:
        rows = database.execute("SELECT COUNT(DISTINCT run_uuid) FROM tags WHERE key = 'specon.trial_id'").fetchone()
    return int(rows[0])


def _log(workbench: Workbench) -> list[str]:
    return [line for file in workbench.newest_run.glob("*/*.jsonl") for line in file.read_text().splitlines()]
