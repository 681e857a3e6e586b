"""What is requested of each node, while actions are tried one after another, and which of them go together."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import (
    Action,
    Migrate,
    Node,
    NodeName,
    Phase,
    Place,
    Proposal,
    Resize,
    Snapshot,
    Stop,
    Suspend,
    Trial,
    TrialId,
)

SLACK = 1e-9
"""Cores by which sums of floats may miss: far below a millicore."""

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
        capacity = cls(nodes, snapshot.named, cpu, base_cpu, memory, devices)
        for trial in snapshot.unended:
            for node in trial.nodes:
                cpu[node] += trial.cpu
                base_cpu[node] += trial.base_cpu
                memory[node] += trial.memory
                if trial.devices.counts:  # asked of every trial at every tick: its truth would be a call
                    devices[node] = devices.get(node, NO_DEVICES) + trial.devices
            if trial.moving_to and trial.phase is Phase.MOVING and trial.moving_to not in trial.nodes:
                capacity._arrive(trial, trial.moving_to)
        return capacity

    def copy(self) -> "Capacity":
        """Return a ledger that says the same, and goes on by itself."""
        sums = dict(self._cpu), dict(self._base_cpu), dict(self._memory), dict(self._devices)
        return Capacity(self.nodes, self.trials, *sums)

    def requested(self, node: NodeName) -> float:
        """Return the cores requested of ``node``, including those of trials that move there."""
        return self._cpu.get(node, 0.0)

    def fits(self, trial: Trial, node: NodeName) -> bool:
        """Return whether all of the trial's workers may go to ``node``: known, ready, and with room for them."""
        place = self.nodes.get(node)
        if place is None or not place.ready:
            return False
        return (
            self._planned(node) + _restart_cpu(trial) <= place.cpu + SLACK
            and self._memory.get(node, 0.0) + trial.memory * trial.workers <= place.memory
            and (not trial.devices.counts or self._devices_fit(trial, place))
            and (not place.only_for or place.only_for <= trial.devices.kinds())
            and (trial.may_use is None or node in trial.may_use)
        )

    def room(self, trial: Trial, node: NodeName) -> int:
        """Return how many trials that ask for the same as ``trial`` ``node`` has room for."""
        if not self.fits(trial, node):
            return 0
        place, (cpu, memory, devices, _) = self.nodes[node], request_shape(trial)
        free = place.devices - self._devices.get(node, NO_DEVICES)
        parts = [(place.cpu + SLACK - self._planned(node), cpu)]
        parts += [(place.memory - self._memory.get(node, 0.0), memory)]
        parts += [(free.count(kind), count) for kind, count in devices.counts]
        return min((int(left // each) for left, each in parts if each > 0 and left < math.inf), default=_ANY_NUMBER)

    def allows(self, action: Action) -> bool:
        """Return whether ``action`` keeps every node within what it has."""
        trial = self.trials.get(action.trial)
        if trial is None:
            return False
        match action:
            case Migrate() | Place():
                return action.node is None or self.fits(trial, action.node)
            case Resize():
                change = action.cpu - trial.cpu
                return math.isfinite(action.cpu) and all(
                    change <= 0
                    or self.requested(node) + change * trial.nodes.count(node) <= self.nodes[node].cpu + SLACK
                    for node in sorted(set(trial.nodes))
                    if node in self.nodes
                )
            case Suspend() | Stop():
                return True
            case _:
                assert_never(action)

    def apply(self, action: Action) -> None:
        """Count ``action`` as begun."""
        trial = self.trials[action.trial]
        match action:
            case Migrate() | Place():
                if action.node is not None:
                    self._arrive(trial, action.node)
            case Resize():
                for node in trial.nodes:
                    self._cpu[node] = self.requested(node) + (action.cpu - trial.cpu)
            case Suspend() | Stop():
                pass  # It keeps its place until its attempt has ended.
            case _:
                assert_never(action)

    def expect(self, trial: Trial, node: NodeName) -> None:
        """Count a trial that was placed on ``node`` and has yet to run there; its devices count there already."""
        cpu, memory = _restart_cpu(trial), trial.memory * trial.workers
        self._cpu[node] = self._cpu.get(node, 0.0) + cpu
        self._base_cpu[node] = self._base_cpu.get(node, 0.0) + cpu
        self._memory[node] = self._memory.get(node, 0.0) + memory

    def _planned(self, node: NodeName) -> float:
        """Return the cores that count as requested of ``node`` where somebody wants to come to it."""
        return max(self._cpu.get(node, 0.0), self._base_cpu.get(node, 0.0))

    def _devices_fit(self, trial: Trial, place: Node) -> bool:
        held = self._devices.get(place.name, NO_DEVICES)
        return all(
            count * trial.workers <= place.devices.count(kind) - held.count(kind)
            for kind, count in trial.devices.counts
        )

    def _arrive(self, trial: Trial, node: NodeName) -> None:
        self.expect(trial, node)
        if trial.devices:
            self._devices[node] = self._devices.get(node, NO_DEVICES) + trial.devices * trial.workers


RequestShape = tuple[float, float, Devices, frozenset[NodeName] | None]
"""Cores, bytes and devices that a trial asks of a node, and which it may use: trials of the same fit on the same."""


def request_shape(trial: Trial) -> RequestShape:
    """Return what ``trial`` asks of a node that it comes to, for all its workers."""
    return _restart_cpu(trial), trial.memory * trial.workers, trial.devices * trial.workers, trial.may_use


def reconciled(proposals: Iterable[Proposal], snapshot: Snapshot) -> tuple[tuple[Proposal, ...], tuple[Veto, ...]]:
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
        case Migrate():
            return 2
        case Place(node=node):
            return 3 if node is not None else 4
        case Resize():
            return 5
        case _:
            assert_never(action)


def _restart_cpu(trial: Trial) -> float:
    return max(trial.cpu, trial.base_cpu) * trial.workers
