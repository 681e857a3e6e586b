import json
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from controllers.core.results import ComparisonError, RunResult, TrialResult
from hera_specon.display.tables import cells, comparison_table, noise, warnings
from hera_specon.records.comparison import comparison_rows, idle, label_results, to_json
from hera_specon.records.repeats import compare_repeats


def run(policy: str, *completed: float, succeeded: bool = True) -> RunResult:
    trials = [TrialResult(f"t{i}", 0.0, at, "n1", 1, 2, 0.5, succeeded) for i, at in enumerate(completed)]
    return RunResult(policy, tuple(trials))


def test_winners_and_losers_are_both_counted() -> None:
    base, other = comparison_rows([run("default", 10, 10, 10, 40), run("specon", 5, 12, 10, 20)])

    assert base.against is None
    assert (other.faster, other.slower) == (2, 1)
    assert other.against is not None
    assert other.against.worst_loser_id == "t1"
    assert other.against.worst_loser == pytest.approx(1.2)


def test_a_loss_is_written_as_a_loss() -> None:
    row = comparison_rows([run("default", 10, 20), run("specon", 12, 25)])[1]

    assert cells(row)[0] == "25 s  1.25× (+25.0 %)"  # noqa: RUF001 - the times sign is meant
    assert cells(row)[3] == "0 of 2 (2 slower)"


def test_every_later_run_is_set_beside_the_first() -> None:
    figures = to_json([run("default", 10), run("specon", 8), run("flowcon", 5)])

    assert [(c["baseline"], c["policy"], c["makespan_ratio"]) for c in figures["comparisons"]] == [
        ("default", "specon", 0.8),
        ("default", "flowcon", 0.5),
    ]
    assert [r["policy"] for r in json.loads(json.dumps(figures))["runs"]] == ["default", "specon", "flowcon"]


def test_one_run_alone_is_compared_with_nothing() -> None:
    assert to_json([run("default", 10)])["comparisons"] == []


def test_deadlines_stand_first_where_there_are_any() -> None:
    def told(*deadlines: float | None) -> str:
        trials = (replace(trial, deadline_s=d) for trial, d in zip(run("edf", 10, 20).trials, deadlines, strict=True))
        with (console := Console(width=100)).capture() as captured:
            console.print(comparison_table([RunResult("edf", tuple(trials))]))
        return captured.get()

    assert re.search(r"deadlines met +1 of 2\s+makespan", told(15.0, 15.0))
    assert "deadlines" not in told(None, None)


def test_trials_that_were_suspended_or_ended_early_are_counted_where_there_are_any() -> None:
    def told(**changes: Any) -> str:  # noqa: ANN401 - fields of TrialResult
        first, *others = run("promote", 10, 20, 30).trials
        with (console := Console(width=100)).capture() as captured:
            console.print(comparison_table([RunResult("promote", (replace(first, **changes), *others))]))
        return captured.get()

    assert re.search(r"suspensions +3\s+ended early +1", told(suspensions=3, stopped="it lost"))
    assert "ended early" not in told(suspensions=3)
    assert "suspensions" not in told()


def test_a_policy_that_took_no_action_is_said_to_differ_by_noise() -> None:
    def told(**changes: Any) -> list[str]:  # noqa: ANN401 - fields of TrialResult
        base = [replace(one, moves=0, first_node="n1") for one in run("default", 10, 20).trials]
        first, *others = (replace(one, moves=0, first_node="n1") for one in run("ahead", 9, 18).trials)
        ours = RunResult("ahead", (replace(first, **changes), *others))
        return noise(comparison_rows([RunResult("default", tuple(base)), ours]))

    assert told() == ["ahead took no action: what differs from default is noise"]
    actions: list[dict[str, Any]] = [
        {"moves": 1}, {"resizes": 1}, {"suspensions": 1}, {"stopped": "it lost"}, {"first_node": "n2"},
    ]  # fmt: skip
    assert [told(**action) for action in actions] == [[]] * len(actions)


def test_the_cores_that_each_run_had_stand_beside_its_times() -> None:
    counted = tuple(replace(trial, cpu_seconds=15.0) for trial in run("default", 10, 20).trials)
    with (console := Console(width=100)).capture() as captured:
        console.print(comparison_table([RunResult("default", counted)]))
    assert re.search(r"CPU delivered +1.5 cores", captured.get())
    assert comparison_rows([run("default", 10)])[0].cores_delivered is None


def test_what_others_had_stands_beside_the_times_where_it_matters() -> None:
    runs = [replace(run("default", 10), cores_of_others=1.5), replace(run("specon", 10), cores_of_others=0.04)]
    with (console := Console(width=100)).capture() as captured:
        console.print(comparison_table(runs))
    assert re.search(r"CPU of others +1.5 cores +0 cores", captured.get())
    with console.capture() as captured:
        console.print(comparison_table(runs[1:]))
    assert "CPU of others" not in captured.get()


def test_failed_trials_are_pointed_out() -> None:
    (warning,) = warnings(comparison_rows([run("default", 10, 20, succeeded=False)]))

    assert "2 of 2 trials failed under default" in warning


def test_runs_of_different_trials_are_not_compared() -> None:
    with pytest.raises(ComparisonError, match="same trials"):
        comparison_rows([run("default", 10), run("specon", 10, 20)])


def test_the_same_policy_with_other_parameters_is_called_by_its_parameters() -> None:
    specs = ("specon:alpha=0.01", "specon:alpha=0.05")

    assert [r.policy for r in label_results([run("specon", 10), run("specon", 8)], specs)] == list(specs)
    assert [r.policy for r in label_results([run("specon", 10), run("flowcon", 8)], specs)] == ["specon", "flowcon"]


def repeats(*makespans: float, moves: int = 1) -> list[RunResult]:
    """Runs under default and ahead in turns; the default's makespan is 100 s each time."""
    found = []
    for number, makespan in enumerate(makespans, start=1):
        name = "" if number == 1 else f" #{number}"
        found += [run(f"default{name}", 100.0), run(f"ahead{name}", makespan)]
    return [replace(one, trials=tuple(replace(trial, moves=moves) for trial in one.trials)) for one in found]


@pytest.mark.parametrize(
    ("makespans", "verdict"),
    [
        ((80.0, 82.0, 81.0), "faster"),
        ((120.0, 122.0, 121.0), "slower"),
        ((80.0, 120.0, 100.0), "no difference that chance could not make"),
    ],
)
def test_repeats_tell_a_difference_only_where_chance_does_not_make_it(
    makespans: tuple[float, ...], verdict: str
) -> None:
    (baseline, told) = compare_repeats(repeats(*makespans), idle)
    assert (baseline.policy, baseline.verdict, told.policy, told.verdict) == ("default", "", "ahead", verdict)
    rows = comparison_rows(repeats(*makespans))
    assert {row.significant for row in rows if row.against} == {verdict in {"faster", "slower"}}


def test_repeats_without_any_action_differ_by_noise_only() -> None:
    (_, told) = compare_repeats(repeats(80.0, 81.0, moves=0), idle)
    assert told.verdict == "no action was taken: the difference is noise"


def test_one_run_under_each_policy_has_no_range_and_no_significance() -> None:
    assert compare_repeats(repeats(50.0), idle) == []
    assert [row.significant for row in comparison_rows(repeats(50.0))] == [False, False]


def test_a_repeat_is_set_beside_the_repeat_of_the_baseline_with_the_same_number() -> None:
    results = [run("default", 100.0), run("ahead", 50.0), run("default #2", 200.0), run("ahead #2", 100.0)]
    assert [row.against and row.against.makespan_ratio for row in comparison_rows(results)] == [None, 0.5, None, 0.5]


def test_policies_of_one_name_that_run_several_times_are_told_apart() -> None:
    results = [run("specon", 1.0) for _ in range(4)]
    specs = ["specon:alpha=0.1", "specon:alpha=0.2"] * 2
    names = ["specon:alpha=0.1", "specon:alpha=0.2", "specon:alpha=0.1 #2", "specon:alpha=0.2 #2"]
    assert [one.policy for one in label_results(results, specs)] == names
