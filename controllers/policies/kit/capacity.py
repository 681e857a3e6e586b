"""What is requested of each node, while actions are tried one after another, and which of them go together."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from controllers.core.actions import Action, Clone, Migrate, Place, Proposal, Resize, Stop, Suspend, why_no_gang
from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import Node, NodeName, Phase, Snapshot, Trial, TrialId

SLACK = 1e-9
"""Cores that sums of floats may be wrong by: far below a millicore."""

WORTH_SPREADING = 2
"""A gang starts on several nodes if it gets so many times as many workers there as on one."""
_ANY_NUMBER = 10**9
Veto = tuple[Proposal, str]
"""A proposal that was not let through, and the reason."""


@dataclass(slots=True)
class Capacity:
    """Requests on every node beside what it has; nodes by name. A move under way counts at both ends.

    The source of a move is free only once its attempt has ended. The next attempt may ask its destination for its
    present or for its original CPU, so the larger is kept for it.
    """

    nodes: Mapping[NodeName, Node]
    trials: Mapping[TrialId, Trial]
    _cpu: dict[NodeName, float]
    _base_cpu: dict[NodeName, float]
    _memory: dict[NodeName, float]
    _devices: dict[NodeName, Devices]
    _beyond: Mapping[NodeName, float] = field(default_factory=dict)
    """By how many cores the requests on a node may exceed what it has, below 0 where they must stay below that."""
    _present: int = 0
    """How many trials run or wait."""
    _empty: dict[TrialId, tuple[int, int]] = field(default_factory=dict)
    """What ``_room_alone`` found, by trial."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Capacity":
        """Return what ``snapshot`` shows: a ledger of its own for each who asks, summed up once for all of them."""
        return snapshot.once(cls._summed).copy()

    @classmethod
    def _summed(cls, snapshot: Snapshot) -> "Capacity":
        cpu: defaultdict[NodeName, float] = defaultdict(float)
        base_cpu: defaultdict[NodeName, float] = defaultdict(float)
        memory: defaultdict[NodeName, float] = defaultdict(float)
        devices = {node.name: node.devices_starting for node in snapshot.nodes if node.devices_starting}
        nodes = {node.name: node for node in snapshot.nodes}
        present = sum(trial.live or trial.waits for trial in snapshot.unended)
        capacity = cls(nodes, snapshot.named, cpu, base_cpu, memory, devices, _present=present)
        for trial in snapshot.unended:
            for node in trial.nodes:
                cpu[node] += trial.cpu
                base_cpu[node] += trial.base_cpu
                memory[node] += trial.memory
                if trial.devices.counts:  # asked of every trial at every tick: its truth would be a call
                    devices[node] = devices.get(node, NO_DEVICES) + trial.devices
            if trial.destination and trial.phase is Phase.MOVING:
                capacity._arrive(trial, trial.destination)
        told = {node.name: node.room for node in snapshot.nodes if node.room is not None}
        capacity._beyond = {name: room + capacity.taken(name)[0] - nodes[name].cpu for name, room in told.items()}
        return capacity

    def copy(self) -> "Capacity":
        """Return a ledger that says the same, and goes on by itself."""
        sums = dict(self._cpu), dict(self._base_cpu), dict(self._memory), dict(self._devices)
        return Capacity(self.nodes, self.trials, *sums, self._beyond, self._present, self._empty)

    def requested(self, node: NodeName) -> float:
        """Return the cores requested of ``node``, including those of trials that move there."""
        return self._cpu.get(node, 0.0)

    def taken(self, node: NodeName) -> tuple[float, float]:
        """Return the cores and bytes of ``node`` that count as taken where somebody wants to come to it."""
        return max(self._cpu.get(node, 0.0), self._base_cpu.get(node, 0.0)), self._memory.get(node, 0.0)

    def fits(self, trial: Trial, node: NodeName) -> bool:
        """Return whether the trial may go to ``node``: known, ready, and with room for it.

        A gang that waits may start there where other nodes have room for the rest of it; one that runs would be torn
        apart by that, and goes to one node only.
        """
        if not trial.gang or trial.nodes:
            return self.holds(trial, node, trial.workers)
        return bool(self.gathered(trial, self.first_workers(trial), node))

    def holds(self, trial: Trial, node: NodeName, workers: int) -> bool:
        """Return whether ``workers`` of the trial's next attempt may go to ``node``.

        Those of its attempts so far that are there leave before they come.
        """
        place = self.nodes.get(node)
        if place is None or not place.ready:
            return False
        leaving = trial.nodes.count(node)
        cpu = self._cpu.get(node, 0.0) - trial.cpu * leaving
        base_cpu = self._base_cpu.get(node, 0.0) - trial.base_cpu * leaving
        return (
            max(cpu, base_cpu) + _worker_cpu(trial) * workers <= self._cores(place, trial) + SLACK
            and self._memory.get(node, 0.0) + trial.memory * (workers - leaving) <= place.memory
            and (not trial.devices.counts or self._devices_fit(trial, place, workers - leaving))
            and (not place.only_for or place.only_for <= trial.devices.kinds())
            and (trial.may_use is None or node in trial.may_use)
        )

    def room(self, trial: Trial, node: NodeName) -> int:
        """Return how many trials that ask for the same as ``trial`` ``node`` has room for."""
        return self.worker_room(trial, node) // self.first_workers(trial)

    def worker_room(self, trial: Trial, node: NodeName) -> int:
        """Return for how many workers of the trial's next attempt ``node`` has room, those of its last one gone."""
        if not self.holds(trial, node, 1):
            return 0
        place, leaving = self.nodes[node], trial.nodes.count(node)
        cpu = self._cpu.get(node, 0.0) - trial.cpu * leaving
        base_cpu = self._base_cpu.get(node, 0.0) - trial.base_cpu * leaving
        free = place.devices - self._devices.get(node, NO_DEVICES) + trial.devices * leaving
        parts = [(self._cores(place, trial) + SLACK - max(cpu, base_cpu), _worker_cpu(trial))]
        parts += [(place.memory - self._memory.get(node, 0.0) + trial.memory * leaving, trial.memory)]
        parts += [(free.count(kind), count) for kind, count in trial.devices.counts]
        return min((int(left // each) for left, each in parts if each > 0 and left < math.inf), default=_ANY_NUMBER)

    def most_workers(self, trial: Trial) -> int:
        """Return how many workers a gang starts or goes on with: as it has, or as many as all nodes can hold at all."""
        if trial.workers == trial.min_workers:
            return trial.workers
        alone = Capacity(self.nodes, {}, {}, {}, {}, {})
        shape, could = replace(trial, nodes=()), 0
        for node in self.nodes:
            could += alone.worker_room(shape, node)
            if could >= trial.workers:
                return trial.workers
        return max(trial.min_workers, could)

    def first_workers(self, trial: Trial) -> int:
        """Return how many workers a gang starts or goes on with where a policy names one node, or none.

        They are as many as one node can hold at all: on several, they wait for the network at every step. Where the
        nodes together hold all that each trial may have, a gang starts on several if it gets twice as many workers.
        """
        most = self.most_workers(trial)
        if most == trial.min_workers:
            return most
        near = max(trial.min_workers, min(most, self._room_alone(trial)[0]))
        return most if most >= WORTH_SPREADING * near and self._roomy(trial, most) else near

    def _roomy(self, trial: Trial, workers: int) -> bool:
        """Whether all nodes together could hold so many workers of each trial that runs or waits."""
        return self._present * workers <= self._room_alone(trial)[1]

    def _room_alone(self, trial: Trial) -> tuple[int, int]:
        """Return for how many workers of a trial the largest node and all together have room where nothing else is."""
        if trial.id not in self._empty:
            empty, shape = Capacity(self.nodes, {}, {}, {}, {}, {}), replace(trial, nodes=())
            rooms = [empty.worker_room(shape, node) for node in self.nodes]
            self._empty[trial.id] = max(rooms), sum(rooms)
        return self._empty[trial.id]

    def gathered(self, trial: Trial, workers: int, first: NodeName | None = None) -> tuple[NodeName, ...]:
        """Return the nodes of ``workers`` of a gang's next attempt, near each other; empty where they find no room.

        One node for all if there is one, otherwise nodes of one zone, otherwise of several; as few as can be. Rank 0
        goes to ``first``, if that is given. Of single nodes it is the one with the least room, which leaves the large
        ones to others.
        """
        rooms: dict[NodeName, int] = {}
        if first is not None:
            rooms[first] = self.worker_room(trial, first)
            if not 0 < rooms[first] < workers:
                return (first,) * workers if rooms[first] else ()
        rooms |= {node: self.worker_room(trial, node) for node in self.nodes if node != first}
        return near_each_other({node: room for node, room in rooms.items() if room}, self.nodes, workers, first)

    def completed(self, action: Action) -> Action | None:
        """Return ``action`` with a node for each worker of a gang; None where they find no room together.

        A ``Place`` that names one node sends rank 0 there and the others near it; one that names none leaves all to
        this.
        """
        trial = self.trials.get(action.trial)
        if not isinstance(action, Place) or trial is None or not trial.gang or (action.nodes and not action.near):
            return action
        nodes = self._evened(trial, self.gathered(trial, self.first_workers(trial), action.node))
        return replace(action, nodes=nodes, near=False) if nodes else None

    def _evened(self, trial: Trial, nodes: tuple[NodeName, ...]) -> tuple[NodeName, ...]:
        """Return the nodes of a gang that needs several, with its workers where each gets the most cores.

        They wait for the network anyway, and on two nodes for as long as on four. But the one that gets the fewest
        cores keeps all others waiting. Where nodes are scarce, as few as can be leave room for whole gangs.
        """
        if len(set(nodes)) <= 1 or not self._roomy(trial, len(nodes)):
            return nodes
        zones, counts = {self.nodes[node].zone for node in nodes}, {nodes[0]: 1}
        rooms = {node: self.worker_room(trial, node) for node, place in self.nodes.items() if place.zone in zones}

        def crowded(node: NodeName) -> tuple[float, NodeName]:
            workers = counts.get(node, 0) + 1
            return (self.taken(node)[0] + _worker_cpu(trial) * workers) / max(self.nodes[node].cpu, SLACK), node

        for _ in nodes[1:]:
            node = min((node for node, room in rooms.items() if room > counts.get(node, 0)), key=crowded)
            counts[node] = counts.get(node, 0) + 1
        return tuple(node for node, workers in counts.items() for _ in range(workers))

    def allows(self, action: Action) -> bool:
        """Return whether ``action`` keeps every node within what it has."""
        trial = self.trials.get(action.trial)
        if trial is None:
            return False
        match action:
            case Migrate() | Place():
                whole = self.completed(action)
                if not isinstance(whole, Migrate | Place):
                    return False
                counts = {node: whole.nodes.count(node) for node in whole.nodes}
                return not why_no_gang(whole, trial) and all(
                    self.holds(trial, node, count) for node, count in counts.items()
                )
            case Resize():
                change = action.cpu - trial.cpu
                return math.isfinite(action.cpu) and all(
                    change <= 0
                    or self.requested(node) + change * trial.nodes.count(node) <= self.nodes[node].cpu + SLACK
                    for node in sorted(set(trial.nodes))
                    if node in self.nodes
                )
            case Suspend() | Stop() | Clone():
                return True
            case _:
                assert_never(action)

    def apply(self, action: Action) -> None:
        """Count ``action`` as begun."""
        trial = self.trials[action.trial]
        match action:
            case Migrate() | Place():
                if isinstance(whole := self.completed(action), Migrate | Place):
                    self._arrive(trial, whole.nodes)
            case Resize():
                for node in trial.nodes:
                    self._cpu[node] = self.requested(node) + (action.cpu - trial.cpu)
            case Suspend() | Stop():
                pass  # It keeps its place until its attempt has ended.
            case Clone():
                pass  # It waits, and holds nothing.
            case _:
                assert_never(action)

    def release(self, trial: Trial, nodes: Sequence[NodeName], workers: int = 1) -> None:
        """Count ``workers`` of ``trial`` as gone from each of ``nodes``; a negative number takes that back."""
        for node in nodes:
            self._cpu[node] = self.requested(node) - trial.cpu * workers
            self._base_cpu[node] = self._base_cpu.get(node, 0.0) - trial.base_cpu * workers
            self._memory[node] = self._memory.get(node, 0.0) - trial.memory * workers
            if trial.devices:
                self._devices[node] = self._devices.get(node, NO_DEVICES) - trial.devices * workers

    def expect(self, trial: Trial, node: NodeName) -> None:
        """Count a trial that was placed on ``node`` and has yet to run there; its devices count there already."""
        self._expect(trial, node, trial.workers)

    def _cores(self, place: Node, trial: Trial) -> float:
        """Return up to how many cores may be requested of a node once ``trial`` comes to it."""
        # One that moves adds nothing to what runs.
        return place.cpu if trial.nodes else place.cpu + self._beyond.get(place.name, 0.0)

    def _devices_fit(self, trial: Trial, place: Node, workers: int) -> bool:
        held = self._devices.get(place.name, NO_DEVICES)
        return all(
            count * workers <= place.devices.count(kind) - held.count(kind) for kind, count in trial.devices.counts
        )

    def _arrive(self, trial: Trial, nodes: Sequence[NodeName]) -> None:
        for node in dict.fromkeys(nodes):
            workers = nodes.count(node)
            self._expect(trial, node, workers)
            if trial.devices and (more := workers - trial.nodes.count(node)) > 0:
                self._devices[node] = self._devices.get(node, NO_DEVICES) + trial.devices * more

    def _expect(self, trial: Trial, node: NodeName, workers: int) -> None:
        """Count ``workers`` of a trial's next attempt, beside those of its last that they replace there."""
        leaving, cpu = trial.nodes.count(node), _worker_cpu(trial) * workers
        memory = trial.memory * max(0, workers - leaving)
        self._cpu[node] = self._cpu.get(node, 0.0) + max(0.0, cpu - trial.cpu * leaving)
        self._base_cpu[node] = self._base_cpu.get(node, 0.0) + max(0.0, cpu - trial.base_cpu * leaving)
        self._memory[node] = self._memory.get(node, 0.0) + memory


RequestShape = tuple[float, float, Devices, frozenset[NodeName] | None]
"""Cores, bytes and devices that a trial asks of a node, and which it may use: trials of the same fit on the same."""


def near_each_other(
    rooms: Mapping[NodeName, int], nodes: Mapping[NodeName, Node], workers: int, first: NodeName | None = None
) -> tuple[NodeName, ...]:
    """Return a node for each of ``workers``, by rank: as near each other as can be; empty where there is no room.

    Args:
        rooms: For how many workers each node has room, all above 0.
        nodes: The nodes by name.
        workers: How many there are.
        first: The node of rank 0; where none is given, any.
    """
    if first is None and (alone := [node for node, room in rooms.items() if room >= workers]):
        return (min(alone, key=lambda node: (rooms[node], node)),) * workers
    zones: dict[str, int] = {}
    for node, room in rooms.items():
        zones[nodes[node].zone] = zones.get(nodes[node].zone, 0) + room
    if sum(zones.values()) < workers:
        return ()
    enough = [zone for zone, room in sorted(zones.items()) if room >= workers]
    home = min(enough, key=lambda zone: zones[zone]) if enough else max(sorted(zones), key=lambda zone: zones[zone])
    nearest = home if first is None else nodes[first].zone

    def order(node: NodeName) -> tuple[bool, bool, int, NodeName]:
        return node != first, nodes[node].zone != nearest, -rooms[node], node

    chosen: list[NodeName] = []
    for node in sorted(rooms, key=order):
        chosen += [node] * min(rooms[node], workers - len(chosen))
    return tuple(chosen)


def request_shape(trial: Trial) -> RequestShape:
    """Return what ``trial`` asks of a node that it comes to, for all its workers."""
    shape = _worker_cpu(trial) * trial.workers, trial.memory * trial.workers, trial.devices * trial.workers
    return *shape, trial.may_use


def reconcile(proposals: Iterable[Proposal], snapshot: Snapshot) -> tuple[tuple[Proposal, ...], tuple[Veto, ...]]:
    """Return those of ``proposals`` that go together, and the others each with the reason against it.

    A trial gets one action at most: what ends its attempt wins over a change of its share, a place that names a node
    over one that leaves it to the scheduler, otherwise the first wins. A proposal that no longer fits its node because
    of that is left out too, and comes back with the next decision.
    """
    ordered = list(proposals)
    if not ordered:
        return (), ()
    chosen: dict[TrialId, Proposal] = {}
    for proposal in sorted(ordered, key=lambda proposal: _precedence(proposal.action)):
        chosen.setdefault(proposal.action.trial, proposal)
    capacity = Capacity.of(snapshot)
    kept: list[Proposal] = []
    vetoed: list[Veto] = []
    for proposal in ordered:
        if chosen[proposal.action.trial] is not proposal:
            vetoed.append((proposal, "another action on the same trial goes first"))
        elif not capacity.allows(proposal.action):
            vetoed.append((proposal, "the node has no room for it beside the other actions"))
        else:
            capacity.apply(proposal.action)
            kept.append(proposal)
    return tuple(kept), tuple(vetoed)


def _precedence(action: Action) -> int:
    """Return the rank of ``action`` among those on the same trial; the least goes first."""
    match action:
        case Stop():
            return 0
        case Suspend():
            return 1
        case Clone():
            return 2
        case Migrate():
            return 3
        case Place(nodes=nodes):
            return 4 if nodes else 5
        case Resize():
            return 6
        case _:
            assert_never(action)


def _worker_cpu(trial: Trial) -> float:
    """Return the cores that a worker of the next attempt may ask its node for."""
    return max(trial.cpu, trial.base_cpu)
