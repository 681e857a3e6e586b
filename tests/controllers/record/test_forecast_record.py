from pathlib import Path

import pytest

from controllers.core.forecast import EndRange, Forecast
from controllers.core.model import TrialId
from controllers.record.forecasts import ForecastFile, ForecastRecorder, ToldForecast, read_forecasts

END, LATER = EndRange(90.0, 100.0, 120.0), EndRange(110.0, 130.0, 150.0)
A, B = TrialId("uid.sweep.a"), TrialId("uid.sweep.b")


def short(trial: str) -> str:
    return trial.removeprefix("uid.")


def test_only_what_is_news_is_recorded() -> None:
    told: list[ToldForecast] = []
    recorder = ForecastRecorder(told.extend, short)
    recorder.tell(Forecast(10.0, None))
    recorder.tell(Forecast(20.0, END, {}, {A: END, B: END}))
    recorder.tell(Forecast(30.0, EndRange(91.0, 102.0, 121.0), {}, {A: END, B: END}))
    recorder.tell(Forecast(40.0, END, {}, {A: LATER, B: END}))
    recorder.tell(Forecast(50.0, LATER, {}, {A: LATER}))

    assert told == [
        ToldForecast(20.0, END, {"sweep.a": END, "sweep.b": END}),
        ToldForecast(40.0, END, {"sweep.a": LATER}),
        ToldForecast(50.0, LATER),
    ]


@pytest.mark.parametrize(
    ("after", "news"),
    [
        (EndRange(92.0, 104.0, 126.0), False),
        (EndRange(90.0, 109.0, 120.0), True),
        (EndRange(98.0, 100.0, 112.0), True),
        (EndRange(60.0, 100.0, 160.0), True),
    ],
)
def test_a_range_is_news_once_it_has_moved_by_a_quarter_of_its_width(after: EndRange, *, news: bool) -> None:
    assert after.is_news_after(END) is news
    assert END.is_news_after(None)


def test_forecasts_come_back_from_the_file_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "forecasts.jsonl"
    written = [ToldForecast(20.0, END, {"sweep.a": END}), ToldForecast(30.0, None)]
    ForecastFile(path).append(written)
    with path.open("a") as file:
        file.write('{"at": 40.0, "end": [1')
    ForecastFile(path).append([ToldForecast(50.0, LATER)])

    assert list(read_forecasts(path)) == [*written, ToldForecast(50.0, LATER)]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "null",
        '{"at": 1}',
        '{"at": "x", "end": null, "trials": {}}',
        '{"at": NaN, "end": null, "trials": {}}',
        '{"at": 1, "end": [3, 2, 1], "trials": {}}',
        '{"at": 1, "end": [1, 2], "trials": {}}',
        '{"at": 1, "end": null, "trials": {"a": [1, 2, Infinity]}}',
        '{"at": 1, "end": null, "trials": []}',
        f'{{"at": 1, "end": [1, 2, 1{"0" * 400}], "trials": {{}}}}',
        f'{{"at": 1{"0" * 400}, "end": null, "trials": {{}}}}',
    ],
)
def test_what_is_no_forecast_is_passed_over(tmp_path: Path, line: str) -> None:
    path = tmp_path / "forecasts.jsonl"
    path.write_text(f"{line}\n")

    assert list(read_forecasts(path)) == []
    with pytest.raises(ValueError, match=r"forecast|float|range|unpack|JSON|Expecting"):
        ToldForecast.from_json(line)


def test_what_is_left_is_never_below_nothing() -> None:
    assert END.left(100.0) == EndRange(0.0, 0.0, 20.0)
    assert END.holds(90.0)
    assert not END.holds(121.0)
