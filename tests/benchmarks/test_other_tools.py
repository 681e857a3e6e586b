"""Optuna's and Ray Tune's own ASHA, beside which ours is measured: they train the same configurations, and prune."""

from pathlib import Path

import pytest

from benchmarks.best_model.in_other_tools import TOOLS, OtherTools
from benchmarks.payoff.plan import Task
from controllers.worlds.local.shares import SharesError, choose_shares

pytestmark = [pytest.mark.slow, pytest.mark.pytorch]
SWEEP = """
from hera.workflows import Workflow
from hera_specon import Sweep, log_uniform, minimize

with Workflow(generate_name="best-model-", entrypoint="best-model") as w:
    Sweep(
        name="best-model",
        image="trainer",
        command=["python", "-m", "workflows.jobs.pytorch.tuned"],
        args=["--data=partial-digits", "--schedule=cosine", "--steps=20", "--work=1"],
        space={"lr": log_uniform(1e-4, 0.3)},
        trials=6,
        seed=1,
        objective=minimize("loss"),
    )
"""


@pytest.mark.parametrize("name", ["Optuna's ASHA, eta 2, first rung 16 %", "Ray Tune's ASHA, eta 2, first rung 16 %"])
def test_another_tool_trains_the_configurations_of_a_sweep_and_ends_the_worse_ones_early(
    name: str, tmp_path: Path
) -> None:
    if not TOOLS[name].installed:
        pytest.skip(f"{TOOLS[name].package} is not installed, and no dependency of ours")
    try:
        choose_shares("other-tools-probe").close()
    except SharesError as error:
        pytest.skip(f"CPU cannot be shared out here: {error}")
    (tmp_path / "sweep.py").write_text(SWEEP)
    tools = OtherTools({"best model": tmp_path / "sweep.py"}, workers=2, cores=1.5, folder=tmp_path)
    run, curves = tools.make(Task("local", "best model", 1, name))
    assert len(run.result.trials) == len(curves) == 6
    whole = [one for one in run.result.trials if not one.stopped]
    assert 0 < len(whole) < 6
    assert all(len(curves[one.id]) == 20 for one in whole)
    assert all(10 <= len(curves[one.id]) < 20 for one in run.result.trials if one.stopped)
    assert run.result.makespan_s == max(curve[-1][0] for curve in curves.values())
    assert run.cpu_s > 1
