"""The invariants of nodes that come and go, and of what they cost: counted apart from the world's own meters."""

import math

from controllers.worlds.simulated.autoscaler import GroupNodes
from controllers.worlds.simulated.billing import NodeBill
from controllers.worlds.simulated.world import SimulatedWorld
from tests.fault_search.broken import broken

_SLACK = 1e-6


class PaidNodes:
    """Counts node seconds and costs of a sweep from one check to the next, and how many nodes each group has."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._groups = () if world.provider is None else tuple(world.provider.autoscaler.groups.values())
        self._prices: list[float] = []
        self._at = self._node_s = self._cost = 0.0
        self._count()

    def check(self) -> None:
        """Check the number of nodes, and count until now what was there at the last check."""
        seconds = self._world.now - self._at
        self._node_s += len(self._prices) * seconds
        self._cost += math.fsum(self._prices) * seconds / 3600
        self._count()
        for nodes in self._groups:
            if nodes.size > nodes.group.most:
                broken("no group has more nodes than it may", f"{nodes.group.name}: {nodes.size}")
            stray = [name for name in nodes.present if name not in self._world.cluster.nodes]
            if stray:
                broken("a group's nodes are there", f"{nodes.group.name}: {stray}")

    def check_the_bill(self) -> None:
        """Check that the bill is what was counted, that no part of it is negative, and that enough nodes are left."""
        self.check()
        bill = NodeBill.of(self._world.cluster.meters, self._world.now)
        told = (bill.node_s, bill.cost or 0.0)
        if any(
            not math.isclose(a, b, rel_tol=_SLACK, abs_tol=_SLACK) for a, b in zip(told, self._counted, strict=True)
        ):
            broken("the bill is the sum of node seconds", f"{told}, counted {self._counted}")
        held = math.fsum(bill.trials.values())
        if min([bill.cost or 0.0, *bill.trials.values()]) < 0 or held > told[1] * (1 + _SLACK) + _SLACK:
            broken("no cost is negative, and trials hold no more than all", f"{bill}")

    @property
    def _counted(self) -> tuple[float, float]:
        return self._node_s, self._cost

    def _count(self) -> None:
        """Note what an hour of each node costs that is there or coming, and has not stopped."""
        self._at = self._world.now
        fixed = [node for node in self._world.cluster.nodes.values() if node.group is None]
        self._prices = [node.spec.price or 0.0 for node in fixed]
        for nodes in self._groups:
            self._prices += [nodes.group.node.price or 0.0] * _paid(nodes)


def _paid(nodes: GroupNodes) -> int:
    return len(nodes.coming) + sum(not node.losses for node in nodes.present.values())
