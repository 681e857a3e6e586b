"""What is requested of each node, while actions are tried one after another, and which of them go together."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
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
    Trial,
    TrialId,
)

SLACK = 1e-9
"""Cores by which sums of floats may miss: far below a millicore."""

_ANY_NUMBER = 10**9
Veto = tuple[Proposal, str]
"""A proposal that was not let through, and the reason."""


@dataclass(slots=True)
class _Load:
    """Requests on a node: ``cpu`` as they are, ``base_cpu`` as their authors wrote them, in cores; bytes."""

    cpu: float = 0.0
    base_cpu: float = 0.0
    memory: float = 0.0
    devices: Devices = NO_DEVICES


@dataclass(slots=True)
class Capacity:
    """Requests on every node beside what it has; nodes by name. A move under way counts at both ends.

    The source of a move is free only once its attempt has ended. The next attempt may ask its destination for its
    present or for its original CPU, so the larger is kept for it.
    """

    nodes: Mapping[NodeName, Node]
    trials: Mapping[TrialId, Trial]
    _loads: dict[NodeName, _Load] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Capacity":
        """Return what ``snapshot`` shows."""
        nodes = {node.name: node for node in sorted(snapshot.nodes, key=lambda node: node.name)}
        capacity = cls(nodes, {trial.id: trial for trial in snapshot.trials})
        for node in snapshot.nodes:
            if node.devices_starting:
                capacity._load(node.name).devices = node.devices_starting
        for trial in snapshot.unended:
            for name in trial.nodes:
                load = capacity._load(name)
                load.cpu += trial.cpu
                load.base_cpu += trial.base_cpu
                load.memory += trial.memory
                if trial.devices:
                    load.devices += trial.devices
            if trial.phase is Phase.MOVING and trial.moving_to and trial.moving_to not in trial.nodes:
                capacity._arrive(trial, trial.moving_to)
        return capacity

    def requested(self, node: NodeName) -> float:
        """Return the cores requested of ``node``, including those of trials that move there."""
        return self._load(node).cpu

    def fits(self, trial: Trial, node: NodeName) -> bool:
        """Return whether all of the trial's workers may go to ``node``: known, ready, and with room for them."""
        place = self.nodes.get(node)
        if place is None or not place.ready:
            return False
        load, cpu = self._load(node), _restart_cpu(trial)
        return (
            max(load.cpu, load.base_cpu) + cpu <= place.cpu + SLACK
            and load.memory + trial.memory * trial.workers <= place.memory
            and (not trial.devices.counts or _devices_fit(trial, place, load))
            and (not place.only_for or place.only_for <= trial.devices.kinds())
        )

    def room(self, trial: Trial, node: NodeName) -> int:
        """Return how many trials that ask for the same as ``trial`` ``node`` has room for."""
        if not self.fits(trial, node):
            return 0
        place, load, (cpu, memory, devices) = self.nodes[node], self._load(node), request_shape(trial)
        free = place.devices - load.devices
        parts = [(place.cpu + SLACK - max(load.cpu, load.base_cpu), cpu), (place.memory - load.memory, memory)]
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
                    or self._load(node).cpu + change * trial.nodes.count(node) <= self.nodes[node].cpu + SLACK
                    for node in sorted(set(trial.nodes))
                    if node in self.nodes
                )
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
                    self._load(node).cpu += action.cpu - trial.cpu
            case _:
                assert_never(action)

    def expect(self, trial: Trial, node: NodeName) -> None:
        """Count a trial that was placed on ``node`` and has yet to run there; its devices count there already."""
        self._arrive(replace(trial, devices=NO_DEVICES), node)

    def _load(self, node: NodeName) -> _Load:
        # Not setdefault(): it would make a new load at each call, and this is called most of all.
        load = self._loads.get(node)
        if load is None:
            load = self._loads[node] = _Load()
        return load

    def _arrive(self, trial: Trial, node: NodeName) -> None:
        load, cpu = self._load(node), _restart_cpu(trial)
        load.cpu += cpu
        load.base_cpu += cpu
        load.memory += trial.memory * trial.workers
        if trial.devices:
            load.devices += trial.devices * trial.workers


RequestShape = tuple[float, float, Devices]
"""Cores, bytes and devices that a trial asks of a node: trials of the same fit on the same nodes."""


def request_shape(trial: Trial) -> RequestShape:
    """Return what ``trial`` asks of a node that it comes to, for all its workers."""
    return _restart_cpu(trial), trial.memory * trial.workers, trial.devices * trial.workers


def reconciled(proposals: Iterable[Proposal], snapshot: Snapshot) -> tuple[tuple[Proposal, ...], tuple[Veto, ...]]:
    """Return those of ``proposals`` that go together, and the others each with the reason against it.

    A trial gets one action at most: a move of it wins over a change of its share, otherwise the first wins. A proposal
    that no longer fits its node because of that is left out too, and comes back with the next decision.
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
        case Migrate():
            return 0
        case Place() | Resize():
            return 1
        case _:
            assert_never(action)


def _devices_fit(trial: Trial, place: Node, load: _Load) -> bool:
    return all(
        count * trial.workers <= place.devices.count(kind) - load.devices.count(kind)
        for kind, count in trial.devices.counts
    )


def _restart_cpu(trial: Trial) -> float:
    return max(trial.cpu, trial.base_cpu) * trial.workers
