"""Where the work is, while places and moves are chosen one after another. Pure.

Placing (``placing.py``), making room (``room.py``) and saving time (``moving.py``) all read and change these books, so
that each choice counts those before it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controllers.core.actions import Migrate, Place
from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.ahead.forecast import Load, NodeForecast, earliest_end, node_forecast
from controllers.policies.ahead.order import Length
from controllers.policies.ahead.tally import Tally
from controllers.policies.kit.capacity import Capacity
from controllers.policies.kit.device_paces import DeviceSpeeds, devices_to_share, model_of, shares_held, sharing_on
from controllers.policies.kit.work_left import Estimate

CONSIDERED: Final = 4
"""Nodes of each size that a place or a move looks at closely: in a large cluster the others are like these."""
NEARLY_DONE: Final = 2.0
"""A trial that has less left than this many times what a move costs stays: it would be done before it pays."""
MOST_SPREAD: Final = 0.6
"""The spread of a length counts up to here, so that a trial about which little is known does not outweigh all."""
TRIED: Final = 2
"""Trials that share each device of one node, so that it shows what that costs."""
WORTH: Final = 2.0
"""A move must save all trials this many times what it costs the one that moves: both are estimates."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What a choice goes by.

    ``power`` is p of speed ~ cores ** p, ``contention`` the part of its speed that each further trial costs a trial of
    the same node. ``end`` is the weight of the sweep's end beside the mean completion time. ``move_cost`` is the
    seconds for which a trial that moves does not train. ``devices`` says how fast trials train that hold some.
    """

    power: float
    contention: float
    end: float
    move_cost: float
    devices: DeviceSpeeds = field(default_factory=DeviceSpeeds)


class WorkPlan:
    """The work on each node: of the trials that are there, that are on their way, and that start there.

    Args:
        snapshot: What there is.
        estimates: Of every trial that has not ended.
        starting: Where trials were placed that have yet to start.
        weights: What a choice goes by.

    Attributes:
        cores: What each node supplies.
        nodes: Each of these nodes.
        models: The model of each node's devices, empty where it has none.
        held: How many devices the trials of each node hold.
        loads: The work of each trial on each node, and the most cores that it can use.
        tally: What all nodes come to.
        capacity: What is requested of each node.
        unplaced: The trials that wait and were found to fit nowhere.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        estimates: Mapping[TrialId, Estimate],
        starting: Mapping[TrialId, NodeName],
        weights: Weights,
    ) -> None:
        self.cores = {node.name: node.supplied for node in snapshot.nodes if node.ready and node.supplied > 0}
        self.snapshot = snapshot
        self.estimates = estimates
        self.weights = weights
        self.capacity = Capacity.of(snapshot)
        self.nodes = {node.name: node for node in snapshot.nodes if node.name in self.cores}
        self.models = {name: model_of(node) if node.devices.counts else "" for name, node in self.nodes.items()}
        self.held = dict.fromkeys(self.cores, 0)
        self.loads: dict[NodeName, dict[TrialId, Load]] = {node: {} for node in self.cores}
        for name, estimate in estimates.items():
            trial = estimate.trial
            if trial.phase in {Phase.SUSPENDING, Phase.STOPPING}:
                continue  # What it has left will not be done there.
            moving = trial.moving_to if trial.phase is Phase.MOVING else None
            node = moving or trial.node or starting.get(name)
            if node in self.loads:
                self.loads[node][name] = estimate.work, estimate.most
                self.held[node] += shares_held(trial.devices, self.nodes[node].replicas)
        for node, loads in self.loads.items():
            if self.models[node]:
                loads.update({name: self.load_on(name, node) for name in loads})
        self._tried = self._to_try()
        self.unplaced: list[Trial] = []
        nodes = {node: (self.forecast(node), len(loads)) for node, loads in self.loads.items()}
        self.tally = Tally(nodes, self.cores, len(estimates), weights.end, self.models)

    @property
    def forecasts(self) -> Mapping[NodeName, NodeForecast]:
        """What each node comes to."""
        return self.tally.forecasts

    def earliest_end(self, expected: float = 0.0) -> float:
        """Return the seconds until the whole sweep can be done at the earliest, with ``expected`` work yet to come."""
        loads = ((estimate.work, estimate.most) for estimate in self.estimates.values())
        return earliest_end(loads, self.cores.values(), self.weights.power, expected)

    def nodes_of_trials(self) -> dict[TrialId, NodeName]:
        """Return the node on which each trial counts, with the places and moves that were chosen so far."""
        return {name: node for node, loads in self.loads.items() for name in loads}

    def unused(self, node: NodeName) -> float:
        """Return the cores that the trials of ``node`` cannot use, below 0 where they could use more than there are."""
        return self.cores[node] - math.fsum(most for _, most in self.loads[node].values())

    def load_on(self, name: TrialId, node: NodeName, *, more: int = 0) -> Load:
        """Return the load of a trial on ``node``: one that holds devices has more to do on slow or shared ones.

        So many ``more`` devices are held there then.
        """
        estimate = self.estimates[name]
        if not estimate.trial.devices.counts:
            return estimate.work, estimate.most
        slower = self.weights.devices.seconds(self.models[node], sharing_on(self.nodes[node], self.held[node] + more))
        return estimate.work * slower, estimate.most

    def load_to_come(self, name: TrialId, node: NodeName) -> Load:
        """Return the load of a trial once it is on ``node`` beside those there."""
        return self.load_on(name, node, more=shares_held(self.estimates[name].trial.devices, self.nodes[node].replicas))

    def takes(self, trial: Trial, node: NodeName) -> bool:
        """Return whether the trial may go to ``node``, and would not only slow down those that share its devices."""
        shared = shares_held(trial.devices, self.nodes[node].replicas) > 0
        return self.capacity.fits(trial, node) and (not shared or self.room(trial, node) > 0)

    def room(self, trial: Trial, node: NodeName) -> int:
        """Return how many trials like ``trial`` ``node`` has room for, so that its devices are worth sharing."""
        room, place = self.capacity.room(trial, node), self.nodes[node]
        each = shares_held(trial.devices, place.replicas)
        if not each:
            return room
        most = TRIED if node == self._tried else self.weights.devices.worth_sharing
        return max(0, min(room, (int(most * devices_to_share(place)) - self.held[node]) // each))

    def _to_try(self) -> NodeName | None:
        """Return the one node whose trials are joined by others so that they show what sharing a device costs.

        None once that is known, and while nobody has told how fast it is alone.
        """
        if self.weights.devices.use is not None:
            return None
        shared = {name: devices_to_share(node) for name, node in self.nodes.items() if node.replicas}
        crowded = [name for name, devices in shared.items() if self.held[name] > devices]
        known = [
            name
            for name in shared
            if self.held[name] and all(self.estimates[trial].known for trial in self.loads[name])
        ]
        return min(crowded or known, default=None)

    def length(self, name: TrialId, cores: float) -> Length:
        """Return how long a trial takes on a node of ``cores`` cores with all that it can use, on the fastest devices.

        Its own reports are taken at their word. A margin on trials that run would count the places for longer than
        those that are free, which would be dealt too much.
        """
        estimate = self.estimates[name]
        seconds = estimate.work / math.pow(min(estimate.most, cores), self.weights.power)
        return Length(seconds, 0.0 if estimate.known else seconds * min(MOST_SPREAD, estimate.spread))

    def place(self, name: TrialId, node: NodeName, after: NodeForecast) -> Place:
        """Count a trial that waits as placed on ``node``, which comes to ``after`` then; return its place."""
        estimate = self.estimates[name]
        place = Place.on(node, estimate.trial)
        self.capacity.apply(place)
        self.loads[node][name] = self.load_to_come(name, node)
        self.held[node] += shares_held(estimate.trial.devices, self.nodes[node].replicas)
        self.tally.change(node, after, len(self.loads[node]))
        return place

    def move(self, name: TrialId, target: NodeName) -> Migrate:
        """Count a trial as on its way to ``target``; return its move."""
        trial = self.estimates[name].trial
        for source in trial.nodes[:1]:
            del self.loads[source][name]
            self.held[source] -= shares_held(trial.devices, self.nodes[source].replicas)
            self._count(source)
        move = Migrate.to(target, trial)
        self.capacity.apply(move)
        self.loads[target][name] = self.load_once_moved(name, target)
        self.held[target] += shares_held(trial.devices, self.nodes[target].replicas)
        self._count(target)
        return move

    def cost_of_move(self, name: TrialId, source: NodeName, target: NodeName) -> float:
        """Return what all nodes cost once the trial moves."""
        without = self.forecast(source, leaving=name)
        return self.tally.cost({source: without, target: self.forecast(target, self.load_once_moved(name, target))})

    def worth_moving(self, name: TrialId) -> bool:
        """Whether a trial has more left than would be done before a move pays."""
        estimate = self.estimates[name]
        return estimate.work / math.pow(estimate.most, self.weights.power) > NEARLY_DONE * self.weights.move_cost

    def load_once_moved(self, name: TrialId, target: NodeName) -> Load:
        """Return the load of a trial that moves to ``target``: while it is on its way, it could have worked."""
        weights = self.weights
        work, most = self.load_to_come(name, target)
        return work + weights.move_cost * min(most, self.cores[target]) ** weights.power, most

    def forecast(self, node: NodeName, *coming: Load, leaving: TrialId | None = None) -> NodeForecast:
        """Return what ``node`` comes to with the loads that are ``coming``, without the trial that is ``leaving``."""
        loads = [load for name, load in self.loads[node].items() if name != leaving]
        return node_forecast([*loads, *coming], self.cores[node], self.weights.power)

    def _count(self, node: NodeName) -> None:
        """Count the loads of ``node`` as they are now."""
        self.tally.change(node, self.forecast(node), len(self.loads[node]))
