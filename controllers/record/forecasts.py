"""The record of what was foreseen while a sweep ran, a JSON line each time that something else was.

All times are seconds of the sweep's clock; trials bear the ids that are the same in every run of the sweep.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controllers.core.forecast import EndRange, Forecast
from controllers.record.lines import LineFile
from mlflow_hooks.foreign_json import parsed

FORECASTS_FILE = "forecasts.jsonl"


@dataclass(frozen=True, slots=True)
class ToldForecast:
    """What was told ``at`` that time: the sweep's end, and the trials whose forecast has changed."""

    at: float
    end: EndRange | None
    trials: Mapping[str, EndRange] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return one line of JSON."""
        end = None if self.end is None else _numbers(self.end)
        return json.dumps(
            {"at": round(self.at, 1), "end": end, "trials": {n: _numbers(r) for n, r in self.trials.items()}}
        )

    @classmethod
    def from_json(cls, line: str) -> "ToldForecast":
        """Read back a line.

        Raises:
            ValueError: It is no such line.
        """
        try:
            fields = parsed(line)
            end = None if fields["end"] is None else _range(fields["end"])
            told = cls(float(fields["at"]), end, {str(name): _range(of) for name, of in fields["trials"].items()})
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            message = f"not a forecast: {line[:80]!r}"
            raise ValueError(message) from error
        if not math.isfinite(told.at):
            message = f"a forecast at no time: {line[:80]!r}"
            raise ValueError(message)
        return told


class ForecastRecorder:
    """Hands on what is news of each forecast.

    Args:
        append: adds to the record.
        short: gives the id of a trial that is the same in every run of its sweep.
    """

    def __init__(self, append: Callable[[Sequence[ToldForecast]], None], short: Callable[[str], str]) -> None:
        self._append = append
        self._short = short
        self._end: EndRange | None = None
        self._trials: dict[str, EndRange] = {}

    def tell(self, forecast: Forecast) -> None:
        """Append what is news."""
        news = {name: end for name, end in forecast.trials.items() if end.is_news_after(self._trials.get(name))}
        if not news and (forecast.end is None or not forecast.end.is_news_after(self._end)):
            return
        self._end = forecast.end
        for name, end in news.items():
            self._trials[name] = end
        short = {self._short(name): end for name, end in news.items()}
        self._append([ToldForecast(forecast.at, forecast.end, short)])


class ForecastFile:
    """Appends forecasts to ``path``, as ``LineFile`` says."""

    def __init__(self, path: Path) -> None:
        self._lines = LineFile(path)

    def append(self, forecasts: Iterable[ToldForecast]) -> None:
        """Append ``forecasts`` in one write."""
        self._lines.append("".join(f"{forecast.to_json()}\n" for forecast in forecasts))


def read_forecasts(path: Path) -> Iterator[ToldForecast]:
    """Yield the forecasts of ``path`` in order; what is no forecast, such as a line cut short, is passed over."""
    if path.exists():
        yield from forecasts_in(path.read_text(encoding="utf-8", errors="replace").splitlines())


def forecasts_in(lines: Iterable[str]) -> Iterator[ToldForecast]:
    """Yield the forecasts of ``lines``; what is no forecast is passed over: nothing else depends on it."""
    for line in lines:
        try:
            yield ToldForecast.from_json(line)
        except ValueError:
            continue


def _numbers(end: EndRange) -> list[float]:
    return [round(at, 1) for at in (end.low, end.likely, end.high)]


def _range(numbers: Any) -> EndRange:  # noqa: ANN401 - whatever the JSON holds
    low, likely, high = (float(number) for number in numbers)
    if not (math.isfinite(low) and low <= likely <= high < math.inf):
        message = f"no range: {numbers!r}"
        raise ValueError(message)
    return EndRange(low, likely, high)
