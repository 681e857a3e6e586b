"""How many nodes of each group the pods need that fit nowhere: the bin-packing of an autoscaler. Pure.

Modelled on Karpenter's: first fit, the largest pods first, onto nodes that are coming, then onto new ones. A new node
may be of any group that holds all its pods; in the end it is of the cheapest of these. So many pods share a large node
where one holds them, even if two small ones would cost less. cluster-autoscaler asks for nodes of one group at a time,
to as many as the same bin-packing needs.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from controllers.core.devices import Devices
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec, TrialSpec

_SLACK = 1e-9


@dataclass(slots=True)
class FreeRoom:
    """What is free of a node: cores, bytes and devices."""

    cpu: float
    memory: float
    devices: Devices

    @classmethod
    def of(cls, node: NodeSpec) -> Self:
        """Return all of ``node``."""
        return cls(node.cpu, node.memory, node.devices)

    def holds(self, pod: TrialSpec) -> bool:
        """Whether one of the trial's workers fits."""
        return pod.cpu <= self.cpu + _SLACK and pod.memory <= self.memory and pod.devices.within(self.devices)

    def take(self, pod: TrialSpec) -> None:
        """Give one of the trial's workers what it asks for."""
        self.cpu, self.memory, self.devices = self.cpu - pod.cpu, self.memory - pod.memory, self.devices - pod.devices


@dataclass(slots=True)
class _NewNode:
    """A node to ask for: what would be free of it if it were of each group that holds all its pods."""

    rooms: dict[str, FreeRoom]

    def take(self, pod: TrialSpec) -> list[str] | None:
        """Add a pod if any group holds it too; return the groups that hold no longer, None if it was not added."""
        if not any(room.holds(pod) for room in self.rooms.values()):
            return None
        dropped = [name for name, room in self.rooms.items() if not room.holds(pod)]
        for name in dropped:
            del self.rooms[name]
        for room in self.rooms.values():
            room.take(pod)
        return dropped


def nodes_needed(
    pods: Iterable[TrialSpec], coming: Sequence[FreeRoom], groups: Sequence[NodeGroup], more: Mapping[str, int]
) -> dict[str, int]:
    """Return how many nodes of each group to ask for.

    Args:
        pods: The trial of each worker that fits nowhere, as often as it has such workers.
        coming: What nodes that were asked for before will have.
        groups: What may be asked for.
        more: How many nodes of each group, by name.
    """
    left, new = dict(more), list[_NewNode]()
    for pod in sorted(pods, key=lambda pod: (-pod.cpu, -pod.memory)):
        room = next((room for room in coming if room.holds(pod)), None)
        if room is not None:
            room.take(pod)
        elif not _taken_by(new, pod, left):
            node = _NewNode({group.name: FreeRoom.of(group.node) for group in groups if left[group.name] > 0})
            if node.take(pod) is not None:
                new.append(node)
                _count(left, node.rooms, -1)
    prices = {group.name: math.inf if group.node.price is None else group.node.price for group in groups}
    needed = dict.fromkeys(prices, 0)
    for node in new:
        needed[min(node.rooms, key=lambda name: (prices[name], name))] += 1
    return {name: number for name, number in needed.items() if number}


def _taken_by(new: Sequence[_NewNode], pod: TrialSpec, left: dict[str, int]) -> bool:
    for node in new:
        if (dropped := node.take(pod)) is not None:
            _count(left, dropped, 1)
            return True
    return False


def _count(left: dict[str, int], groups: Iterable[str], change: int) -> None:
    """Count a node that may be of any of ``groups`` as one of each, so that there are never more than allowed."""
    for name in groups:
        left[name] += change
