"""Shares the cores of nodes where something has changed, and foresees which stage ends first on each."""

import math
from collections.abc import Mapping

from controllers.core.model import NodeName
from controllers.worlds.simulated.events import ClusterEvent, ClusterEventKind, EventQueue
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.workload import Network


class CoreSharing:
    """Knows on which of ``nodes`` something has changed since their cores were shared.

    Args:
        nodes: those that are there.
        network: what the workers of gangs talk over.
        queue: gets what is foreseen.
    """

    def __init__(self, nodes: Mapping[NodeName, NodeRun], network: Network, queue: EventQueue) -> None:
        self._nodes = nodes
        self._network = network
        self._queue = queue
        self._unshared: dict[NodeName, None] = {}

    def note(self, *nodes: NodeName) -> None:
        """Note that something has changed on ``nodes``."""
        self._unshared.update(dict.fromkeys(nodes))

    def forget(self, node: NodeName) -> None:
        """Forget ``node``, which is gone."""
        self._unshared.pop(node, None)

    def unshared(self) -> list[NodeRun]:
        """Return the nodes whose cores are to be shared."""
        return [self._nodes[name] for name in self._unshared]

    def share(self, now: float) -> list[NodeName]:
        """Share the cores of nodes where something has changed, as of ``now`` seconds; return which these were."""
        changed = list(self._unshared)
        for name in changed:
            self._nodes[name].share(now)
        # What a gang gets done follows from all its nodes, and so does when each of these comes to the end of a stage.
        gangs = {run.spec.id: run for name in changed for run in self._nodes[name].gangs()}
        for run in gangs.values():
            run.settle(now, self._network, {name: self._nodes[name].spec.zone for name in run.nodes})
        for name in dict.fromkeys((*changed, *(name for run in gangs.values() for name in run.nodes))):
            first = self._nodes[name].foreseen()
            if first < math.inf:
                due = ClusterEvent(ClusterEventKind.PROGRESS, name, self._nodes[name].version)
                self._queue.put(first, due)
        self._unshared.clear()
        return changed
