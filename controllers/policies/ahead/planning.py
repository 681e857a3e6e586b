"""Where the work is, while places and moves are chosen one after another. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Final

from controllers.core.actions import Migrate, Place, Proposal
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.ahead.forecast import Load, NodeForecast, earliest_end, node_forecast
from controllers.policies.ahead.order import Length, Queue, Waiting, starting_order
from controllers.policies.ahead.room import Exchange, exchanges, seconds_until_room
from controllers.policies.ahead.tally import NodeLine, Tally
from controllers.policies.kit.capacity import Capacity, RequestShape, request_shape
from controllers.policies.kit.most_cores import UNUSED
from controllers.policies.kit.places import waiting
from controllers.policies.kit.work_left import Estimate

CONSIDERED: Final = 4
"""Nodes of each size that a place or a move looks at closely: in a large cluster the others are like these."""
LEAST_GAIN: Final = 0.01
"""Part of all that a state costs which a move must win at least: estimates are no better."""
WORTH: Final = 2.0
"""A move must save all trials this many times what it costs the one that moves: both are estimates."""
NEARLY_DONE: Final = 2.0
"""A trial that has less left than this many times what a move costs stays: it would be done before it pays."""
MOST_SPREAD: Final = 0.6
"""The spread of a length counts up to here, so that a trial about which little is known does not outweigh all."""
MUCH_CONTENTION: Final = 0.05
"""Part of its speed that a trial loses to each further one from which on trials wait rather than share a full node."""
WIDEST: Final = 4.0
"""A trial counts as at most this many times as wide as the mean of those that wait: so others stop overtaking it."""
MOST_HELPED: Final = 16
"""Trials for which room is made in one decision, so that none takes long: the others come next."""
LOOKED_AT: Final = 16
"""Moves that would make room for a trial are looked at up to this number, and the best of them is taken."""
_LEAVING: Final = frozenset({Phase.MOVING, Phase.SUSPENDING, Phase.STOPPING})


@dataclass(frozen=True, slots=True)
class Weights:
    """What a choice goes by.

    ``power`` is p of speed ~ cores ** p, ``contention`` the part of its speed that each further trial costs a trial of
    the same node. ``end`` is the weight of the sweep's end beside the mean completion time. ``move_cost`` is the
    seconds for which a trial that moves does not train.
    """

    power: float
    contention: float
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
        self.cores = {node.name: node.supplied for node in snapshot.nodes if node.ready and node.supplied > 0}
        self._snapshot = snapshot
        self._estimates = estimates
        self._weights = weights
        self._capacity = Capacity.of(snapshot)
        self._loads: dict[NodeName, dict[TrialId, Load]] = {node: {} for node in self.cores}
        for name, estimate in estimates.items():
            trial = estimate.trial
            if trial.phase in {Phase.SUSPENDING, Phase.STOPPING}:
                continue  # What it has left will not be done there.
            moving = trial.moving_to if trial.phase is Phase.MOVING else None
            node = moving or trial.node or starting.get(name)
            if node in self._loads:
                self._loads[node][name] = estimate.work, estimate.most
        self._unplaced: list[Trial] = []
        nodes = {node: (self._forecast(node), len(loads)) for node, loads in self._loads.items()}
        self._tally = Tally(nodes, self.cores, len(estimates), weights.end)

    @property
    def forecasts(self) -> Mapping[NodeName, NodeForecast]:
        """What each node comes to."""
        return self._tally.forecasts

    def earliest_end(self, expected: float = 0.0) -> float:
        """Return the seconds until the whole sweep can be done at the earliest, with ``expected`` work yet to come."""
        loads = ((estimate.work, estimate.most) for estimate in self._estimates.values())
        return earliest_end(loads, self.cores.values(), self._weights.power, expected)

    def places(self) -> Iterator[Proposal]:
        """Yield a place for each trial that waits and fits somewhere, in the order of ``starting_order``.

        It is the node on which it costs all trials the least. Of several, it is the one where the most cores are left
        over, as the trial may be able to use more than is known. A trial that fits nowhere waits on and does not hold
        up a smaller one.
        """
        lines: dict[RequestShape, NodeLine] = {}
        for name in starting_order(self._queues(), protect_end=self._weights.end > 0):
            trial, estimate = self._estimates[name].trial, self._estimates[name]
            shape = request_shape(trial)
            if shape not in lines:
                lines[shape] = NodeLine(self._tally, partial(self._has_room, trial))
            near = lines[shape].first(CONSIDERED)
            if not near:
                self._unplaced.append(trial)
                continue
            after = {node: self._forecast(node, (estimate.work, estimate.most)) for node in near}
            costs = {node: self._tally.cost({node: forecast}) for node, forecast in after.items()}
            best = min(after, key=lambda node: (costs[node], -self._unused(node), self._crowded(node), node))
            place = Place.on(best, trial)
            self._capacity.apply(place)
            self._loads[best][name] = estimate.work, estimate.most
            self._tally.change(best, after[best], len(self._loads[best]))
            yield Proposal(place, f"placing: it costs all trials the least on {best}")

    def _unused(self, node: NodeName) -> float:
        """Return the cores that the trials of ``node`` cannot use, below 0 where they could use more than there are."""
        return self.cores[node] - math.fsum(most for _, most in self._loads[node].values())

    def _crowded(self, node: NodeName) -> float:
        return len(self._loads[node]) / self.cores[node]

    def _has_room(self, trial: Trial, node: NodeName) -> bool:
        return self._capacity.fits(trial, node) and not self._held_back(node)

    def _held_back(self, node: NodeName) -> bool:
        """Whether one more trial would only slow down those of ``node``: they can use all of it, and contend for it."""
        if self._weights.contention < MUCH_CONTENTION:
            return False
        return self._unused(node) <= 0

    def nodes_of_trials(self) -> dict[TrialId, NodeName]:
        """Return the node on which each trial counts, with the places and moves that were chosen so far."""
        return {name: node for node, loads in self._loads.items() for name in loads}

    def moves_to_idle_nodes(self, movable: Iterable[TrialId]) -> Iterator[Proposal]:
        """Yield moves of ``movable`` trials that pay, each to a node where there is no other."""
        return self._saving_time({*movable}, only_idle=True)

    def tries_elsewhere(self, movable: Iterable[TrialId], shown: Mapping[TrialId, float]) -> Iterator[Proposal]:
        """Yield a move to an idle node for the longest of ``movable`` on each node, where it uses little of the node.

        Where nothing tells of others on a node, only that shows whether it is the trial that can use no more. ``shown``
        are the cores that each was seen to be able to use.
        """
        idle = sorted(node for node in self.cores if not self._loads[node])
        tried: set[NodeName] = set()
        for name in sorted(movable, key=lambda name: (-self._estimates[name].work, name)):
            estimate, source = self._estimates[name], self._estimates[name].trial.node
            target = next((node for node in idle if self._capacity.fits(estimate.trial, node)), None)
            if target is None or source in tried or source not in self.cores or name not in self._loads[source]:
                continue
            here, there = (
                estimate.work / math.pow(cores, self._weights.power) for cores in (shown[name], estimate.most)
            )
            little = shown[name] < UNUSED * self.cores[source]
            if little and here - there > (1 + WORTH) * self._weights.move_cost:
                idle.remove(target)
                tried.add(source)
                move = self._move(name, target)
                yield Proposal(move, f"moving: it uses {shown[name]:.2g} cores, perhaps by its node")

    def moves(self, movable: Iterable[TrialId]) -> Iterator[Proposal]:
        """Yield moves of ``movable`` trials that pay, each with those before it counted in.

        First those that make room for the trials that ``places`` found none for, then those that save all trials the
        most. At most a quarter of the trials that run are on their way at a time.
        """
        live, left = [trial for trial in self._snapshot.unended if trial.live], set(movable)
        most = max(1, len(live) // 4) - sum(trial.phase is Phase.MOVING for trial in live)
        return islice(chain(self._making_room(left), self._saving_time(left)), max(0, most))

    def _making_room(self, movable: set[TrialId]) -> Iterator[Proposal]:
        """Yield a move for each trial that fits nowhere and would start far sooner by it."""
        if not movable or not self._unplaced:
            return
        later, ends = self._capacity.copy(), self._ends()
        for trial in self._snapshot.unended:
            if trial.phase in _LEAVING:
                later.release(trial, trial.nodes)
        hopeless: set[RequestShape] = set()
        helpable = (trial for trial in self._unplaced if not trial.gang and request_shape(trial) not in hopeless)
        for trial in islice(helpable, MOST_HELPED):
            node = next((node for node in ends if later.fits(trial, node)), None)
            if node is None:
                wait = seconds_until_room(trial, ends, later)
                exchange = self._best_exchange(wait, islice(exchanges(trial, ends, later, movable), LOOKED_AT))
                if exchange is None:
                    hopeless.add(request_shape(trial))
                    continue
                moved, node, target = exchange
                movable.remove(moved.id)
                ends[node].remove(next(end for end in ends[node] if end[1] is moved))
                move = self._move(moved.id, target)
                later.apply(move)
                later.release(moved, (node,))
                why = f"moving: {trial.id} gets room on {node}, for which it would wait {wait:.0f} s at least"
                yield Proposal(move, why)
            later.apply(Place.on(node, trial))

    def _ends(self) -> dict[NodeName, list[tuple[float, Trial]]]:
        """Return the trials of each node that do not leave it yet, the first that can have ended first."""
        ends: dict[NodeName, list[tuple[float, Trial]]] = {node: [] for node in self.cores}
        for name, estimate in self._estimates.items():
            for node in sorted(set(estimate.trial.nodes)) if estimate.trial.phase not in _LEAVING else ():
                if node in ends:
                    ends[node].append((self._length(name, self.cores[node]).seconds, estimate.trial))
        for line in ends.values():
            line.sort(key=lambda end: (end[0], end[1].id))
        return ends

    def _best_exchange(self, wait: float, possible: Iterable[Exchange]) -> Exchange | None:
        """Return the exchange that costs those that run the least, if it costs far less than the ``wait`` it saves."""
        before, cost = self._tally.cost({}), self._weights.move_cost
        best: tuple[float, Exchange] | None = None
        for exchange in possible if wait > (1 + WORTH) * cost else ():
            if self._worth_moving(exchange.trial.id):
                gain = wait - cost + before - self._cost_of_move(exchange.trial.id, exchange.source, exchange.target)
                if best is None or gain > best[0]:
                    best = gain, exchange
        return best[1] if best is not None and best[0] > WORTH * cost else None

    def _saving_time(self, movable: set[TrialId], *, only_idle: bool = False) -> Iterator[Proposal]:
        while best := self._best_move(movable, only_idle=only_idle):
            gain, name, target = best
            movable.remove(name)
            yield Proposal(self._move(name, target), f"moving: on {target} it saves all trials {gain:.0f} s in sum")

    def _move(self, name: TrialId, target: NodeName) -> Migrate:
        """Count a trial as on its way to ``target``; return its move."""
        trial = self._estimates[name].trial
        for source in trial.nodes[:1]:
            del self._loads[source][name]
            self._count(source)
        move = Migrate.to(target, trial)
        self._capacity.apply(move)
        self._loads[target][name] = self._moved(name, target)
        self._count(target)
        return move

    def _queues(self) -> list[Queue]:
        """Return the trials that wait, those that ask for the same together, each with what there is for them."""
        queues: dict[RequestShape, list[Trial]] = {}
        for trial in waiting(self._snapshot):
            queues.setdefault(_authors_shape(trial), []).append(trial)
        if not queues:
            return []
        busy: dict[RequestShape, list[Length]] = {shape: [] for shape in queues}
        for node, loads in self._loads.items():
            for name in loads:
                if (shape := _authors_shape(self._estimates[name].trial)) in busy:
                    busy[shape].append(self._length(name, self.cores[node]))
        ended = Counter(_authors_shape(trial) for trial in self._snapshot.trials if trial.phase.ended)
        largest = max(self.cores.values(), default=1.0)
        parts = {shape: self._part(shape) for shape in queues}
        mean = sum(parts[shape] * len(trials) for shape, trials in queues.items()) / sum(map(len, queues.values()))
        wide = {shape: min(WIDEST, part / mean) if mean else 1.0 for shape, part in parts.items()}
        return [
            Queue(
                [
                    Waiting(trial.id, trial.submitted_at, self._length(trial.id, largest), wide[shape])
                    for trial in trials
                ],
                busy[shape],
                sum(self._capacity.room(trials[0], node) for node in self.cores),
                ended[shape],
            )
            for shape, trials in queues.items()
        ]

    def _part(self, shape: RequestShape) -> float:
        """Return the part of all nodes that a trial asks for, of what it asks the greatest part of."""
        cpu, memory, devices, _ = shape
        nodes = [node for node in self._snapshot.nodes if node.name in self.cores]
        asked = [(cpu, sum(node.cpu for node in nodes)), (memory, sum(node.memory for node in nodes))]
        asked += [(count, sum(node.devices.count(kind) for node in nodes)) for kind, count in devices.counts]
        return max(some / total if total else 0.0 for some, total in asked)

    def _length(self, name: TrialId, cores: float) -> Length:
        """Return how long a trial takes on a node of ``cores`` cores with all that it can use.

        Its own reports are taken at their word. A margin on trials that run would count the places for longer than
        those that are free, which would be dealt too much.
        """
        estimate = self._estimates[name]
        seconds = estimate.work / math.pow(min(estimate.most, cores), self._weights.power)
        return Length(seconds, 0.0 if estimate.known else seconds * min(MOST_SPREAD, estimate.spread))

    def _best_move(self, movable: AbstractSet[TrialId], *, only_idle: bool) -> tuple[float, TrialId, NodeName] | None:
        before, targets = self._tally.cost({}), self._tally.first_done(CONSIDERED)
        if only_idle:
            targets = [node for node in targets if not self._loads[node]]
        best: tuple[float, TrialId, NodeName] | None = None
        for source in self._tally.last_done(CONSIDERED):
            if self._unused(source) >= 0:
                continue  # Each has all that it can use, so nobody gains where one leaves.
            for name in self._loads[source]:
                trial = self._estimates[name].trial
                if name not in movable or trial.node != source or not self._worth_moving(name):
                    continue
                for target in targets:
                    if target == source or not self._capacity.fits(trial, target):
                        continue
                    gain = before - self._cost_of_move(name, source, target)
                    if best is None or (-gain, name, target) < (-best[0], best[1], best[2]):
                        best = gain, name, target
        pays = best is not None and best[0] > max(WORTH * self._weights.move_cost, LEAST_GAIN * before)
        return best if pays else None

    def _cost_of_move(self, name: TrialId, source: NodeName, target: NodeName) -> float:
        """Return what all nodes cost once the trial moves."""
        without, with_it = self._forecast(source, leaving=name), self._forecast(target, self._moved(name, target))
        return self._tally.cost({source: without, target: with_it})

    def _worth_moving(self, name: TrialId) -> bool:
        estimate = self._estimates[name]
        return estimate.work / math.pow(estimate.most, self._weights.power) > NEARLY_DONE * self._weights.move_cost

    def _moved(self, name: TrialId, target: NodeName) -> Load:
        """Return the load of a trial that moves to ``target``: while it is on its way, it could have worked."""
        estimate, weights = self._estimates[name], self._weights
        lost = weights.move_cost * min(estimate.most, self.cores[target]) ** weights.power
        return estimate.work + lost, estimate.most

    def _forecast(self, node: NodeName, *coming: Load, leaving: TrialId | None = None) -> NodeForecast:
        loads = [load for name, load in self._loads[node].items() if name != leaving]
        return node_forecast([*loads, *coming], self.cores[node], self._weights.power)

    def _count(self, node: NodeName) -> None:
        """Count the loads of ``node`` as they are now."""
        self._tally.change(node, self._forecast(node), len(self._loads[node]))


def _authors_shape(trial: Trial) -> RequestShape:
    """Return what a trial asks for as its author wrote it: that of one that runs may have changed since."""
    return trial.base_cpu * trial.workers, trial.memory * trial.workers, trial.devices * trial.workers, trial.may_use
