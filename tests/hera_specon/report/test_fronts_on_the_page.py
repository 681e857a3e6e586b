"""The Pareto front on the page: a chart of the first two objectives, a table, and who does not count."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from controllers.core.results import RunResult, TrialResult
from hera_specon.records.run_folder import RunRecord, load_run
from hera_specon.report.fronts import MOST_ROWS, front_chart, fronts_of
from hera_specon.report.page import page
from tests.hera_specon.report.example_run import write_example_run

EVIL = "</script><b>lat"


def trial(name: str, loss: float, latency: float, memory: float = 1.0) -> TrialResult:
    base = TrialResult(f"s.{name}", 0.0, 9.0, "n", 0, 1, loss, params={"lr": loss}, objective="loss", sweep="s")
    values = {EVIL: latency, "memory": memory}
    return replace(base, further_objectives=f"minimize {EVIL}", constraints="memory <= 2", values=values)


TRIALS = (trial("a", 1.0, 9.0), trial("b", 2.0, 5.0), trial("c", 3.0, 6.0), trial("d", 0.5, 0.5, memory=3.0))


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    found = load_run(write_example_run(tmp_path))
    return replace(found, runs=tuple(replace(run, result=RunResult(run.policy, TRIALS)) for run in found.runs))


def test_the_chart_has_the_front_the_beaten_and_those_that_break_a_constraint() -> None:
    chart = front_chart(RunResult("ahead", TRIALS).fronts()["s"], TRIALS)
    data = json.loads(chart.partition('type="application/json">')[2].partition("</script>")[0])["data"]
    drawn = {trace["name"]: list(zip(trace["x"], trace["y"], strict=True)) for trace in data}
    assert drawn == {
        "on the front": [(1.0, 9.0), (2.0, 5.0)],
        "beaten": [(3.0, 6.0)],
        "breaks a constraint": [(0.5, 0.5)],
    }


def test_the_table_has_a_column_for_each_metric_and_at_most_so_many_rows(record: RunRecord) -> None:
    front = next(fronts_of(record.runs))
    assert front.metrics == ("loss", EVIL, "memory")
    assert [(row.trial.id, row.values) for row in front.rows] == [("s.a", (1.0, 9.0, 1.0)), ("s.b", (2.0, 5.0, 1.0))]
    many = RunResult("ahead", tuple(trial(f"t{n}", float(n), float(-n)) for n in range(200)))
    (wide,) = fronts_of([replace(record.runs[0], result=many)])
    assert (len(wide.rows), wide.of) == (MOST_ROWS, 200)


def test_the_page_shows_the_front_in_place_of_the_best_models_and_names_of_others_as_text(record: RunRecord) -> None:
    html = page(record)
    assert html.count("<h2>The Pareto front of s, under ") == len(record.runs)
    assert "All of them keep memory &lt;= 2." in html
    assert "<h2>The best models" not in html
    assert "s.d under" in html
    assert EVIL not in html


def test_a_sweep_of_one_objective_has_no_front_on_its_page(tmp_path: Path) -> None:
    assert "Pareto" not in page(load_run(write_example_run(tmp_path)))
