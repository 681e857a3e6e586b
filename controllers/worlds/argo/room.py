"""What is requested of each node, by the scheduler's reckoning, and what of a node is there for a sweep's trials."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controllers.core.model import Node, NodeName
from controllers.worlds.argo.nodes import NodeRecord
from controllers.worlds.argo.pods import Load, OtherPod, PodRecord

_SLACK = 1e-9
_NOTHING = Load(0.0, 0.0)


@dataclass
class Requested:
    """Cores and bytes requested of a node."""

    cpu: float = 0.0
    memory: float = 0.0

    def add(self, load: Load) -> None:
        """Count a pod in."""
        self.cpu += load.cpu
        self.memory += load.memory


class Requests:
    """All that all pods request, summed up once for all campaigns. Not to be changed.

    ``claimed`` counts what is on a node and what was chosen for it, ``taken`` only what is there. ``left`` shows each
    node with what nobody requests, ``counted`` has the trials' pods that went into the sums, by uid.
    """

    def __init__(
        self, nodes: Iterable[NodeRecord], trial_pods: Iterable[PodRecord], other_pods: Iterable[OtherPod]
    ) -> None:
        self.nodes: Mapping[str, NodeRecord] = {node.name: node for node in nodes}
        self.taken = {name: Requested() for name in self.nodes}
        chosen: dict[str, Requested] = {}
        self.counted = {pod.uid: pod for pod in trial_pods}
        for other in other_pods:
            _add(self.taken, other.node, other.load)
        for pod in self.counted.values():
            if pod.holds:
                _add(self.taken, pod.node, pod.load)
            elif pod.marks.placed_on and not pod.over:
                chosen.setdefault(pod.marks.placed_on, Requested()).add(pod.load)
        self._chosen = chosen
        self.left = {NodeName(name): _node(record, self.taken[name]) for name, record in self.nodes.items()}

    def claimed(self, name: str) -> Load:
        """Return what is requested of a node, by pods there and pods it was chosen for."""
        taken, chosen = self.taken.get(name), self._chosen.get(name)
        if taken is None:
            return _NOTHING
        return Load(taken.cpu, taken.memory) if chosen is None else _sum(taken, chosen)

    def nodes_for(self, own: Iterable[PodRecord]) -> dict[NodeName, Node]:
        """Return the nodes as a policy sees them: less what all but ``own`` pods request, whose shares it gives."""
        taken: dict[str, Requested] = {}
        for pod in own:
            counted = self.counted.get(pod.uid)
            if counted is not None and counted.holds and counted.node in self.taken:
                there = self.taken[counted.node]
                share = Load(-max(counted.share.wanted, counted.share.has), -counted.memory)
                taken.setdefault(counted.node, Requested(there.cpu, there.memory)).add(share)
        return self.left | {NodeName(name): _node(self.nodes[name], amount) for name, amount in taken.items()}


class Room:
    """The nodes by name, and all that is requested of each; takes in what one campaign was promised since."""

    def __init__(self, requests: Requests) -> None:
        self.nodes = requests.nodes
        self._requests = requests
        self._promised: dict[str, Requested] = {}

    def unfit(self, name: str, load: Load) -> str:
        """Return why a pod with ``load`` can't start on a node, nothing where it can."""
        node = self.nodes.get(name)
        if node is None:
            return f"there is no node {name}"
        if not node.fit:
            return f"node {name} takes no pods: it is not ready, cordoned or tainted"
        asked = self._asked(name)
        if asked.cpu + load.cpu > node.cpu + _SLACK:
            return f"{load.cpu:g} cores do not fit on {name}: {asked.cpu:g} of {node.cpu:g} are requested"
        if load.memory and asked.memory + load.memory > node.memory:
            return f"{load.memory:g} bytes do not fit on {name}: {asked.memory:g} of {node.memory:g} are requested"
        return ""

    def too_much(self, name: str, more: float) -> bool:
        """Whether a node has not ``more`` cores left for a pod that is on it."""
        node = self.nodes.get(name)
        return node is None or self._asked(name).cpu + more > node.cpu + _SLACK

    def promise(self, name: str, load: Load) -> None:
        """Count in what is about to be requested of a node."""
        self._promised.setdefault(name, Requested()).add(load)

    def _asked(self, name: str) -> Load:
        claimed, promised = self._requests.claimed(name), self._promised.get(name)
        return claimed if promised is None else _sum(claimed, promised)


def _add(amounts: Mapping[str, Requested], name: str, load: Load) -> None:
    if name in amounts:
        amounts[name].add(load)


def _sum(one: Load | Requested, other: Requested) -> Load:
    return Load(one.cpu + other.cpu, one.memory + other.memory)


def _node(record: NodeRecord, taken: Requested) -> Node:
    return Node(
        name=NodeName(record.name),
        cpu=round(max(0.0, record.cpu - taken.cpu), 6),
        memory=max(0.0, record.memory - taken.memory),
        ready=record.fit,
    )
