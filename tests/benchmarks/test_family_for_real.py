"""The comparisons of the family for real: each sweep asks for what its measures look at, and every column is filled."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.family_for_real.comparisons import COMPARISONS, Comparison
from benchmarks.family_for_real.measures import asked_direction, asked_goals, measured
from controllers.core.goals import AskedGoals
from controllers.core.model import Direction
from controllers.policies.registry import parse_policy
from controllers.worlds.local.jobs import JobLedger, LocalJob, save_ledger
from controllers.worlds.local.workflow import read_workflow
from hera_specon.workflow_file import load_workflow
from tests.hera_specon.report.example_run import write_example_run

EACH = pytest.mark.parametrize("comparison", COMPARISONS.values(), ids=list(COMPARISONS))
GOALS: dict[str, Callable[[AskedGoals], float | None]] = {
    "deadlines met": lambda asked: asked.deadline_s,
    "time to target": lambda asked: asked.target,
    "within 10 %": lambda asked: asked.seconds_per_step,
}


@EACH
def test_every_trial_has_the_goals_that_its_measures_look_at(comparison: Comparison) -> None:
    goals = asked_goals(comparison.file)
    assert len(goals) >= 6
    assert asked_direction(comparison.file) is Direction.MINIMIZE
    for measure, goal in GOALS.items():
        assert {goal(asked) is not None for asked in goals.values()} == {measure in comparison.measures}


@EACH
def test_the_first_policy_is_the_baseline_and_all_are_known(comparison: Comparison) -> None:
    names = [parse_policy(policy).name for policy in comparison.policies]
    assert names[0] == "default"
    assert len(set(names)) == len(names)
    assert comparison.cores.count(",") in {0, comparison.nodes - 1}


@EACH
def test_another_seed_is_another_sweep(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for seed in ("1", "2"):
        monkeypatch.setenv("SWEEP_SEED", seed)
        texts.append(repr(load_workflow(comparison.file).manifest))
    assert texts[0] != texts[1]


@EACH
def test_every_column_has_words_for_a_run(comparison: Comparison, tmp_path: Path) -> None:
    baseline, other = measured(write_example_run(tmp_path))
    assert (baseline.policy, other.policy) == ("default", "specon+flowcon")
    assert baseline.told(baseline)["best trial"] == ""
    told = other.told(baseline)
    assert all(told[column] for column in comparison.columns)
    assert "%" in told["makespan"]
    assert told["moves"] == str(other.moves)


def test_a_run_is_measured_by_what_was_asked_of_its_own_trials(tmp_path: Path) -> None:
    folder = write_example_run(tmp_path)
    manifest = load_workflow(COMPARISONS["times per step"].file).manifest
    steps = [planned.step for planned in read_workflow(manifest, "sweep", "sweep", {}).trials()]
    save_ledger(
        folder / "01-specon-flowcon" / "ledger.json", JobLedger(jobs={s.id: LocalJob(s, 0.0, 0.1) for s in steps})
    )
    without, asked = measured(folder)
    assert (without.on_time[0], asked.on_time[0]) == (0, len(steps))
