"""The cores of a node that nobody asked for: those whose policies change shares have them by weight."""

from collections.abc import Mapping, Sequence

from controllers.core.model import NodeName
from controllers.policies.arbiter.demands import SweepDemand
from controllers.policies.arbiter.filling import Line


def spare_cores(
    lines: Sequence[Line], free: Mapping[NodeName, float], weights: Mapping[str, float]
) -> dict[NodeName, dict[str, float]]:
    """Return, for each node that several sweeps grow on, the cores beyond their requests that each may have there.

    Nobody gets more than its trials can use; what one leaves, the others share by weight.

    Args:
        lines: What each sweep keeps.
        free: The cores of each node that nobody asked for.
        weights: By the sweep's name.
    """
    growing: dict[NodeName, dict[str, float]] = {}
    for line in lines:
        for trial in line.kept if line.sweep.grows else ():
            for name in trial.nodes:
                wants = growing.setdefault(name, {})
                wants[line.sweep.name] = wants.get(line.sweep.name, 0.0) + max(0.0, trial.most_cpu - trial.each.cpu)
    return {
        name: _by_weight(wants, max(0.0, free[name]), weights)
        for name, wants in sorted(growing.items())
        if len(wants) > 1 and name in free
    }


def cores_now(sweep: SweepDemand) -> dict[NodeName, float]:
    """Return the cores that the sweep's trials have on each node."""
    found: dict[NodeName, float] = {}
    for trial in sweep.trials:
        for name in trial.nodes:
            found[name] = found.get(name, 0.0) + trial.cpu
    return found


def _by_weight(wants: Mapping[str, float], cores: float, weights: Mapping[str, float]) -> dict[str, float]:
    given = dict.fromkeys(wants, 0.0)
    left, weight_left = cores, sum(weights[name] for name in wants)
    for name in sorted(wants, key=lambda name: (wants[name] / weights[name], name)):
        given[name] = min(wants[name], left * weights[name] / weight_left)
        left -= given[name]
        weight_left -= weights[name]
    return given
