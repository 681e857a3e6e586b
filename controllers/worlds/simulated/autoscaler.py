"""A simulated autoscaler: asks for nodes that waiting pods need, and removes those that have been empty for a while.

As cluster-autoscaler and Karpenter do, it acts on pods that are in the scheduler's queue and fit nowhere: a pod that is
gated is not, and one that names a node which is not there asks for nothing. It does not know that a pod may end soon,
and moves none to empty a node. One that has come is kept for a moment even if the pods that asked for it are not there
then, such as those of a gang that gives up and tries again. A node is paid for from the moment at which it is asked for
until it is gone, one that never comes until it is given up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from controllers.core.model import NodeKind, NodeName
from controllers.worlds.simulated.billing import NodeMeter
from controllers.worlds.simulated.cluster import SimulatedCluster
from controllers.worlds.simulated.coming_and_going import join, remove
from controllers.worlds.simulated.events import ClusterEventKind
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.packing import FreeRoom, nodes_needed
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec, Workload

NOMINATED_S: Final = 20.0
"""How long a node that has come is kept for the pods that asked for it, in seconds.

Karpenter's nomination: twice its longest batch, of 10 s (nominationWindow in pkg/controllers/state/statenode.go).
"""


@dataclass(frozen=True, slots=True, eq=False)
class Boot:
    """A node that was asked for and has not come yet."""

    spec: NodeSpec
    meter: NodeMeter


class GroupNodes:
    """The nodes of one group: those that are there, by name, and those that are coming, the oldest first.

    Of a group whose provider has no more, none is asked for until ``rests_until`` seconds.
    """

    def __init__(self, group: NodeGroup) -> None:
        self.group = group
        self.present: dict[NodeName, NodeRun] = {}
        self.coming: list[Boot] = []
        self.asked = 0
        self.rests_until = 0.0

    @property
    def size(self) -> int:
        """How many nodes are there or coming."""
        return len(self.present) + len(self.coming)

    @property
    def more(self) -> int:
        """How many more there may be."""
        return self.group.most - self.size

    def kind(self) -> NodeKind:
        """Return it as policies see it."""
        node, group = self.group.node, self.group
        return NodeKind(
            group.name,
            node.cpu,
            node.memory,
            node.devices,
            zone=node.zone,
            boots_s=group.boots_s,
            more=self.more,
            coming=len(self.coming),
            price=node.price,
            spot=group.spot is not None,
        )


class Autoscaler:
    """Adds and removes the nodes of a workload's groups; ``came`` is told of each that has come."""

    def __init__(
        self, cluster: SimulatedCluster, workload: Workload, came: Callable[[GroupNodes, NodeRun], None]
    ) -> None:
        self.groups = {group.name: GroupNodes(group) for group in workload.groups}
        self._cluster = cluster
        self._scaling = workload.scaling
        self._came = came
        self._stale = True
        self._asked_pods = 0
        self._scans_at = -1.0
        for nodes in self.groups.values():
            for _ in range(nodes.group.least):
                self._arrive(nodes, self._new(nodes))
        cluster.after_changes = self._look

    @property
    def shrinks(self) -> bool:
        """Whether there are more nodes than must be there, or some that leave."""
        every = self.groups.values()
        return any(
            nodes.size > nodes.group.least or any(node.leaves_at is not None for node in nodes.present.values())
            for nodes in every
        )

    def kinds(self) -> tuple[NodeKind, ...]:
        """Return the groups as policies see them."""
        return tuple(nodes.kind() for nodes in self.groups.values())

    def leave(self, nodes: GroupNodes, node: NodeRun) -> None:
        """Let a node that nothing is on any more be gone."""
        del nodes.present[node.name]
        remove(self._cluster, node)
        self.look_again()

    def call_off(self, nodes: GroupNodes, boot: Boot) -> None:
        """Give up a node that has not come."""
        nodes.coming.remove(boot)
        boot.meter.end(self._cluster.now)
        self._cluster.changed = True
        self.look_again()

    def look_again(self) -> None:
        """Look at the next scan what is needed: what was known has changed."""
        self._stale = True
        self._scan_soon()

    def _look(self, changed: Sequence[NodeName]) -> None:
        """Note which nodes are empty by now, and whether a pod waits that was not there at the last scan."""
        for name in changed:
            node = self._cluster.nodes.get(name)
            if node is None or node.group is None:
                continue
            if not node.empty:
                node.idle_since = None
            elif node.leaves_at is not None and (node.group.spot is None or node.group.spot.drains):
                self._later(0.0, partial(self._drained, self.groups[node.group.name], node))
            elif node.idle_since is None:
                node.idle_since = self._cluster.now
                idle_s = max(self._scaling.idle_s, node.kept_until - self._cluster.now)
                self._later(idle_s, partial(self._shrink, self.groups[node.group.name]))
        if self._cluster.scheduler.asked != self._asked_pods:
            self._asked_pods = self._cluster.scheduler.asked
            self._stale = True
        self._scan_soon()

    def _scan_soon(self) -> None:
        wanted = self._cluster.scheduler.waits or any(n.size < n.group.least for n in self.groups.values())
        if not (self._stale and wanted) or self._scans_at > self._cluster.now:
            return
        every = self._scaling.scan_s
        self._scans_at = (self._cluster.now // every + 1) * every
        self._cluster.call_at(self._scans_at, self._scan, ClusterEventKind.SCALED)

    def _scan(self) -> None:
        """Ask for the nodes that waiting pods need, and for those that must be there."""
        now = self._cluster.now
        self._stale = False
        for nodes in self.groups.values():
            while nodes.size < nodes.group.least and self._ask(nodes):
                pass
        more = {name: 0 if nodes.rests_until > now else nodes.more for name, nodes in self.groups.items()}
        pods = [run.spec for run in self._cluster.scheduler.unplaced]
        coming = [FreeRoom.of(boot.spec) for nodes in self.groups.values() for boot in nodes.coming]
        needed = nodes_needed(pods, coming, [nodes.group for nodes in self.groups.values()], more)
        for name, number in needed.items():
            for _ in range(number):
                self._ask(self.groups[name])
        if needed:  # What one group could not give, another may.
            self.look_again()

    def _ask(self, nodes: GroupNodes) -> bool:
        """Ask the provider for one more node; return whether it has one."""
        group, now = nodes.group, self._cluster.now
        if nodes.rests_until > now:
            return False
        if group.spot is not None and group.spot.has(now) <= nodes.size:
            nodes.rests_until = now + self._scaling.retry_s
            self._later(self._scaling.retry_s, self.look_again)
            return False
        boot = self._new(nodes)
        nodes.coming.append(boot)
        longer_s, fails = self._cluster.faults.boot(group.name, nodes.asked)
        if not fails and group.boots_s + longer_s < self._scaling.gives_up_s:
            self._later(group.boots_s + longer_s, partial(self._booted, nodes, boot))
        else:
            self._later(self._scaling.gives_up_s, partial(self._given_up, nodes, boot))
        self._cluster.changed = True
        return True

    def _new(self, nodes: GroupNodes) -> Boot:
        nodes.asked += 1
        spec = nodes.group.numbered(nodes.asked)
        meter = NodeMeter(spec.name, nodes.group.name, spec.price, self._cluster.now)
        self._cluster.meters.append(meter)
        return Boot(spec, meter)

    def _booted(self, nodes: GroupNodes, boot: Boot) -> None:
        if boot in nodes.coming:
            nodes.coming.remove(boot)
            self._arrive(nodes, boot)
            self.look_again()
            # One that was kept, as it was the last, may go now.
            self._later(0.0, partial(self._shrink, nodes))

    def _given_up(self, nodes: GroupNodes, boot: Boot) -> None:
        if boot in nodes.coming:
            self.call_off(nodes, boot)

    def _arrive(self, nodes: GroupNodes, boot: Boot) -> None:
        node = nodes.present[boot.spec.name] = NodeRun(boot.spec, boot.meter, nodes.group)
        node.kept_until = self._cluster.now + NOMINATED_S
        join(self._cluster, node)
        self._came(nodes, node)

    def _drained(self, nodes: GroupNodes, node: NodeRun) -> None:
        if nodes.present.get(node.name) is node and node.empty:
            self.leave(nodes, node)

    def _shrink(self, nodes: GroupNodes) -> None:
        """Remove nodes of a group that have been empty for long enough, the longest first, down to the least."""
        now = self._cluster.now
        idle = [(node.idle_since, node) for node in nodes.present.values() if node.idle_since is not None]
        for since, node in sorted(idle, key=lambda pair: pair[0]):
            if nodes.size > nodes.group.least and now >= max(since + self._scaling.idle_s, node.kept_until) - 1e-6:
                self.leave(nodes, node)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self._cluster.call_at(self._cluster.now + seconds, call, ClusterEventKind.SCALED)
