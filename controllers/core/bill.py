"""What a sweep has cost so far: hours of nodes, at their prices. Pure.

A trial pays for the part of a node that it holds: of cores, memory and devices, that which it holds the most of. What
nobody holds stands idle, and costs as much. Nodes without one of the sweep's trials are not counted: others may use
them, or keep them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from controllers.core.model import Node, NodeName, Trial, TrialId
from controllers.core.results import RunResult

_HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Bill:
    """What each trial has cost until ``at`` (seconds of the sweep's clock), and what stood ``idle`` beside them.

    ``rates`` are what an hour of each trial costs as things stand, and ``idle_rate`` that of what stands idle. Amounts
    are in whatever currency the prices are.
    """

    at: float = 0.0
    trials: Mapping[TrialId, float] = field(default_factory=dict)
    idle: float = 0.0
    rates: Mapping[TrialId, float] = field(default_factory=dict)
    idle_rate: float = 0.0

    @property
    def known(self) -> bool:
        """Whether any price was known."""
        return bool(self.trials or self.rates)

    @property
    def spent(self) -> float | None:
        """What all of it has cost, None where no price is known."""
        return sum(self.trials.values()) + self.idle if self.known else None


def bill_after(now: float, trials: Iterable[Trial], nodes: Iterable[Node], before: Bill) -> Bill:
    """Return the bill at ``now``, after a look at the sweep.

    What has passed since the look before is paid by what was there then: a look follows every change.

    Args:
        now: Seconds of the sweep's clock.
        trials: Those that have not ended.
        nodes: All nodes; one without a price costs nothing that is known.
        before: The bill after the look before.
    """
    priced = {node.name: node for node in nodes if node.price is not None}
    if not priced and not before.known:
        return before
    hours = max(0.0, now - before.at) / _HOUR_S
    paid = dict(before.trials)
    for trial, rate in before.rates.items():
        paid[trial] = paid.get(trial, 0.0) + rate * hours
    rates, idle_rate = _rates(trials, priced)
    return Bill(now, paid, before.idle + before.idle_rate * hours, rates, idle_rate)


def _rates(trials: Iterable[Trial], priced: Mapping[NodeName, Node]) -> tuple[dict[TrialId, float], float]:
    """Return what an hour of each trial costs, and of what stands idle on the nodes where they are."""
    held: dict[NodeName, dict[TrialId, float]] = {}
    for trial in trials:
        for name in dict.fromkeys(trial.nodes) if trial.live else ():
            if name in priced:
                held.setdefault(name, {})[trial.id] = _part(trial, priced[name])
    rates: dict[TrialId, float] = {}
    idle_rate = 0.0
    for name, parts in held.items():
        price, whole = priced[name].price or 0.0, sum(parts.values())
        # Trials that hold unlike things, one most of the cores and another most of the memory, share the whole price.
        for trial_id, part in parts.items():
            rates[trial_id] = rates.get(trial_id, 0.0) + price * part / max(1.0, whole)
        idle_rate += price * max(0.0, 1.0 - whole)
    return rates, idle_rate


def _part(trial: Trial, node: Node) -> float:
    """Return the part of ``node`` that a trial holds, from 0 to 1."""
    workers = trial.nodes.count(node.name)
    asked = [(trial.cpu, node.cpu), (trial.memory, node.memory)]
    asked += [(count, node.devices.count(kind)) for kind, count in trial.devices.counts]
    return min(1.0, max(workers * some / total if total > 0 else 0.0 for some, total in asked))


def with_costs(result: RunResult, bill: Bill, short: Callable[[str], str]) -> RunResult:
    """Return ``result`` with what its trials cost; ``short`` gives the id that a trial has there."""
    if not bill.known:
        return result
    costs = {short(trial): cost for trial, cost in bill.trials.items()}
    trials = tuple(replace(trial, cost=costs.get(trial.id, 0.0)) for trial in result.trials)
    return replace(result, trials=trials, idle_cost=bill.idle)
