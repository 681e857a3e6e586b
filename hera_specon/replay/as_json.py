"""A replay as ``specon replay --json`` writes it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from controllers.core.results import Comparison
from controllers.lab.simulation.past_sweeps.forecast import Interval, PolicyForecast, Validation
from hera_specon.replay.replaying import Replayed


def to_json(replayed: Replayed) -> dict[str, Any]:
    """Return the figures: each a mean with the 5th and 95th percentile over the seeds, changes as ratios."""
    baseline = replayed.forecasts[0]
    return {
        "sweep": replayed.source.name,
        "trials": len(replayed.source.trials),
        "nodes": {node.name: node.cpu for node in replayed.recording.workload.nodes},
        "seeds": replayed.seeds,
        "assumptions": list(replayed.recording.assumptions),
        "left_out": list(replayed.source.left_out),
        "costs": asdict(replayed.recording.costs),
        "checks": [_check(check) for check in replayed.checks],
        "policies": [_forecast(forecast, baseline) for forecast in replayed.forecasts],
    }


def _check(check: Validation) -> dict[str, Any]:
    return {
        "policy": check.policy,
        "makespan_s": check.makespan_s,
        "simulated_makespan_s": asdict(check.simulated_makespan_s),
        "makespan_error": check.makespan_error,
        "mean_completion_error": check.mean_completion_error,
        "worst_completion_error": check.worst_completion_error,
        "completion_errors": dict(check.completion_errors),
        "missed": list(check.missed),
    }


def _forecast(forecast: PolicyForecast, baseline: PolicyForecast) -> dict[str, Any]:
    return {
        "policy": forecast.policy,
        "makespan_s": asdict(forecast.over_seeds(lambda run: run.makespan_s)),
        "mean_completion_s": asdict(forecast.over_seeds(lambda run: run.mean_completion_s)),
        "median_completion_s": asdict(forecast.over_seeds(lambda run: run.median_completion_s)),
        "against": None if forecast is baseline else _against(baseline.policy, forecast.against(baseline)),
    }


def _against(baseline: str, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    figures = ("makespan_ratio", "mean_ratio", "median_ratio", "faster_share", "worst_loser")
    return {
        "policy": baseline,
        **{name: asdict(Interval.of([getattr(c, name) for c in comparisons])) for name in figures},
        "shorter_share": sum(c.makespan_ratio < 1 for c in comparisons) / len(comparisons),
    }
