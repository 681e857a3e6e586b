"""The page of sweeps that look for the best model: what it averages over, and what it sets beside Optuna's ASHA."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.experiments import best_models
from benchmarks.experiments.best_models import ASHA, Ran
from controllers.lab.simulation.evaluation import ExperimentPlan, PolicySummary, RunFigures, run_plans
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT


def figures(makespan_s: float, lost: float = 0.0) -> RunFigures:
    measures = {
        "regret_percent": 10 * lost,
        "lost_over_1_percent": lost,
        "lost_over_5_percent": 0.0,
        "best_value_lost_over_1_percent": lost,
        "within_1_percent_at_s": 40.0,
        "beyond_chance_percent": 3.0,
    }
    return RunFigures(makespan_s, 1.0, 1.0, makespan_s / 100 - 1, 0.0, 1.0, 1.0, 1.0, 1.0, 0, 0, measures)


def test_each_task_counts_once_however_many_sweeps_it_has() -> None:
    runs = (figures(30.0), figures(50.0), figures(80.0))
    one = Ran("promote", runs, (figures(100.0),) * 3, ("a", "a", "b"))
    found = one.over_tasks(lambda run, base: run.makespan_s / base.makespan_s)
    assert found is not None
    assert found.mean == pytest.approx((0.4 + 0.8) / 2)
    assert one.mean(lambda run, base: run.makespan_s / base.makespan_s, ["a"]) == pytest.approx(0.4)


def test_asha_is_chosen_on_one_half_of_the_tasks_and_measured_on_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(plans: list[ExperimentPlan], seeds: range, done: Callable[[int], None]) -> tuple[PolicySummary, ...]:
        done(len(plans))
        (plan,) = plans

        def of(policy: str, seed: int) -> RunFigures:
            if ASHA[0] in policy:  # the shortest, but it loses the best model each time
                return figures(10.0, lost=1.0)
            if ASHA[1] in policy:  # safe on the even tasks only
                return figures(20.0, lost=float(seed % 2))
            return figures({"default": 100.0, ASHA[2]: 50.0}.get(policy.removesuffix("+ahead"), 80.0))

        return tuple(
            PolicySummary(plan.experiment.id, policy, policy, policy == "default", tuple(of(policy, s) for s in seeds))
            for policy in plan.policies
        )

    monkeypatch.setattr(best_models, "run_plans", run)
    monkeypatch.setattr(best_models, "task_names", lambda schedule="": [f"d{n}/{schedule}" for n in range(4)])
    best_models.best_models(tmp_path, range(8), lambda _: None)
    page = (tmp_path / "best-models.md").read_text()
    # Chosen on the even tasks, the second setting loses on the odd ones; chosen on the odd ones, the third is safe.
    row = next(line for line in page.splitlines() if line.startswith("| C1 | `promote:rungs=best`"))
    assert row == "| C1 | `promote:rungs=best` | 0.0 ±0.0 % | 50.0 ±91.9 % | 280.0 ±220.5 % |"
    best_models.with_idle_cores(tmp_path, range(8), lambda _: None)
    page = (tmp_path / "best-models-with-idle-cores.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| C2-spare | `promote:rungs=best+ahead`"))
    assert row == "| C2-spare | `promote:rungs=best+ahead` | 0.0 ±0.0 % | 50.0 ±91.9 % | 280.0 ±220.5 % |"


def test_the_page_is_made_of_what_the_simulator_measures() -> None:
    done: list[int] = []
    summaries = run_plans(
        [ExperimentPlan(EVERY_EXPERIMENT["C1"], ("default", "promote:rungs=fast"))], [0], done.append, 1
    )
    table = best_models._table([Ran(one.policy, one.runs, summaries[0].runs, ("a",)) for one in summaries])
    everything, fast = table.splitlines()[2:]
    assert everything.startswith("| `default` | 100.0 % |")
    assert fast.startswith("| `promote:rungs=fast` | ")
    assert everything.count("|") == fast.count("|") == 8
