"""How far the forecasts of real runs could be trusted: what was told while they ran beside what came true.

    python -m benchmarks.forecasts_for_real FOLDER [FOLDER ...]

Each FOLDER is a run that has ended, such as .specon/runs/demo-1, or the file of benchmarks.payoff. A forecast is judged
by what had been told last at 10, 25, 50 and 75 % of the makespan; the page docs/experiments/forecasts.md shows the same
of simulated sweeps.
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.foreseen import PARTS, coverage
from controllers.core.forecast import EndRange
from controllers.core.results import RunResult
from controllers.record.forecasts import FORECASTS_FILE, ToldForecast, read_forecasts


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run under one policy; for each part of its makespan the ranges of the end and of the trials.

    A range is told by whether it held what came true, and by its width as a part of the time that was left.
    """

    policy: str
    ends: tuple[tuple[tuple[bool, float], ...], ...]
    trials: tuple[tuple[tuple[bool, float], ...], ...]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "JudgedRun":
        """Read back what ``dataclasses.asdict`` made of one, and JSON of that."""
        ends, trials = (
            tuple(tuple((bool(held), float(width)) for held, width in part) for part in fields[name])
            for name in ("ends", "trials")
        )
        return cls(str(fields["policy"]), ends, trials)


def judged_runs(places: Sequence[Path]) -> list[JudgedRun]:
    """Return every run under every policy that has ended and has forecasts, in folders and in files of payoffs."""
    folders, files = ([place for place in places if place.is_dir() is wanted] for wanted in (True, False))
    parts = [part for folder in folders for part in sorted(folder.iterdir()) if (part / FORECASTS_FILE).is_file()]
    ended = [part for part in parts if (part / "result.json").is_file()]
    kept = [run for file in files for run in json.loads(file.read_text(encoding="utf-8"))]
    return [JudgedRun.of(run["foreseen"]) for run in kept if "foreseen" in run] + [
        judge(
            RunResult.from_dict(json.loads((part / "result.json").read_text(encoding="utf-8"))),
            list(read_forecasts(part / FORECASTS_FILE)),
        )
        for part in ended
    ]


def judge(result: RunResult, told: Sequence[ToldForecast]) -> JudgedRun:
    """Return what had been told at each part of the makespan beside what came true."""
    ends = {trial.id: trial.completed_s for trial in result.trials}
    last = max(ends.values())
    of_end, of_trials = [], []
    for part in PARTS:
        now = part * last
        known = [forecast for forecast in told if forecast.at <= now]
        newest = known[-1].end if known else None
        of_end.append(() if newest is None else (_against(newest, last, now),))
        ranges = {name: end for forecast in known for name, end in forecast.trials.items()}
        of_trials.append(
            tuple(_against(end, ends[name], now) for name, end in ranges.items() if ends.get(name, 0) > now)
        )
    return JudgedRun(result.policy, tuple(of_end), tuple(of_trials))


def _against(told: EndRange, came_true: float, now: float) -> tuple[bool, float]:
    return told.holds(came_true), (told.high - told.low) / max(1.0, came_true - now)


def table(runs: Sequence[JudgedRun]) -> Table:
    """Return a row for each policy, and one for all runs."""
    drawn = Table("policy", "runs", *(f"{what}, {part:.0%}" for what in ("end", "trials") for part in PARTS))
    for policy in (*sorted({run.policy for run in runs}), None):
        own = [run for run in runs if policy in {run.policy, None}]
        cells = [_cell(range_ for run in own for range_ in run.ends[place]) for place in range(len(PARTS))]
        cells += [_cell(range_ for run in own for range_ in run.trials[place]) for place in range(len(PARTS))]
        if policy is None:
            drawn.add_section()
        drawn.add_row(policy or "all", str(len(own)), *cells)
    return drawn


def _cell(ranges: Iterable[tuple[bool, float]]) -> str:
    seen = coverage(ranges)
    return "" if seen is None else f"{seen.held:.0%} of {seen.told} ({seen.width:.0%})"


def main() -> None:
    """Read the folders and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    found = judged_runs(parser.parse_args().folders)
    Console(width=160).print(table(found) if found else "No run in these folders has ended and has forecasts.")


if __name__ == "__main__":
    main()
