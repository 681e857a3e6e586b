"""Sweeps of several objectives that really run: the front at the end, in the results, in MLflow, and on the page."""

import json
import sys
from typing import Any, Final

import pytest

from controllers.core.aims import pareto_front
from hera_specon import load
from hera_specon.running import NoModelError
from tests.integration.workbench import Workbench

pytestmark = pytest.mark.slow

_SWEEP: Final = """
from hera.workflows import Resources, Workflow
from hera_specon import Sweep, maximize, minimize, sampler, subject_to, uniform

with Workflow(generate_name="pair-", entrypoint="pair") as w:
    Sweep(name="pair", image="python:3.11", command=[{python!r}, "train.py"], space={{"x": uniform(-10, 10)}},
          trials={trials}, search={search}, objectives=[minimize("loss"), maximize("speed")],
          constraints=[subject_to("memory_mb", "<=", 90)], retries=0, resources=Resources(cpu_request="100m"))
"""
_HOOKS: Final = """
import argparse
from mlflow_hooks import trial
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_args().x
with trial() as t:
    for step in t.steps(3):
        t.log(loss=x * x + 2 - step)
    # These come once, after the last report of the loss.
    t.log(speed=-(x - 5) ** 2, memory_mb=100 if x > 4 else 50)
"""
_PLAIN: Final = """
import argparse, mlflow
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_args().x
for step in range(3):
    mlflow.log_metric("loss", x * x + 2 - step, step=step)
mlflow.log_metrics({"speed": -(x - 5) ** 2, "memory_mb": 100 if x > 4 else 50})
"""


def _expected(trials: list[dict[str, Any]]) -> set[str]:
    """Return the front by what the script computes, not by what was logged."""
    kept = [trial for trial in trials if trial["params"]["x"] <= 4]
    losses = [(trial["params"]["x"] ** 2, (trial["params"]["x"] - 5) ** 2) for trial in kept]
    return {kept[place]["id"] for place in pareto_front(losses)}


@pytest.mark.parametrize(
    ("script", "search", "trials"),
    [(_HOOKS, 'sampler("NSGAIISampler", population_size=3)', 6), (_PLAIN, '"random"', 4)],
    ids=["hooks-nsga2", "plain-random"],
)
def test_a_sweep_of_two_objectives_ends_with_its_front_everywhere(
    workbench: Workbench, script: str, search: str, trials: int
) -> None:
    (workbench.folder / "sweep.py").write_text(_SWEEP.format(python=sys.executable, search=search, trials=trials))
    (workbench.folder / "train.py").write_text(script)
    cores = ("--nodes", "1", "--cpus-per-node", "0.8", "--jobs", "2")
    done = workbench.run("run", "sweep.py", "--plain", *cores, "--json", "out.json")
    assert done.code == 0, done.output
    (run,) = json.loads((workbench.folder / "out.json").read_text())["runs"]
    expected = _expected(run["trials"])
    assert expected
    assert set(run["front"]["pair"]) == expected
    assert run["best"] == {}
    assert "sweep pair has several objectives" in done.output
    assert f"The Pareto front: {len(expected)} trials" in done.output

    outcome = load(state_dir=workbench.folder / ".specon")
    assert {trial.id for trial in outcome.front} == expected
    with pytest.raises(NoModelError, match="front"):
        _ = outcome.best

    marked = {trial for trial, tags in workbench.run_tags().items() if "specon.on_front" in tags}
    assert {trial.partition(".")[2] for trial in marked} == expected

    status = json.loads(workbench.run("status", "--json").output)
    assert set(status["front"]["pair"]) == expected
    page = next(workbench.folder.glob(".specon/runs/*/report.html")).read_text()
    assert "<h2>The Pareto front</h2>" in page
    assert "memory_mb &lt;= 90" in page
