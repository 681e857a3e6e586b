"""From a past sweep to what other policies would have made of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from controllers.core.model import NodeName
from controllers.core.policy import Policy
from controllers.lab.simulation.past_sweeps.forecast import PolicyForecast, Validation, forecast, validate
from controllers.lab.simulation.past_sweeps.past_sweep import PastSweep, PastSweepError
from controllers.lab.simulation.past_sweeps.recording import Recording, TargetCluster, record
from controllers.lab.simulation.past_sweeps.supply import with_measured_supply
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
    target = TargetCluster(nodes_for(source, what_if), _costs(past, what_if), what_if.cores_per_trial)
    checks = []
    for sweep in past.sweeps:
        as_it_was = record(source, replace(target, nodes=_as_it_was(sweep, target)), others)
        checks += _checked(sweep, _certain(as_it_was) if sweep is source else as_it_was, seeds, advanced)
    recording = record(source, target, others)
    recording = replace(recording, assumptions=(*recording.assumptions, *_about_parameters(past)))
    return Replayed(source, recording, seeds, tuple(checks), tuple(forecast(recording, policies, seeds, advanced)))


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
        return kept if what_if.cpus_per_node is None else _resized(kept, what_if.cpus_per_node)
    size = what_if.cpus_per_node or (sweep.nodes[0].cpu if sweep.nodes else None)
    if size is None or what_if.nodes is None:
        message = f"what sweep {sweep.name} ran on is not recorded: add --nodes and --cpus-per-node"
        raise PastSweepError(message)
    return tuple(NodeSpec(NodeName(f"node-{number}"), size) for number in range(1, what_if.nodes + 1))


def _resized(nodes: Sequence[NodeSpec], cpu: float) -> tuple[NodeSpec, ...]:
    return tuple(node if node.cpu == cpu else replace(node, cpu=cpu, supply=()) for node in nodes)


def _as_it_was(sweep: PastSweep, target: TargetCluster) -> tuple[NodeSpec, ...]:
    return with_measured_supply(sweep) if sweep.nodes else target.nodes


def _costs(past: Past, what_if: WhatIf) -> Costs:
    return COSTS[what_if.costs or past.origin]()


def _certain(recording: Recording) -> Recording:
    """Return the recording without any doubt about the work: what it took in this very run is known."""
    return replace(recording, spread=dict.fromkeys(recording.spread, 0.0))


def _about_parameters(past: Past) -> list[str]:
    """Return what is taken for granted of policies of which a cluster's record keeps the name only."""
    names = [sweep.policy for sweep in past.sweeps if past.origin == "argo" and sweep.policy not in {None, "default"}]
    return [f"{name} is taken to have had its default parameters" for name in names]


def _checked(sweep: PastSweep, recording: Recording, seeds: int, advanced: Callable[[], None]) -> list[Validation]:
    """Return the sweep beside its simulation; nothing for a policy unknown here, since its name is MLflow's word."""
    name = sweep.policy or "default"
    try:
        policy = parse_policy(name)
    except ValueError:
        return []
    return [validate(sweep, forecast(recording, {name: policy}, seeds, advanced)[0])]
