"""What a replay says, drawn with rich: how true the simulation is, then what other policies would have made of it."""

import math
import statistics
from collections.abc import Callable, Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from controllers.core.results import Comparison, RunResult
from controllers.lab.simulation.past_sweeps.forecast import Interval, PolicyForecast, Validation
from hera_specon.display import words
from hera_specon.replay.replaying import Replayed

_FIGURES: tuple[tuple[str, Callable[[RunResult], float], Callable[[Comparison], float]], ...] = (
    ("makespan", lambda run: run.makespan_s, lambda change: change.makespan_ratio),
    ("mean completion", lambda run: run.mean_completion_s, lambda change: change.mean_ratio),
    ("median completion", lambda run: run.median_completion_s, lambda change: change.median_ratio),
)


def replay_view(replayed: Replayed) -> RenderableType:
    """Return everything that is to be said about a replay."""
    source = replayed.source
    head = f"{source.name}: {len(source.trials)} trials, simulated with {replayed.seeds} seeds on"
    nodes = replayed.recording.workload.nodes
    return Group(
        Text(f"{head} {len(nodes)} nodes of {words.cores(sum(node.cpu for node in nodes))} cores together"),
        *(Text(f"· {told}", style="dim") for told in _small_print(replayed)),
        *([_checks_table(replayed)] if replayed.checks else []),
        _forecasts_table(replayed),
        *(Text(verdict) for verdict in verdicts(replayed)),
    )


def verdicts(replayed: Replayed) -> Iterator[str]:
    """Yield for each policy after the first what may be claimed of it, and what may not."""
    baseline = replayed.forecasts[0]
    off = max((abs(check.makespan_error) for check in replayed.checks), default=math.inf)
    for forecast in replayed.forecasts[1:]:
        change = Interval.of([comparison.makespan_ratio for comparison in forecast.against(baseline)])
        claim = f"{forecast.policy} would have changed the makespan by {_changes(change)} against {baseline.policy}"
        if change.low <= 1 <= change.high:
            yield f"{claim}, shorter in {_wins(forecast, baseline)}: not sure to make a difference."
        elif math.isinf(off):
            yield f"{claim}; nothing tells how far the simulation is from what really happened."
        elif off > abs(change.mean - 1):
            yield f"{claim}; but the simulation misses what really happened by {off:.1%}, so this proves nothing."
        else:
            yield f"{claim}; the simulation misses what really happened by {off:.1%}."


def _small_print(replayed: Replayed) -> Iterator[str]:
    yield from replayed.recording.assumptions
    if replayed.source.left_out:
        yield f"left out: {', '.join(replayed.source.left_out)}"


def _checks_table(replayed: Replayed) -> Table:
    table = _table("What was, and the simulation of it (mean, 5th to 95th percentile of the seeds)")
    table.add_column()
    for check in replayed.checks:
        table.add_column(Text(check.policy), justify="right", overflow="fold")
    rows: dict[str, Callable[[Validation], str]] = {
        "makespan": lambda check: words.seconds(check.makespan_s),
        "simulated": lambda check: _seconds(check.simulated_makespan_s),
        "error of the makespan": lambda check: f"{check.makespan_error:+.1%}",
        "error of a completion, mean": lambda check: f"{check.mean_completion_error:.1%}",
        "error of a completion, worst": lambda check: f"{check.worst_completion_error:+.1%}",
        "completions within the range": _within,
    }
    for title, cell in rows.items():
        table.add_row(title, *(Text(cell(check)) for check in replayed.checks))
    return table


def _forecasts_table(replayed: Replayed) -> Table:
    table = _table("What would have been (mean, 5th to 95th percentile of the seeds)")
    table.add_column()
    for forecast in replayed.forecasts:
        table.add_column(Text(forecast.policy), justify="right", overflow="fold")
    baseline = replayed.forecasts[0]
    for title, figure, ratio in _FIGURES:
        table.add_row(title, *(_seconds(forecast.over_seeds(figure)) for forecast in replayed.forecasts))
        changes = [_changes(Interval.of([ratio(c) for c in f.against(baseline)])) for f in replayed.forecasts[1:]]
        table.add_row("  change", words.DASH, *changes)
    table.add_row("shorter in", words.DASH, *(_wins(f, baseline) for f in replayed.forecasts[1:]))
    table.add_row("trials faster", words.DASH, *(_share(f, baseline) for f in replayed.forecasts[1:]))
    table.add_row("worst loser", words.DASH, *(_worst(f, baseline) for f in replayed.forecasts[1:]))
    table.add_row("moves", *(f"{_mean_moves(forecast):.1f}" for forecast in replayed.forecasts))
    return table


def _within(check: Validation) -> str:
    if all(range_.low == range_.high for range_ in check.completions.values()):
        return words.DASH
    trials = len(check.completions)
    return f"{trials - len(check.missed)} of {trials}"


def _table(title: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.title_justify = "left"
    return table


def _seconds(interval: Interval) -> str:
    return f"{words.seconds(interval.mean)} ({words.seconds(interval.low)} to {words.seconds(interval.high)})"


def _changes(ratios: Interval) -> str:
    return f"{words.change(ratios.mean)} ({words.change(ratios.low)} to {words.change(ratios.high)})"


def _wins(forecast: PolicyForecast, baseline: PolicyForecast) -> str:
    comparisons = forecast.against(baseline)
    return f"{sum(c.makespan_ratio < 1 for c in comparisons)} of {len(comparisons)} seeds"


def _share(forecast: PolicyForecast, baseline: PolicyForecast) -> str:
    return f"{statistics.fmean(c.faster_share for c in forecast.against(baseline)):.0%}"


def _worst(forecast: PolicyForecast, baseline: PolicyForecast) -> str:
    return words.change(statistics.median(c.worst_loser for c in forecast.against(baseline)))


def _mean_moves(forecast: PolicyForecast) -> float:
    return statistics.fmean(sum(trial.moves for trial in run.trials) for run in forecast.results)
