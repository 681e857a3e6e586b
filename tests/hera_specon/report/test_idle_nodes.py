"""Nodes that stood idle are named on the page, with those that never held a trial."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from controllers.core.forecast import EndRange
from controllers.record.forecasts import ForecastFile, ToldForecast
from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile
from hera_specon.records.run_folder import load_run
from hera_specon.report.curves import forecast_chart
from hera_specon.report.idle_nodes import idle_line, known_nodes
from hera_specon.report.page import page
from tests.hera_specon.report.example_run import write_example_run


def write(folder: Path, *phases: tuple[float, str, str, str], nodes: object = 2) -> None:
    part = folder / "00-default"
    part.mkdir()
    (folder / "run.json").write_text(json.dumps({"nodes": nodes}))
    events = [TimelineEvent(at, EventKind.PHASE, trial, phase=phase, node=node) for at, trial, phase, node in phases]
    TimelineFile(part / "timeline.jsonl").append(events)


def test_a_node_counts_as_idle_while_no_trial_is_on_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        (0, "a", "running", "node-1"),
        (50, "b", "running", "node-1"),
        (60, "a", "succeeded", "node-1"),
        (80, "b", "succeeded", "node-1"),
        (90, "c", "running", "node-1"),
        (100, "c", "succeeded", "node-1"),
    )
    record = load_run(tmp_path)
    assert idle_line(record.runs[0], known_nodes(record.about)) == "node-2 for 100 %, node-1 for 10 %"
    assert "Without a trial: node-2 for 100 %, node-1 for 10 % of the time." in page(record)


def test_many_idle_nodes_are_counted(tmp_path: Path) -> None:
    write(tmp_path, (0, "a", "running", "node-01"), (9, "a", "succeeded", "node-01"), nodes=30)
    record = load_run(tmp_path)
    assert idle_line(record.runs[0], known_nodes(record.about)).endswith("node-09 for 100 % and 21 more")


@pytest.mark.parametrize(
    ("about", "names"),
    [({"nodes": 2}, ["node-1", "node-2"]), ({"nodes": {"x": 1.0}}, ["x"]), ({}, []), ({"nodes": "many"}, [])],
)
def test_nodes_are_known_by_number_or_by_name(about: dict[str, object], names: list[str]) -> None:
    assert known_nodes(about) == names


def test_the_axis_of_forecasts_is_not_ruled_by_the_first_that_knew_little(tmp_path: Path) -> None:
    folder = write_example_run(tmp_path)
    wild, known = EndRange(1.0, 1e6, 1e9), EndRange(200.0, 250.0, 300.0)
    told = [ToldForecast(1.0, wild), *(ToldForecast(float(at), known) for at in range(5, 100, 5))]
    ForecastFile(folder / "00-default" / "forecasts.jsonl").append(told)
    record = load_run(folder)
    end = max(run.history.end for run in record.runs)
    chart = json.loads(forecast_chart(record.runs, end).split('type="application/json">')[1].split("</script>")[0])
    low, top = chart["layout"]["yaxis"]["range"]
    assert low == 0
    assert max(300.0, record.runs[0].history.end) < top < 2 * max(300.0, end)
    assert chart["data"][0]["y"][0] == 1e9, "what was told is still there"


def test_the_cpu_that_was_delivered_stands_beside_a_comparison(tmp_path: Path) -> None:
    folder = write_example_run(tmp_path)
    assert ">CPU delivered<" in page(load_run(folder))


def test_what_others_had_stands_beside_a_comparison_where_there_were_any(tmp_path: Path) -> None:
    record = load_run(write_example_run(tmp_path))
    assert "CPU of others" not in page(record)
    runs = [replace(run, result=run.result and replace(run.result, cores_of_others=1.25)) for run in record.runs]
    shown = page(replace(record, runs=tuple(runs)))
    assert ">CPU of others<" in shown
    assert ">1.25 cores<" in shown
