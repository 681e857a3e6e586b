"""Where the work is, while places and moves are chosen one after another. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from controllers.core.model import Migrate, NodeName, Phase, Place, Proposal, Snapshot, TrialId
from controllers.policies.ahead.forecast import Load, NodeForecast, cost_of, earliest_end, node_forecast
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.first_attempts import waits
from controllers.policies.kit.work_left import Estimate

CONSIDERED: Final = 8
"""Nodes that a place or a move looks at closely, on either side: in a large cluster the others are like these."""
LEAST_GAIN: Final = 0.01
"""Part of all that a state costs which a move must win at least: estimates are no better."""
NEARLY_DONE: Final = 2.0
"""A trial that has less left than this many times what a move costs stays: it would be done before it pays."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What a choice goes by.

    ``power`` is p of speed ~ cores ** p, ``end`` the weight of the sweep's end beside the mean completion time.
    ``move_cost`` is the seconds for which a trial that moves does not train.
    """

    power: float
    end: float
    move_cost: float


class WorkPlan:
    """The work on each node: of the trials that are there, that are on their way, and that start there.

    Args:
        snapshot: What there is.
        estimates: Of every trial that has not ended.
        starting: Where trials were placed that have yet to start.
        weights: What a choice goes by.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        estimates: Mapping[TrialId, Estimate],
        starting: Mapping[TrialId, NodeName],
        weights: Weights,
    ) -> None:
        self.cores = {node.name: node.cpu for node in snapshot.nodes if node.ready and node.cpu > 0}
        self._snapshot = snapshot
        self._estimates = estimates
        self._weights = weights
        self._capacity = Capacity.of(snapshot)
        self._loads: dict[NodeName, dict[TrialId, Load]] = {node: {} for node in self.cores}
        for name, one in estimates.items():
            trial = one.trial
            moving = trial.moving_to if trial.phase is Phase.MOVING else None
            node = moving or trial.node or starting.get(name)
            if node in self._loads:
                self._loads[node][name] = one.work, one.most
        self.forecasts = {node: self._forecast(node) for node in self._loads}

    def earliest_end(self, expected: float = 0.0) -> float:
        """Return the seconds until the whole sweep can be done at the earliest, with ``expected`` work yet to come."""
        loads = (load for on_it in self._loads.values() for load in on_it.values())
        return earliest_end(loads, self.cores.values(), self._weights.power, expected)

    def places(self) -> Iterator[Proposal]:
        """Yield a place for each trial that waits and fits somewhere, in the order of submission.

        It is the node on which it costs all trials the least; of several, the one with the fewest trials per core.
        """
        # Placing a trial only takes room away, so what does not fit now will not fit later in this decision.
        for trial in sorted(filter(waits, self._snapshot.unended), key=lambda trial: (trial.submitted_at, trial.id)):
            roomy = [node for node in self.cores if self._capacity.fits(trial, node)]
            near = sorted(roomy, key=lambda node: (self.forecasts[node].bound, len(self._loads[node]), node))
            one = self._estimates[trial.id]
            after = {node: self._forecast(node, (one.work, one.most)) for node in near[:CONSIDERED]}
            if not after:
                continue
            costs = {node: self._cost({node: forecast}) for node, forecast in after.items()}
            best = min(after, key=lambda node: (costs[node], len(self._loads[node]) / self.cores[node], node))
            self._capacity.apply(Place(trial.id, best))
            self._loads[best][trial.id] = one.work, one.most
            self.forecasts[best] = after[best]
            yield Proposal(Place(trial.id, best), f"placing: it costs all trials the least on {best}")

    def moves(self, movable: Collection[TrialId]) -> Iterator[Proposal]:
        """Yield moves of ``movable`` trials, the best first, each with those before it counted in, while they pay.

        At most a quarter of the trials that run are on their way at a time.
        """
        live = [trial for trial in self._snapshot.unended if trial.live]
        moving = sum(trial.phase is Phase.MOVING for trial in live)
        for _ in range(max(1, len(live) // 4) - moving):
            found = self._best_move(movable)
            if found is None:
                return
            gain, name, target = found
            trial = self._estimates[name].trial
            movable = [other for other in movable if other != name]
            for source in trial.nodes[:1]:
                del self._loads[source][name]
                self.forecasts[source] = self._forecast(source)
            self._capacity.apply(Migrate(name, target))
            self._loads[target][name] = self._moved(name, target)
            self.forecasts[target] = self._forecast(target)
            yield Proposal(Migrate(name, target), f"moving: on {target} it saves all trials {gain:.0f} s in sum")

    def _best_move(self, movable: Collection[TrialId]) -> tuple[float, TrialId, NodeName] | None:
        before = self._cost({})
        by_end = sorted(self.forecasts, key=lambda node: (self.forecasts[node].last, node))
        best: tuple[float, TrialId, NodeName] | None = None
        for source in by_end[::-1][:CONSIDERED]:
            for name in self._loads[source]:
                trial = self._estimates[name].trial
                if name not in movable or trial.node != source or not self._worth_moving(name):
                    continue
                without = self._forecast(source, leaving=name)
                for target in by_end[:CONSIDERED]:
                    if target == source or not self._capacity.fits(trial, target):
                        continue
                    changed = {source: without, target: self._forecast(target, self._moved(name, target))}
                    gain = before - self._cost(changed)
                    if best is None or (-gain, name, target) < (-best[0], best[1], best[2]):
                        best = gain, name, target
        pays = best is not None and best[0] > max(self._weights.move_cost, LEAST_GAIN * before)
        return best if pays else None

    def _worth_moving(self, name: TrialId) -> bool:
        one = self._estimates[name]
        return one.known and one.work / one.most**self._weights.power > NEARLY_DONE * self._weights.move_cost

    def _moved(self, name: TrialId, target: NodeName) -> Load:
        """Return the load of a trial that moves to ``target``: while it is on its way, it could have worked."""
        one, weights = self._estimates[name], self._weights
        return one.work + weights.move_cost * min(one.most, self.cores[target]) ** weights.power, one.most

    def _forecast(self, node: NodeName, *coming: Load, leaving: TrialId | None = None) -> NodeForecast:
        loads = [load for name, load in self._loads[node].items() if name != leaving]
        return node_forecast([*loads, *coming], self.cores[node], self._weights.power)

    def _cost(self, changed: Mapping[NodeName, NodeForecast]) -> float:
        forecasts = (changed.get(node, forecast) for node, forecast in self.forecasts.items())
        return cost_of(forecasts, len(self._estimates), self._weights.end)


def still_arriving(snapshot: Snapshot, submitted: tuple[float, ...]) -> bool:
    """Return whether more trials are to be expected: the last came not long ago, as the gaps between them go.

    Args:
        snapshot: What there is.
        submitted: When the newest trials were submitted, rising.
    """
    if len(submitted) < 3:  # noqa: PLR2004 - one gap says nothing of how long gaps are
        return False
    return snapshot.now - submitted[-1] < 3 * (submitted[-1] - submitted[0]) / (len(submitted) - 1)
