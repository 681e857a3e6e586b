import json
from io import StringIO
from pathlib import Path

from rich.console import Console

from benchmarks.forecasts_for_real import judged_runs, table
from controllers.core.forecast import EndRange
from controllers.core.results import RunResult, TrialResult
from controllers.record.forecasts import ForecastFile, ToldForecast


def run(folder: Path, *, over: bool = True) -> Path:
    """Write a run of two trials, which end at 40 s and at 100 s."""
    part = folder / "00-default"
    part.mkdir(parents=True)
    trials = tuple(TrialResult(f"sweep.{name}", 0.0, end, "n1", 0, 1, 0.1) for name, end in (("a", 40.0), ("b", 100.0)))
    if over:
        (part / "result.json").write_text(json.dumps(RunResult("default", trials).to_dict()))
    right, wrong = EndRange(90.0, 100.0, 110.0), EndRange(50.0, 60.0, 70.0)
    ForecastFile(part / "forecasts.jsonl").append(
        [
            ToldForecast(5.0, wrong, {"sweep.a": wrong, "sweep.b": right}),
            ToldForecast(20.0, right, {"sweep.a": EndRange(38.0, 40.0, 43.0)}),
            ToldForecast(70.0, wrong, {"sweep.b": wrong}),
        ]
    )
    return folder


def test_what_had_been_told_last_is_judged_at_each_part_of_the_makespan(tmp_path: Path) -> None:
    (found,) = judged_runs([run(tmp_path / "demo-1")])

    assert [held for ((held, _),) in found.ends] == [False, True, True, False]
    assert [[held for held, _ in trials] for trials in found.trials] == [[False, True], [True, True], [True], [False]]
    assert found.ends[1][0][1] == 20.0 / 75.0


def test_a_run_that_has_not_ended_is_left_out(tmp_path: Path) -> None:
    assert judged_runs([run(tmp_path / "demo-1", over=False)]) == []


def test_the_table_counts_all_runs_of_a_policy(tmp_path: Path) -> None:
    runs = judged_runs([run(tmp_path / "demo-1"), run(tmp_path / "demo-2")])
    out = StringIO()
    Console(file=out, width=160).print(table(runs))

    assert "50% of 4" in out.getvalue()
    assert "100% of 2 (27%)" in out.getvalue()
