"""The provider of spot nodes: says that it takes one, and takes it.

What becomes of the trials there depends on the cluster. On GKE, the kubelet itself shuts a node down in good order: it
tells pods at once, and leaves ordinary ones 15 s. On EKS and AKS, Karpenter or a termination handler drains the node as
soon as the notice comes, 120 s or 30 s before its end; without either, nobody tells the pods anything.
"""

import random
from collections.abc import Sequence
from functools import partial

from controllers.worlds.simulated.autoscaler import Autoscaler, GroupNodes
from controllers.worlds.simulated.cluster import SimulatedCluster
from controllers.worlds.simulated.coming_and_going import divert, drain, fail_all, stop
from controllers.worlds.simulated.events import ClusterEventKind
from controllers.worlds.simulated.faults import SpotLoss
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.scaling import SpotMarket
from controllers.worlds.simulated.workload import Workload


class SpotProvider:
    """Takes nodes of spot groups as their markets say, and as ``losses`` do; a seed says which and when.

    ``taken`` counts the nodes that it has taken.
    """

    def __init__(self, cluster: SimulatedCluster, workload: Workload, seed: int, losses: Sequence[SpotLoss]) -> None:
        self.taken = 0
        self._cluster = cluster
        self._seed = seed
        self._chance = random.Random(f"{seed}:spot")  # noqa: S311 - chooses nodes
        self.autoscaler = Autoscaler(cluster, workload, self._came)
        for nodes in self.autoscaler.groups.values():
            for at, _ in () if nodes.group.spot is None else nodes.group.spot.available:
                self._at(at, partial(self._take_back, nodes))
        for loss in losses:
            self._at(loss.at, partial(self._lose_one, self.autoscaler.groups[loss.group], loss.notice_s))

    def _came(self, nodes: GroupNodes, node: NodeRun) -> None:
        """Settle how long a node lives that has come."""
        market = nodes.group.spot
        if market is not None and market.mean_life_s is not None:
            chance = random.Random(f"{self._seed}:{node.name}:life")  # noqa: S311 - draws a length of time
            lives_s = chance.expovariate(1 / market.mean_life_s)
            self._at(self._cluster.now + lives_s, partial(self._notice, nodes, node, market.notice_s))

    def _take_back(self, nodes: GroupNodes) -> None:
        """Take as many nodes as the provider has too few of: first those that have not come yet."""
        market = nodes.group.spot or SpotMarket()
        staying = [node for node in nodes.present.values() if node.leaves_at is None and not node.losses]
        missing = len(staying) + len(nodes.coming) - market.has(self._cluster.now)
        while missing > 0 and nodes.coming:
            self.autoscaler.call_off(nodes, nodes.coming[-1])
            missing -= 1
        if missing > 0:
            for node in self._chance.sample(staying, int(missing)):
                self._notice(nodes, node, market.notice_s)

    def _lose_one(self, nodes: GroupNodes, notice_s: float) -> None:
        staying = [node for node in nodes.present.values() if node.leaves_at is None and not node.losses]
        if staying:
            self._notice(nodes, self._chance.choice(staying), notice_s)

    def _notice(self, nodes: GroupNodes, node: NodeRun, notice_s: float) -> None:
        """Say that a node leaves in ``notice_s``; without any notice, it has stopped, and nobody knows."""
        if nodes.present.get(node.name) is not node or node.leaves_at is not None or node.losses:
            return
        self.taken += 1
        market = nodes.group.spot or SpotMarket()
        if not notice_s:
            stop(self._cluster, node)
            node.meter.end(self._cluster.now)
            self._at(self._cluster.now + market.known_after_s, partial(self._gone, nodes, node))
            return
        node.leaves_at, node.ready = self._cluster.now + notice_s, False
        self._cluster.changed = True
        self._at(node.leaves_at, partial(self._gone, nodes, node))
        if market.drains:
            drain(self._cluster, node)
        self._cluster.touch(node.name, freed=False)

    def _gone(self, nodes: GroupNodes, node: NodeRun) -> None:
        """Let a node that leaves be gone, and what is on it be lost."""
        if nodes.present.get(node.name) is node:
            if not node.losses:
                stop(self._cluster, node)
            # Else the next attempt of a gang that was to move would start here at once.
            divert(self._cluster, node)
            fail_all(self._cluster, node)
            self.autoscaler.leave(nodes, node)

    def _at(self, at: float, call: partial[None]) -> None:
        self._cluster.call_at(at, call, ClusterEventKind.SCALED)
