"""What becomes of the best model where trials may end early: regret, and when a good one is known. Pure.

Regret is the gap between the best final value of the trials that ended, and the best final value that any trial of the
sweep would have had, in percent of the gap between that and the median trial's.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from controllers.core.model import Direction, TrialId
from controllers.lab.simulation.measures import ComparedRun, RunMeasure
from controllers.policies.promote.curves import PARTS
from controllers.policies.promote.noise import deviation
from controllers.worlds.simulated.workload import CurvePoint, TrialSpec, Workload

_NEAR: Final = 1.0
"""Percent of regret at which a model is as good as the best."""
_ROUNDED: Final = 1e-9


def final_losses(workload: Workload) -> Mapping[str, float]:
    """Return the value at which each trial would end, so that smaller is better; those that diverge are left out."""
    losses = {str(trial.id): _loss(trial.reports[-1].value, trial.direction) for trial in workload.trials}
    return {name: loss for name, loss in losses.items() if math.isfinite(loss)}


def regret_percent(ran: ComparedRun) -> float | None:
    """Return the regret of a run in percent; None where all trials are equally good, or all diverge."""
    losses = final_losses(ran.workload)
    ended = [
        losses[trial.id]
        for trial in ran.run.result.trials
        if trial.succeeded and not trial.stopped and trial.id in losses
    ]
    if (scale := _scale(losses)) is None:
        return None
    # A sweep in which nothing came to its end has found nothing better than its worst trial.
    return 100 * (min(ended, default=max(losses.values())) - min(losses.values())) / scale


def lost_over(percent: float, ran: ComparedRun) -> float | None:
    """Return 1 where the regret of a run is more than that, else 0."""
    regret = regret_percent(ran)
    return None if regret is None else float(regret > percent)


def best_value_lost_over(percent: float, ran: ComparedRun) -> float | None:
    """Return 1 where the best value that any trial reported is worse by more than that, else 0.

    None where trials do not differ.
    """
    regret = best_value_regret_percent(ran)
    return None if regret is None else float(regret > percent)


def best_value_regret_percent(ran: ComparedRun) -> float | None:
    """Return how much worse the best value is that any trial reported than that of all trials trained to their end.

    It differs from ``regret_percent`` where trials get worse towards their end: a user who keeps the checkpoint of the
    best value has that of a trial that was stopped, too. The percent are of the gap between the best and the median
    trial's best value; None where trials do not differ.
    """
    bests = _best_losses(ran.workload)
    if (scale := _scale(bests)) is None:
        return None
    seen = (
        loss
        for trial in ran.workload.trials
        for loss in _finite(trial.reports[: len(ran.run.reported_at[trial.id])], trial.direction)
    )
    return 100 * (min(seen, default=math.inf) - min(bests.values())) / scale


def noise_percent(workload: Workload) -> float | None:
    """Return how far a reported value is off by chance, in percent of the same gap, as ``promote`` measures it.

    Standard deviation of a value; None where trials do not differ.
    """
    scale = _scale(_best_losses(workload))
    bends = [bend for trial in workload.trials for bend in _bends(trial)]
    return None if scale is None else 100 * deviation(bends) / scale


def _bends(trial: TrialSpec) -> Iterator[float]:
    """Yield how far the last value of each part of a training is off the line through those of the parts around it."""
    last = {int(PARTS * report.work_s / trial.work_s + _ROUNDED): report.value for report in trial.reports}
    values = [value for part, value in last.items() if part and math.isfinite(value)]
    threes = zip(values, values[1:], values[2:], strict=False)
    yield from (abs(after - 2 * value + before) for before, value, after in threes)


def _best_losses(workload: Workload) -> Mapping[TrialId, float]:
    return {trial.id: min(values) for trial in workload.trials if (values := _finite(trial.reports, trial.direction))}


def within_1_percent_at_s(ran: ComparedRun) -> float | None:
    """Return when a model within 1 % of the best was first known, in seconds; None where there never was one."""
    losses = final_losses(ran.workload)
    if (scale := _scale(losses)) is None:
        return None
    enough = min(losses.values()) + _NEAR / 100 * scale
    return min(
        (
            at
            for trial in ran.workload.trials
            for report, at in zip(trial.reports, ran.run.reported_at[trial.id], strict=False)
            if _loss(report.value, trial.direction) <= enough
        ),
        default=None,
    )


def beyond_chance_percent(ran: ComparedRun) -> float | None:
    """Return how much better the best model found is than the best of as many drawn by chance, in percent.

    The trials of the workload are those drawn by chance; the percent are of the gap between their median and their
    best. None where nothing ended.
    """
    losses, directions = final_losses(ran.workload), {trial.direction for trial in ran.workload.trials}
    ended = [
        loss
        for trial in ran.run.result.trials
        if trial.succeeded and not trial.stopped and trial.final_metric is not None
        if math.isfinite(loss := _loss(trial.final_metric, next(iter(directions))))
    ]
    scale = _scale(losses)
    return None if scale is None or not ended else 100 * (min(losses.values()) - min(ended)) / scale


def _finite(reports: Sequence[CurvePoint], direction: Direction) -> list[float]:
    return [loss for report in reports if math.isfinite(loss := _loss(report.value, direction))]


def _scale(losses: Mapping[Any, float]) -> float | None:
    scale = statistics.median(losses.values()) - min(losses.values()) if losses else 0.0
    return scale if scale > 0 else None


def _loss(value: float, direction: Direction) -> float:
    return value if direction is Direction.MINIMIZE else -value


BEST_MODELS: Final[Mapping[str, RunMeasure]] = {
    measure.name: measure
    for measure in (
        RunMeasure("regret_percent", "regret", "percent", regret_percent),
        RunMeasure("lost_over_1_percent", "regret > 1 %", "share", partial(lost_over, 1.0)),
        RunMeasure("lost_over_5_percent", "> 5 %", "share", partial(lost_over, 5.0)),
        RunMeasure(
            "best_value_lost_over_1_percent",
            "best value > 1 %",
            "share",
            partial(best_value_lost_over, 1.0),
            of_reports=True,
        ),
        RunMeasure("within_1_percent_at_s", "within 1 % at", "seconds", within_1_percent_at_s, of_reports=True),
    )
}
"""By name, as ``specon simulate --json`` writes them."""
SEARCHES: Final = (RunMeasure("beyond_chance_percent", "beyond chance", "percent", beyond_chance_percent),)
"""Of sweeps whose trials get their hyperparameters from a search."""
