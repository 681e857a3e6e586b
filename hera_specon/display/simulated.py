"""Tables of what was simulated: experiments over many seeds, and replays of past sweeps."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from controllers.lab.simulation.evaluation import MeanOverSeeds, PolicySummary
from controllers.lab.simulation.experiments.experiment import Published, Setup
from controllers.lab.simulation.measures import RunMeasure, Unit
from controllers.lab.simulation.past_sweeps.best_kept import BestKept, best_kept
from controllers.lab.simulation.past_sweeps.forecast import Interval, PolicyForecast, Validation
from controllers.policies.registry import parse_policy, policy_spec
from hera_specon import formatting
from hera_specon.replay.replaying import FIGURES, Replayed

TITLES = (
    "makespan", "change", "mean", "change", "median", "faster", "worst loser", "x bound", "mean x bound", "moves",
    "resizes",
)  # fmt: skip
"""Of the columns that every experiment has, after the policy and the experiment's own measures."""


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """A line: ours, or what was ``published`` of the policy in the line above."""

    cells: tuple[str, ...]
    published: bool = False


def experiment_rows(experiment: Setup, summaries: Sequence[PolicySummary]) -> list[ExperimentRow]:
    """Return the lines of one experiment's table, under ``titles``."""
    rows: list[ExperimentRow] = []
    known = {_canonical(told.policy): told for told in experiment.published}
    default = next((told for told in experiment.published if told.policy == "default"), None)
    for summary in summaries:
        rows.append(ExperimentRow(_ours(summary, experiment)))
        told = known.get(summary.effective)
        if told is not None:
            rows.append(ExperimentRow(_published_row(told, default, experiment), published=True))
    return [row for row in rows if not row.published or set(row.cells[1:]) != {formatting.DASH}]


def titles(experiment: Setup) -> tuple[str, ...]:
    """Return what stands above the columns."""
    return ("policy", *(measure.title for measure in experiment.measures), *TITLES)


def cut_short_told(summaries: Sequence[PolicySummary]) -> str:
    """Return which part of the trials each policy, or a rule, ended early; empty where all trained to their end."""
    told = [(summary.policy, summary.over_seeds(lambda run: run.cut_short)) for summary in summaries]
    parts = [f"{_share(mean)} under {policy}" for policy, mean in told if mean is not None and mean.mean > 0]
    if not parts:
        return ""
    return (
        f"Ended early, or never begun, of the trials: {', '.join(parts)}. Their times count up to then; "
        '"x bound" and published figures are of whole trainings.'
    )


def experiment_table(experiment: Setup, summaries: Sequence[PolicySummary]) -> Table:
    """Return the table of one experiment; what was ended early stands below it."""
    seeds = summaries[0].seeds
    title = f"{experiment.id}: {experiment.title} ({seeds} seed{'s' * (seeds > 1)})"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.caption, table.caption_justify = cut_short_told(summaries) or None, "left"
    for number, title in enumerate(titles(experiment)):
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    for row in experiment_rows(experiment, summaries):
        table.add_row(*(Text(cell, style="dim" if row.published else "") for cell in row.cells))
    return table


def _canonical(spec: str) -> str:
    return policy_spec(parse_policy(spec))


def _ours(summary: PolicySummary, experiment: Setup) -> tuple[str, ...]:
    against = not summary.baseline
    return (
        summary.policy if summary.effective == _canonical(summary.policy) else summary.effective,
        *(_format_measure(summary, measure) for measure in experiment.measures),
        _one_place(summary.over_seeds(lambda run: run.makespan_s)),
        _percent(summary.over_seeds(lambda run: run.makespan_change) if against else None),
        _one_place(summary.over_seeds(lambda run: run.mean_completion_s)),
        _percent(summary.over_seeds(lambda run: run.mean_change) if against else None),
        _one_place(summary.over_seeds(lambda run: run.median_completion_s)),
        _share(summary.over_seeds(lambda run: run.faster_share) if against else None),
        _two_places(summary.over_seeds(lambda run: run.worst_loser) if against else None),
        _two_places(summary.over_seeds(lambda run: run.bound_ratio)),
        _two_places(summary.over_seeds(lambda run: run.mean_bound_ratio)),
        _count(summary.over_seeds(lambda run: run.moves)),
        _count(summary.over_seeds(lambda run: run.resizes)),
    )


def _format_measure(summary: PolicySummary, measure: RunMeasure) -> str:
    return _WITH_REACH[measure.unit](summary.over_seeds(lambda run: run.measures[measure.name]))


def _published_row(told: Published, default: Published | None, experiment: Setup) -> tuple[str, ...]:
    return (
        "  published",
        *(_published_cell(told, measure) for measure in experiment.measures),
        _number(told.makespan_s),
        _change(told.makespan_change, told.makespan_s, None if default is None else default.makespan_s),
        _number(told.mean_completion_s),
        _change(told.mean_change, told.mean_completion_s, None if default is None else default.mean_completion_s),
        _number(told.median_completion_s),
        formatting.DASH if told.faster is None else _share_alone(told.faster),
        formatting.DASH if told.worst_loser is None else f"{told.worst_loser:.2f}",
        *(formatting.DASH,) * 4,
    )


def _published_cell(told: Published, measure: RunMeasure) -> str:
    value = told.measures.get(measure.name)
    return formatting.DASH if value is None else _ALONE[measure.unit](value)


def _change(change: float | None, value: float | None, default: float | None) -> str:
    if change is None and value is not None and default is not None and value != default:
        change = value / default - 1
    return formatting.DASH if change is None else _part(change)


def _part(change: float) -> str:
    return f"{change * 100:+.1f} %"


def _number(value: float | None) -> str:
    return formatting.DASH if value is None else f"{value:.1f}"


def _share_alone(share: float) -> str:
    return f"{share * 100:.0f} %"


def _one_place(mean: MeanOverSeeds | None) -> str:
    return _with_reach(mean, lambda value: f"{value:.1f}")


def _two_places(mean: MeanOverSeeds | None) -> str:
    return _with_reach(mean, lambda value: f"{value:.2f}")


def _count(mean: MeanOverSeeds | None) -> str:
    return formatting.DASH if mean is None else f"{mean.mean:.1f}"


def _percent(mean: MeanOverSeeds | None) -> str:
    return _with_reach(mean, lambda value: f"{value * 100:.1f}", signed=True, unit=" %")


def _share(mean: MeanOverSeeds | None) -> str:
    return _with_reach(mean, lambda value: f"{value * 100:.0f}", unit=" %")


def _finer_share(mean: MeanOverSeeds | None) -> str:
    return _with_reach(mean, lambda value: f"{value * 100:.1f}", unit=" %")


def _with_reach(
    mean: MeanOverSeeds | None, told: Callable[[float], str], *, signed: bool = False, unit: str = ""
) -> str:
    if mean is None:
        return formatting.DASH
    value = told(mean.mean)
    if float(value) == 0:
        value = value.removeprefix("-")
    sign = "+" if signed and mean.mean > 0 and float(value) > 0 else ""
    reach = "" if mean.half_width is None else f" \N{PLUS-MINUS SIGN}{told(mean.half_width)}"
    return f"{sign}{value}{reach}{unit}"


_WITH_REACH: Mapping[Unit, Callable[[MeanOverSeeds | None], str]] = {
    "share": _finer_share,
    "change": _percent,
    "seconds": _one_place,
    "trials": _two_places,
    "percent": lambda mean: _with_reach(mean, lambda value: f"{value:.2f}", unit=" %"),
    "hours": _two_places,
    "money": _two_places,
    "number": _one_place,
}
_ALONE: Mapping[Unit, Callable[[float], str]] = {
    "share": _share_alone,
    "change": _part,
    "seconds": _number,
    "trials": _number,
    "percent": _number,
    "hours": _number,
    "money": _number,
    "number": _number,
}


def replay_view(replayed: Replayed) -> RenderableType:
    """Return everything that is to be said about a replay."""
    source = replayed.source
    head = f"{source.name}: {len(source.trials)} trials, simulated with {replayed.seeds} seeds on"
    nodes = replayed.recording.workload.nodes
    return Group(
        Text(f"{head} {len(nodes)} nodes of {formatting.cores(sum(node.cpu for node in nodes))} cores together"),
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
        claim = (
            f"{forecast.policy} would have changed the makespan by {_change_range(change)} against {baseline.policy}"
        )
        if change.low <= 1 <= change.high:
            yield f"{claim}, shorter in {_wins(forecast, baseline)}: this may make no difference."
        elif math.isinf(off):
            yield f"{claim}; how far the simulation is from what really happened is not known."
        elif off > abs(change.mean - 1):
            yield f"{claim}; but the simulation is {off:.1%} off what really happened, so this proves nothing."
        else:
            yield f"{claim}; the simulation is {off:.1%} off what really happened."


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
        "makespan": lambda check: formatting.seconds(check.makespan_s),
        "simulated": lambda check: _range(check.simulated_makespan_s),
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
    for figure in FIGURES:
        table.add_row(figure.title, *(_range(figure.over_seeds(forecast)) for forecast in replayed.forecasts))
        changes = [_change_range(figure.change(forecast.against(baseline))) for forecast in replayed.forecasts[1:]]
        table.add_row("  change", formatting.DASH, *changes)
    table.add_row("shorter in", formatting.DASH, *(_wins(f, baseline) for f in replayed.forecasts[1:]))
    table.add_row(
        "trials faster",
        formatting.DASH,
        *(f"{statistics.fmean(c.faster_share for c in f.against(baseline)):.0%}" for f in replayed.forecasts[1:]),
    )
    table.add_row(
        "worst loser",
        formatting.DASH,
        *(
            formatting.change(statistics.median(c.worst_loser for c in f.against(baseline)))
            for f in replayed.forecasts[1:]
        ),
    )
    table.add_row(
        "moves",
        *(
            f"{statistics.fmean(sum(trial.moves for trial in run.trials) for run in forecast.results):.1f}"
            for forecast in replayed.forecasts
        ),
    )
    kept = [best_kept(replayed.source, forecast) for forecast in replayed.forecasts]
    if any(kept):
        rows: dict[str, Callable[[BestKept], str]] = {
            "best model kept": lambda best: f"in {best.kept_share:.0%} of seeds",
            "  regret": lambda best: f"{best.regret_percent.mean:.2f} % (to {best.regret_percent.high:.2f})",
            "more than 1 % better missed": lambda best: _missed(best.missed_share),
            "  and than the noise": lambda best: _missed(best.missed_beyond_noise_share),
            "trials ended early": lambda best: f"{best.stopped.mean:.1f}",
        }
        for title, cell in rows.items():
            table.add_row(title, *(formatting.DASH if best is None else cell(best) for best in kept))
    return table


def _missed(share: float | None) -> str:
    return formatting.DASH if share is None else f"in {share:.0%} of seeds"


def _within(check: Validation) -> str:
    if all(range_.low == range_.high for range_ in check.completions.values()):
        return formatting.DASH
    trials = len(check.completions)
    return f"{trials - len(check.missed)} of {trials}"


def _table(title: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.title_justify = "left"
    return table


def _range(interval: Interval) -> str:
    low, high = formatting.seconds(interval.low), formatting.seconds(interval.high)
    return f"{formatting.seconds(interval.mean)} ({low} to {high})"


def _change_range(ratios: Interval) -> str:
    return f"{formatting.change(ratios.mean)} ({formatting.change(ratios.low)} to {formatting.change(ratios.high)})"


def _wins(forecast: PolicyForecast, baseline: PolicyForecast) -> str:
    comparisons = forecast.against(baseline)
    return f"{sum(c.makespan_ratio < 1 for c in comparisons)} of {len(comparisons)} seeds"
