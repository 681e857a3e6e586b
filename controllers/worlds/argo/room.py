"""What is requested of each node, by the scheduler's reckoning, and what of a node is there for a sweep's trials."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controllers.model import Node, NodeName
from controllers.worlds.argo.nodes import NodeRecord
from controllers.worlds.argo.pods import Load, OtherPod, PodRecord

_SLACK = 1e-9


@dataclass
class Requested:
    """Cores and bytes requested of a node."""

    cpu: float = 0.0
    memory: float = 0.0

    def add(self, load: Load) -> None:
        """Count a pod in."""
        self.cpu += load.cpu
        self.memory += load.memory


class Room:
    """The nodes by name, and all that is requested of each; takes in what was promised since."""

    def __init__(
        self, nodes: Iterable[NodeRecord], trial_pods: Iterable[PodRecord], other_pods: Iterable[OtherPod]
    ) -> None:
        self.nodes: Mapping[str, NodeRecord] = {node.name: node for node in nodes}
        self._requested = {name: Requested() for name in self.nodes}
        for pod in trial_pods:
            node = "" if pod.over else pod.node or pod.marks.placed_on
            self._add(node, pod.load)
        for other in other_pods:
            self._add(other.node, other.load)

    def unfit(self, name: str, load: Load) -> str:
        """Return why a pod with ``load`` can't start on a node, nothing where it can."""
        node = self.nodes.get(name)
        if node is None:
            return f"there is no node {name}"
        if not node.fit:
            return f"node {name} takes no pods: it is not ready, cordoned or tainted"
        asked = self._requested[name]
        if asked.cpu + load.cpu > node.cpu + _SLACK:
            return f"{load.cpu:g} cores do not fit on {name}: {asked.cpu:g} of {node.cpu:g} are requested"
        if load.memory and asked.memory + load.memory > node.memory:
            return f"{load.memory:g} bytes do not fit on {name}: {asked.memory:g} of {node.memory:g} are requested"
        return ""

    def too_much(self, name: str, more: float) -> bool:
        """Whether a node has not ``more`` cores left for a pod that is on it."""
        node = self.nodes.get(name)
        return node is None or self._requested[name].cpu + more > node.cpu + _SLACK

    def promise(self, name: str, load: Load) -> None:
        """Count in what is about to be requested of a node."""
        self._add(name, load)

    def _add(self, name: str, load: Load) -> None:
        if name in self._requested:
            self._requested[name].add(load)


def nodes_for(
    records: Iterable[NodeRecord], trials: Iterable[PodRecord], pods: Iterable[PodRecord], others: Iterable[OtherPod]
) -> list[Node]:
    """Return the nodes as a policy sees them: less what all others request.

    Args:
        records: the nodes.
        trials: the pods of the sweep's own live trials; their shares are the policy's to give.
        pods: the pods of all trials of all sweeps.
        others: all other pods.
    """
    taken: dict[str, Requested] = {}
    for other in others:
        taken.setdefault(other.node, Requested()).add(other.load)
    for pod in pods:
        if pod.holds:
            taken.setdefault(pod.node, Requested()).add(pod.load)
    for own in trials:
        taken.setdefault(own.node, Requested()).add(Load(-max(own.share.wanted, own.share.has), -own.memory))
    return [_node(record, taken.get(record.name) or Requested()) for record in records]


def _node(record: NodeRecord, taken: Requested) -> Node:
    return Node(
        name=NodeName(record.name),
        cpu=round(max(0.0, record.cpu - taken.cpu), 6),
        memory=max(0.0, record.memory - taken.memory),
        ready=record.fit,
    )
