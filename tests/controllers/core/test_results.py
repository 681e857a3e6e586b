"""What a run came to, and how two of them compare."""

import json
import math
from typing import Any

import pytest

from controllers.core.results import ComparisonError, RunResult, TrialResult, compare


def run(policy: str, times: dict[str, tuple[float, float]]) -> RunResult:
    return RunResult(policy, tuple(TrialResult(n, s, c, "node-1", 0, 1, 0.1) for n, (s, c) in times.items()))


BEFORE = run("default", {"a": (10, 20), "b": (12, 32), "c": (14, 54)})
AFTER = run("specon", {"a": (10, 25), "b": (12, 22), "c": (14, 34)})


def test_the_makespan_runs_from_the_first_submission_to_the_last_completion() -> None:
    assert BEFORE.makespan_s == 44


def test_completion_times_count_from_each_trials_own_submission() -> None:
    assert BEFORE.mean_completion_s == pytest.approx((10 + 20 + 40) / 3)
    assert BEFORE.median_completion_s == 20


def test_a_comparison_shows_winners_and_the_worst_loser() -> None:
    comparison = compare(BEFORE, AFTER)
    assert comparison.makespan_ratio == pytest.approx(24 / 44)
    assert comparison.faster_share == pytest.approx(2 / 3)
    assert (comparison.worst_loser_id, comparison.worst_loser) == ("a", 1.5)


def test_runs_of_different_trials_are_not_compared() -> None:
    with pytest.raises(ComparisonError, match=r"\['b', 'c'\]"):
        compare(BEFORE, run("specon", {"a": (10, 25)}))


def test_the_figures_for_scripts_carry_what_was_promised() -> None:
    figures = BEFORE.to_dict()
    assert {"policy", "makespan_s", "mean_completion_s", "median_completion_s", "trials"} <= figures.keys()
    promised = {"id", "submitted_s", "completed_s", "node", "moves", "attempts", "final_metric"}
    assert promised <= figures["trials"][0].keys()


def test_a_deadline_is_met_by_a_success_in_time_from_the_trials_own_submission() -> None:
    def ended(name: str, completed: float, deadline: float | None, *, succeeded: bool = True) -> TrialResult:
        return TrialResult(name, 100.0, completed, "node-1", 0, 1, 0.1, succeeded, deadline_s=deadline)

    trials = (
        ended("kept", 160.0, 60.0),
        ended("late", 161.0, 60.0),
        ended("failed", 110.0, 60.0, succeeded=False),
        ended("free", 999.0, None),
    )
    assert [trial.met_deadline for trial in trials] == [True, False, False, None]
    result = RunResult("deadline", trials)
    assert (result.deadlines.asked, result.deadlines.met) == (3, 1)
    assert result.deadlines.share == pytest.approx(1 / 3)
    assert RunResult("default", trials[3:]).deadlines.share == 1.0
    figures = result.to_dict()
    assert (figures["deadlines"], figures["deadlines_met"]) == (3, 1)
    assert RunResult.from_dict(figures) == result


def test_trials_are_ranked_by_sweep_and_only_if_they_have_a_model() -> None:
    def trial(name: str, value: float | None, **changes: Any) -> TrialResult:  # noqa: ANN401 - fields of TrialResult
        return TrialResult(name, 0.0, 1.0, "n1", 0, 1, value, **changes)

    trials = (
        trial("s.worse", 0.5, sweep="s"),
        trial("s.best", 0.1, sweep="s", stopped="it lost"),
        trial("s.failed", 0.0, sweep="s", succeeded=False),
        trial("s.diverged", math.nan, sweep="s"),
        trial("s.silent", None, sweep="s"),
        trial("z.best", 0.9, sweep="z", direction="maximize"),
        trial("z.worse", 0.1, sweep="z", direction="maximize"),
    )
    result = RunResult("ahead", trials)
    ranked = {sweep: [one.id for one in found] for sweep, found in result.ranking().items()}
    assert ranked == {"s": ["s.best", "s.worse"], "z": ["z.best", "z.worse"]}
    assert result.to_dict()["best"] == {"s": "s.best", "z": "z.best"}
    assert RunResult.from_dict(json.loads(json.dumps(result.to_dict()))).ranking()["s"][0].id == "s.best"
