"""The thesis's kinds of figures, drawn from simulated runs of one seed or figures over many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.experiments.svg import FAINT, INK, Axes, Canvas
from controllers.core.results import RunResult
from controllers.lab.simulation.evaluation import MeanOverSeeds
from controllers.lab.simulation.run import SimulatedRun
from hera_specon.records.history import SweepHistory, history
from hera_specon.report.gantt import bands
from hera_specon.report.style import CATEGORIES, LEAVING, POLICIES, UNASSESSED, category_colour, trial_colours

WIDTH = 900.0
_LANE = 12.0
_ALL_NUMBERED = 30
"""Trials up to which each has its number beneath."""


@dataclass(frozen=True)
class Bars:
    """One policy's bars: a name and a value for each trial."""

    name: str
    values: Sequence[float]


def completion_bars(title: str, groups: Sequence[Bars], colours: Sequence[str] = POLICIES) -> Canvas:
    """Draw the completion time of each trial under each policy (as Fig. 6.16 to 6.25)."""
    canvas = Canvas(WIDTH, 300)
    count = len(groups[0].values)
    top = max(max(group.values) for group in groups)
    axes = Axes(canvas, (50, 52, WIDTH - 70, 200), (0.4, count + 0.6), (0, top * 1.05))
    axes.draw("", "trial, in the order of submission", x_ticks=False)
    width = (axes.x(2) - axes.x(1)) * 0.8 / len(groups)
    for place, group in enumerate(groups):
        for number, value in enumerate(group.values, start=1):
            left = axes.x(number) - width * len(groups) / 2 + width * place
            canvas.rect(left, axes.y(value), width, axes.y(0) - axes.y(value), colours[place])
    for number in range(1, count + 1):
        if count <= _ALL_NUMBERED or number % 2:
            canvas.text(axes.x(number), 267, str(number), size=9, anchor="middle")
    canvas.text(50, 18, f"{title}: completion times, seconds", size=13)
    canvas.legend(50, 38, [(group.name, colours[place]) for place, group in enumerate(groups)])
    return canvas


def in_order(run: RunResult) -> list[float]:
    """Return the completion times in the order of submission."""
    return [trial.completion_s for trial in sorted(run.trials, key=lambda trial: trial.id)]


def trials_over_nodes(title: str, runs: Mapping[str, SimulatedRun]) -> Canvas:
    """Draw which trial was on which node when, under each policy (as Fig. 6.21 and 6.22)."""
    pasts = {name: history(run.timeline) for name, run in runs.items()}
    lanes = {name: sum(band.lanes for band in bands(past)) for name, past in pasts.items()}
    canvas = Canvas(WIDTH, 70 + sum(lanes.values()) * _LANE + 60 * len(runs))
    canvas.text(60, 18, title, size=13)
    names = [*CATEGORIES.items(), ("moving", LEAVING["moving"]), ("not judged", UNASSESSED)]
    canvas.legend(60, 38, names)
    end, top = max(past.end for past in pasts.values()), 66.0
    for name, past in pasts.items():
        height = lanes[name] * _LANE
        axes = Axes(canvas, (70, top, WIDTH - 90, height), (0, end), (lanes[name], 0))
        axes.draw(name, "seconds", y_ticks=False)
        _gantt(axes, past)
        top += height + 60
    return canvas


def cpu_over_time(title: str, runs: Mapping[str, SimulatedRun]) -> Canvas:
    """Draw the cores that each trial used, stacked (as Fig. 6.5 and 6.6)."""
    canvas = Canvas(WIDTH, 50 + 190 * len(runs))
    canvas.text(50, 18, title, size=13)
    end = max(max(event.at for event in run.timeline) for run in runs.values())
    colours = trial_colours(trial.id for run in runs.values() for trial in run.result.trials)
    for place, (name, run) in enumerate(runs.items()):
        axes = Axes(canvas, (50, 72 + 190 * place, WIDTH - 70, 105), (0, end), (0, 16.5))
        axes.draw(name, "seconds", "cores in use")
        _stacked(axes, history(run.timeline), colours)
    canvas.legend(50, 36, [(name, colours[name]) for name in sorted(colours)])
    return canvas


def sensitivity(
    title: str, x_title: str, ours: Sequence[tuple[float, MeanOverSeeds]], published: Sequence[tuple[float, float]]
) -> Canvas:
    """Draw the change of the mean completion time over a parameter, in per cent (Fig. 6.17, 6.18)."""
    canvas = Canvas(440, 280)
    known = [told.mean for _, told in ours] + [value for _, value in published]
    known += [bound for _, told in ours if told.ci95 for bound in told.ci95]
    low, high = min(known), max(0.0, *known)
    pad = (high - low) * 0.1
    least, most = ours[0][0], ours[-1][0]
    span = (most - least) * 0.06
    axes = Axes(canvas, (50, 60, 370, 165), (least - span, most + span), ((low - pad) * 100, (high + pad) * 100))
    axes.draw("", x_title)
    canvas.text(50, 18, title, size=13)
    canvas.line([(axes.x(least - span), axes.y(0)), (axes.x(most + span), axes.y(0))], INK, dash="3 3")
    for at, told in ours:
        for bottom, upper in [told.ci95] if told.ci95 else []:
            canvas.line([(axes.x(at), axes.y(bottom * 100)), (axes.x(at), axes.y(upper * 100))], POLICIES[1], 2)
        canvas.rect(axes.x(at) - 3.5, axes.y(told.mean * 100) - 3.5, 7, 7, POLICIES[1])
    for at, value in published:
        canvas.rect(axes.x(at) - 3.5, axes.y(value * 100) - 3.5, 7, 7, POLICIES[2])
    canvas.legend(50, 40, [("ours, with 95 % interval", POLICIES[1]), ("published", POLICIES[2])])
    return canvas


def _gantt(axes: Axes, past: SweepHistory) -> None:
    for band in bands(past):
        axes.canvas.text(axes.box[0] - 5, axes.y(band.top + band.lanes / 2) + 4, band.node, anchor="end")
        axes.canvas.line([(axes.box[0], axes.y(band.top)), (axes.box[0] + axes.box[2], axes.y(band.top))], FAINT)
        named: set[str] = set()
        for bar in sorted(band.bars, key=lambda bar: bar.stretch.start):
            one = bar.stretch
            x, y = axes.x(one.start), axes.y(band.top + bar.lane)
            axes.canvas.rect(x, y + 1, axes.x(one.end) - x, _LANE - 2, category_colour(one.phase, one.category))
            if one.trial not in named:
                named.add(one.trial)
                axes.canvas.text(x + 2, y + 10, _number(one.trial), size=9, colour="#ffffff")


def _number(trial: str) -> str:
    return trial.split("-")[1].lstrip("0")


def _stacked(axes: Axes, past: SweepHistory, colours: Mapping[str, str]) -> None:
    times = sorted({0.0, *(at for uses in past.usage.values() for at, _, _ in uses)})
    below = [0.0] * (len(times) - 1)
    for trial in sorted(past.usage):
        cores = [_used(past, trial, until) for until in times[1:]]
        above = [low + more for low, more in zip(below, cores, strict=True)]
        upper = [(x, axes.y(value)) for value, x in _corners(axes, times, above)]
        lower = [(x, axes.y(value)) for value, x in _corners(axes, times, below)]
        axes.canvas.area([*upper, *reversed(lower)], colours[trial])
        below = above


def _corners(axes: Axes, times: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    return [
        (value, axes.x(at))
        for (start, until), value in zip(pairwise(times), values, strict=True)
        for at in (start, until)
    ]


def _used(past: SweepHistory, trial: str, until: float) -> float:
    """Return the cores that ``trial`` used just before ``until``: each event tells of the time since the one before."""
    return next((cores for at, cores, _ in past.usage[trial] if at >= until), 0.0)
