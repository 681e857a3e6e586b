import base64
import gzip
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from controllers.core.forecast import EndRange
from controllers.record.forecasts import ForecastFile, ToldForecast
from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile
from hera_specon.records.run_folder import BrokenRunError, RunNotFoundError, find_run, load_run
from hera_specon.report.page import page, write_report
from tests.hera_specon.report.example_run import write_example_run


class Links(HTMLParser):
    """Collects whatever a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.charts: list[str] = []
        self.packed = ""
        self._chart = self._packed = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "data"}]
        self._chart = tag == "script" and ("type", "application/json") in attrs
        self._packed = tag == "script" and ("type", "application/gzip") in attrs

    def handle_data(self, data: str) -> None:
        if self._chart:
            self.charts.append(data)
        if self._packed:
            self.packed += data

    def handle_endtag(self, tag: str) -> None:
        self._chart = self._chart and tag != "script"
        self._packed = self._packed and tag != "script"


def read(html: str) -> Links:
    links = Links()
    links.feed(html)
    return links


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_example_run(tmp_path)


def test_the_page_fetches_nothing(folder: Path) -> None:
    html = page(load_run(folder))

    assert read(html).fetched == []
    assert "default-src 'none'" in html
    assert b"plotly.js (basic" in gzip.decompress(base64.b64decode(read(html).packed))


def test_the_page_shows_policies_figures_trials_and_reasons(folder: Path) -> None:
    html = page(load_run(folder))

    for words in ("specon+flowcon", "trial-11", "workflows/demo.py", "val_loss", "the trial that lost most"):
        assert words in html
    assert re.search(r"node-3 → node-1\. growth fell three times in a row", html)


def test_every_chart_is_whole_and_has_what_it_should(folder: Path) -> None:
    charts = [json.loads(chart) for chart in read(page(load_run(folder))).charts]

    gantt, completion, *models, learning, shares, others = charts
    assert {trace["name"] for trace in gantt["data"] if trace["type"] == "bar"} == {
        "not judged", "progressing", "watching", "converged", "moving",
    }  # fmt: skip
    assert [trace["name"] for trace in completion["data"] if "name" in trace] == ["default", "specon+flowcon"]
    assert len(learning["data"]) == 24
    assert {trace["type"] for chart in models for trace in chart["data"]} == {"scatter", "bar"}
    for chart in (shares, others):
        assert {trace["name"] for trace in chart["data"]} == {"in use", *(f"trial-{n}" for n in range(12))}


def test_what_was_foreseen_is_drawn_beside_what_came_true(folder: Path) -> None:
    assert "expected to end" not in page(load_run(folder))
    right, wrong = EndRange(1.0, 50.0, 1e4), EndRange(1.0, 1.5, 2.0)
    told = [ToldForecast(10.0, wrong, {"trial-0": right, "trial-1": wrong}), ToldForecast(20.0, right)]
    ForecastFile(folder / "00-default" / "forecasts.jsonl").append(told)

    html = page(load_run(folder))
    chart = json.loads(read(html).charts[1])

    assert "Under default, 1 of 2 ranges told of single trials did." in html
    assert [trace.get("name") for trace in chart["data"]] == [None, "range", "expected end", "came true"]
    assert chart["data"][2]["y"] == [1.5, 50.0, 50.0]


def test_what_a_run_is_called_cannot_break_the_page(folder: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "name": evil, "objective": evil}))
    event = TimelineEvent(9_999, EventKind.PHASE, evil, phase="running", node=evil)
    late = TimelineEvent(10_000, EventKind.MOVE, evil, node=evil, reason=evil)
    TimelineFile(folder / "00-default" / "timeline.jsonl").append([event, late])

    html = page(load_run(folder))

    assert "<script>alert" not in html
    assert [json.loads(chart) for chart in read(html).charts]


def test_a_policy_that_has_not_finished_is_shown_as_far_as_it_got(folder: Path) -> None:
    (folder / "01-specon-flowcon" / "result.json").unlink()

    html = page(load_run(folder))

    assert "specon+flowcon has not finished" in html
    learning = json.loads(read(html).charts[-3])
    assert len(learning["data"]) == 24


def test_a_trial_has_one_name_in_timeline_and_result(folder: Path) -> None:
    record = load_run(folder)

    for run in record.runs:
        assert run.result is not None
        assert {trial.id for trial in run.result.trials} == set(run.history.stretches)


def test_a_run_that_has_only_begun_has_a_page(tmp_path: Path) -> None:
    part = tmp_path / "00-default"
    part.mkdir()
    (tmp_path / "run.json").write_text("{}")
    TimelineFile(part / "timeline.jsonl").append([TimelineEvent(0, EventKind.PHASE, "a", phase="pending")])

    assert "default has not finished" in page(load_run(tmp_path))


def test_failed_trials_are_called_failed(folder: Path) -> None:
    file = folder / "00-default" / "result.json"
    result = json.loads(file.read_text())
    result["trials"][0]["succeeded"] = False
    file.write_text(json.dumps(result))

    assert "1 of 12 trials failed under default" in page(load_run(folder))


def test_deadlines_are_counted_and_each_trial_tells_whether_it_met_its_own(folder: Path) -> None:
    assert "deadlines met" not in page(load_run(folder))
    file = folder / "00-default" / "result.json"
    result = json.loads(file.read_text())
    first, second = result["trials"][:2]
    first["deadline_s"], second["deadline_s"] = 1.0, 1000.0
    file.write_text(json.dumps(result))

    html = page(load_run(folder))

    assert "deadlines met" in html
    assert "1 of 2" in html
    assert ("missed its 1.0 s" in html, "met its 16 m 40 s" in html) == (True, True)


def test_the_report_is_written_to_every_target_and_leaves_no_draft(folder: Path, tmp_path: Path) -> None:
    write_report(folder, [folder / "report.html", tmp_path / "copy.html"])

    assert (folder / "report.html").read_bytes() == (tmp_path / "copy.html").read_bytes()
    assert not list(tmp_path.rglob(".*"))


def test_a_report_that_cannot_be_put_in_place_leaves_no_draft(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError, match=r"report\.html"):
        write_report(folder, [tmp_path / "report.html"])
    assert not list(tmp_path.rglob(".*"))


def test_the_run_begun_last_is_found_by_default(tmp_path: Path) -> None:
    newest = write_example_run(tmp_path, "demo-2")
    older = write_example_run(tmp_path, "demo-10")
    os.utime(older / "run.json", (1, 1))

    assert find_run(None, tmp_path) == newest
    assert find_run("demo-10", tmp_path) == older
    assert find_run(str(older), Path("elsewhere")) == older


def test_an_unknown_run_is_named_with_those_there_are(folder: Path) -> None:
    with pytest.raises(RunNotFoundError, match=r"'demo-7'.*demo-1"):
        find_run("demo-7", folder.parent.parent)


def test_where_nothing_ran_the_way_to_start_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunNotFoundError, match="specon run FILE"):
        find_run(None, tmp_path)


@pytest.mark.parametrize(
    ("file", "text"),
    [("run.json", "{"), ("run.json", "[]"), ("00-default/result.json", "{}"), ("00-default/timeline.jsonl", "x\ny\n")],
)
def test_a_broken_file_is_named(folder: Path, file: str, text: str) -> None:
    (folder / file).write_text(text)

    with pytest.raises(BrokenRunError, match=re.escape(file)):
        load_run(folder)
