"""When a sweep needs no more of its trials: each rule by worked examples."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from controllers.core.model import Direction, Phase, Progress, Trial, TrialId
from controllers.core.stop_rules import rules_of
from controllers.policies.kit.enough import SweepCourse, course_after, cpu_seconds, why_enough
from tests.controllers.policies.policy_fakes import trial

FRESH = SweepCourse()
PLATEAU = rules_of(plateau={"trials": 2, "by": 0.1})


def reported(best: float, at: float = 1.0, *, cpu: float | None = None, latest: float | None = None) -> Progress:
    return Progress(best, best, best if latest is None else latest, 1, at, cpu)


def ended(*bests: float, **changes: Any) -> list[Trial]:  # noqa: ANN401 - any field of Trial
    """Return trials that ended one after the other."""
    over = {"phase": Phase.SUCCEEDED} | changes
    return [trial(f"t{at:02}", progress=reported(best, float(at)), **over) for at, best in enumerate(bests)]


def why(given: dict[str, object], trials: Sequence[Trial], course: SweepCourse = FRESH, now: float = 100.0) -> str:
    return why_enough(rules_of(**given), now, trials, course)


def test_a_value_counts_in_mid_training_and_also_where_the_trial_has_become_worse_since() -> None:
    running = trial("a", "n1", progress=reported(0.009, latest=5.0))
    assert why({"value": 0.01}, [running]) == "0.009 reached 0.01"
    assert why({"value": 0.008}, [running]) == ""
    assert why({"value": 0.01}, [trial("a", "n1")]) == ""


def test_a_value_is_reached_upwards_where_more_is_better() -> None:
    accurate = trial("a", "n1", direction=Direction.MAXIMIZE, progress=reported(0.97))
    assert why({"value": 0.97}, [accurate]) == "0.97 reached 0.97"
    assert why({"value": 0.98}, [accurate]) == ""


def test_a_trial_that_failed_reaches_nothing() -> None:
    assert why({"value": 0.01}, ended(0.001, phase=Phase.FAILED)) == ""


def test_a_plateau_is_so_many_trials_that_improve_the_best_by_too_little() -> None:
    assert why_enough(PLATEAU, 9.0, ended(1.0, 0.95, 3.0), FRESH) == "no 0.1 better in 2 trials"
    assert why_enough(PLATEAU, 9.0, ended(1.0, 0.95, 0.85), FRESH) == ""
    assert why_enough(PLATEAU, 9.0, ended(1.0, 0.8, 0.79), FRESH) == ""
    assert why_enough(PLATEAU, 9.0, ended(1.0, 0.8, 0.79, 0.78), FRESH) == "no 0.1 better in 2 trials"


def test_the_first_trials_make_no_plateau() -> None:
    assert why_enough(PLATEAU, 9.0, ended(1.0, 1.0), FRESH) == ""
    assert why_enough(PLATEAU, 9.0, [], FRESH) == ""


def test_the_order_is_that_of_the_ends_and_not_of_the_names() -> None:
    first, second, third = ended(1.0, 1.0, 0.2)
    best_first = [replace(third, progress=reported(0.2, -1.0)), first, second]
    assert why_enough(PLATEAU, 9.0, best_first, FRESH) == "no 0.1 better in 2 trials"


def test_trials_that_run_failed_or_never_reported_make_no_plateau() -> None:
    for odd in ({"phase": Phase.RUNNING}, {"phase": Phase.FAILED}, {"progress": None}):
        others = [replace(one, **odd) for one in ended(5.0, 1.0, 1.0)[1:]]
        assert why_enough(PLATEAU, 9.0, [*ended(5.0), *others], FRESH) == ""


def test_a_plateau_counts_upwards_where_more_is_better_and_trials_that_were_stopped_count() -> None:
    up = ended(0.5, 0.55, 0.52, direction=Direction.MAXIMIZE, phase=Phase.STOPPED)
    assert why_enough(PLATEAU, 9.0, up, FRESH) == "no 0.1 better in 2 trials"
    assert why_enough(PLATEAU, 9.0, ended(0.5, 0.55, 0.65, direction=Direction.MAXIMIZE), FRESH) == ""


def test_huge_values_do_no_harm() -> None:
    assert why_enough(PLATEAU, 9.0, ended(1e308, -1e308, 1e308), FRESH) == ""


def test_time_counts_from_the_start_of_the_first_trial() -> None:
    waiting, running = [trial("a", phase=Phase.PENDING, gated=True)], [trial("a", "n1")]
    course = course_after(FRESH, 500.0, waiting, None)
    assert why({"after_s": 60.0}, waiting, course, 5000.0) == ""
    course = course_after(course_after(course, 600.0, running, None), 640.0, running, None)
    assert why({"after_s": 60.0}, running, course, 659.0) == ""
    assert why({"after_s": 60.0}, running, course, 660.0) == "1 min have passed"


def test_a_budget_counts_what_trials_report_and_what_they_request_where_they_report_nothing() -> None:
    silent, telling = trial("a", "n1", "n1", cpu=2.0), trial("b", "n1", progress=reported(1.0, cpu=1800.0))
    course = course_after(FRESH, 0.0, [silent, telling], 0.0)
    course = course_after(course, 450.0, [silent, telling], 450.0)
    assert course.held == {TrialId("a"): 1800.0}
    assert cpu_seconds([silent, telling], course) == 3600.0
    assert why({"cpu_hours": 1.0}, [silent, telling], course) == "1 CPU hours are used"
    assert why({"cpu_hours": 1.01}, [silent, telling], course) == ""


def test_what_a_trial_requested_counts_on_once_it_has_ended_and_no_more_once_it_reports() -> None:
    course = course_after(FRESH, 100.0, [trial("a", "n1")], 100.0)
    over = [trial("a", phase=Phase.SUCCEEDED)]
    assert cpu_seconds(over, course_after(course, 200.0, over, 100.0)) == 100.0
    told = [trial("a", "n1", progress=reported(1.0, cpu=30.0))]
    assert cpu_seconds(told, course_after(course, 200.0, told, 100.0)) == 30.0


def test_the_first_rule_that_holds_is_told() -> None:
    both: dict[str, object] = {"value": 0.01, "after_s": 60.0}
    assert why(both, [trial("a", "n1", progress=reported(0.5))], SweepCourse(0.0), 60.0) == "1 min have passed"
    assert why(both, [trial("a", "n1", progress=reported(0.001))], SweepCourse(0.0), 60.0) == "0.001 reached 0.01"


@pytest.mark.parametrize("given", [{"value": 0.01}, {"after_s": 1.0}, {"cpu_hours": 1.0}, {"plateau": PLATEAU.plateau}])
def test_a_sweep_without_trials_goes_on(given: dict[str, object]) -> None:
    assert why(given, [], FRESH, math.ldexp(1, 40)) == ""
