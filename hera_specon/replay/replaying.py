"""From a past sweep to what other policies would have made of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from controllers.core.model import NodeName
from controllers.core.policy import Policy
from controllers.core.results import Comparison
from controllers.lab.simulation.past_sweeps.best_kept import best_kept
from controllers.lab.simulation.past_sweeps.forecast import Interval, PolicyForecast, Validation, forecast, validate
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep, PastSweepError
from controllers.lab.simulation.past_sweeps.recording import Recording, TargetCluster, record
from controllers.lab.simulation.past_sweeps.supply import with_measured_supply
from controllers.policies.kit.settings import PolicyError
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.workload import NodeSpec
from hera_specon.replay.sources import Past, source_of

COSTS: Final[Mapping[str, Callable[[], Costs]]] = {
    "local": Costs.local,
    "argo": Costs.argo,
    "thesis": Costs.thesis,
    "free": Costs.free,
}
"""What things may cost where the past sweep does not tell."""
MOST_BEATS: Final = 200_000
"""Looks at a sweep in its replay, at most: two days of one a second. Of longer sweeps, each is so much later."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A time that runs are judged by: its title, its name in ``RunResult``, and in ``Comparison`` that of its ratio."""

    title: str
    name: str
    ratio: str

    def over_seeds(self, forecast: PolicyForecast) -> Interval:
        """Return the time in seconds over the seeds of ``forecast``."""
        return forecast.over_seeds(lambda run: getattr(run, self.name))

    def change(self, comparisons: Sequence[Comparison]) -> Interval:
        """Return the ratio to the baseline over the seeds."""
        return Interval.of([getattr(comparison, self.ratio) for comparison in comparisons])


FIGURES: Final = (
    Figure("makespan", "makespan_s", "makespan_ratio"),
    Figure("mean completion", "mean_completion_s", "mean_ratio"),
    Figure("median completion", "median_completion_s", "median_ratio"),
)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What to simulate on: None for the nodes that it ran on, their size, and the costs of where it ran."""

    nodes: int | None
    cpus_per_node: float | None
    costs: str | None
    cores_per_trial: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of it. ``checks`` set each recorded run beside its own simulation."""

    source: PastSweep
    recording: Recording
    seeds: int
    checks: tuple[Validation, ...]
    forecasts: tuple[PolicyForecast, ...]


def replay(
    past: Past,
    what_if: WhatIf,
    policies: Mapping[str, Policy[Any]],
    seeds: int,
    advanced: Callable[[], None] = lambda: None,
) -> Replayed:
    """Simulate a past sweep under ``policies``, and as it was.

    Args:
        past: The sweep under each policy that it ran under.
        what_if: Where it is simulated.
        policies: By the lines that name them; the first is the baseline.
        seeds: How many times each is simulated.
        advanced: Called after each of ``simulations`` runs.

    Raises:
        SpeconError: Too little is known of the sweep, or a trial fits on no node.
    """
    source = source_of(past.sweeps)
    others = [sweep for sweep in past.sweeps if sweep is not source]
    costs = _with_beats_for(past, COSTS[what_if.costs or past.origin]())
    ground = TargetCluster(nodes_for(source, what_if), costs, what_if.cores_per_trial)
    checks = []
    for sweep in past.sweeps:
        as_it_was = replace(ground, nodes=with_measured_supply(sweep) if sweep.nodes else ground.nodes)
        recording = record(source, as_it_was, others)
        if sweep is source:
            # What its trials took in this very run is known, so there is no doubt about the work.
            recording = replace(recording, spread=dict.fromkeys(recording.spread, 0.0))
        checks += _validate(sweep, recording, seeds, advanced)
    recording = record(source, ground, others)
    # Of a policy, the record of a cluster keeps the name only.
    unknown = [sweep.policy for sweep in past.sweeps if past.origin == "argo" and sweep.policy not in {None, "default"}]
    assumed = [f"{name} is taken to have had its default parameters" for name in unknown]
    recording = replace(recording, assumptions=(*recording.assumptions, *assumed))
    return Replayed(source, recording, seeds, tuple(checks), tuple(forecast(recording, policies, seeds, advanced)))


def _with_beats_for(past: Past, costs: Costs) -> Costs:
    """Return ``costs`` with so few looks at a sweep of months that its replay ends: policies look at any beat."""
    lasted = max((trial.completed_at for sweep in past.sweeps for trial in sweep.trials), default=0.0)
    return replace(costs, heartbeat_s=max(costs.heartbeat_s, lasted / MOST_BEATS))


def simulations(past: Past, policies: Sequence[str], seeds: int) -> int:
    """Return how many runs ``replay`` simulates."""
    return (len(past.sweeps) + len(policies)) * seeds


def nodes_for(sweep: PastSweep, what_if: WhatIf) -> tuple[NodeSpec, ...]:
    """Return the nodes that were asked for, else those that the sweep ran on.

    Raises:
        PastSweepError: Neither is known.
    """
    if what_if.nodes is None and (what_if.cpus_per_node is None or sweep.nodes):
        kept = with_measured_supply(sweep)
        cpu = what_if.cpus_per_node
        return tuple(node if cpu in {None, node.cpu} else replace(node, cpu=cpu, supply=()) for node in kept)
    size = what_if.cpus_per_node or (sweep.nodes[0].cpu if sweep.nodes else None)
    if size is None or what_if.nodes is None:
        message = f"what sweep {sweep.name} ran on is not recorded: add --nodes and --cpus-per-node"
        raise PastSweepError(message)
    return tuple(NodeSpec(NodeName(f"node-{number}"), size) for number in range(1, what_if.nodes + 1))


def _validate(sweep: PastSweep, recording: Recording, seeds: int, advanced: Callable[[], None]) -> list[Validation]:
    """Return the sweep beside its simulation; nothing for a policy unknown here, since its name is MLflow's word."""
    name = sweep.policy or "default"
    try:
        policy = parse_policy(name)
    except PolicyError:
        return []
    return [validate(sweep, forecast(recording, {name: policy}, seeds, advanced)[0])]


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
        "checks": [
            {
                "policy": check.policy,
                "makespan_s": check.makespan_s,
                "simulated_makespan_s": asdict(check.simulated_makespan_s),
                "makespan_error": check.makespan_error,
                "mean_completion_error": check.mean_completion_error,
                "worst_completion_error": check.worst_completion_error,
                "completion_errors": dict(check.completion_errors),
                "missed": list(check.missed),
            }
            for check in replayed.checks
        ],
        "policies": [
            {
                "policy": forecast.policy,
                **{figure.name: asdict(figure.over_seeds(forecast)) for figure in FIGURES},
                "against": None if forecast is baseline else _against(baseline.policy, forecast.against(baseline)),
                "best_kept": None if (kept := best_kept(replayed.source, forecast)) is None else kept.to_dict(),
            }
            for forecast in replayed.forecasts
        ],
    }


def _against(baseline: str, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    return {
        "policy": baseline,
        **{figure.ratio: asdict(figure.change(comparisons)) for figure in FIGURES},
        "faster_share": asdict(Interval.of([c.faster_share for c in comparisons])),
        "worst_loser": asdict(Interval.of([c.worst_loser for c in comparisons])),
        "shorter_share": sum(c.makespan_ratio < 1 for c in comparisons) / len(comparisons),
    }
