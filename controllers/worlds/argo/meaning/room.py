"""What pods request of the nodes, and what room that leaves for a campaign's trials."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import Node, NodeName
from controllers.worlds.argo.reading.demands import ANY_NODE, Demands
from controllers.worlds.argo.reading.nodes import NodeRecord
from controllers.worlds.argo.reading.pods import NO_RESOURCES, OtherPod, PodRecord, Resources

_SLACK: Final = 1e-9
MOST_CLAIM_S: Final = 600.0
"""Seconds for which a pod keeps room on a node that it does not come to."""


class Claims:
    """Pods that wait for the scheduler to bring them to the node that was chosen for them, and since when.

    The scheduler does that within seconds where there is room. A pod that it never brings there, since its author asks
    for something impossible besides, would keep room without end, at no cost: so it keeps it for ``MOST_CLAIM_S`` only.
    Nothing that is written on a pod tells when its gate was opened and can be believed; so we count from when we first
    saw it open.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self.next_end = math.inf
        """When the next of them has kept room for long enough, on the clock that ``believed`` is told."""

    def believed(self, pods: Iterable[PodRecord], now: float) -> frozenset[str]:
        """Return the uids of those ``pods`` that keep room at ``now``, in seconds of a clock that never goes back."""
        self._since = {pod.uid: self._since.get(pod.uid, now) for pod in pods if pod.claims}
        kept = {uid: since + MOST_CLAIM_S for uid, since in self._since.items() if now < since + MOST_CLAIM_S}
        self.next_end = min(kept.values(), default=math.inf)
        return frozenset(kept)


class NodeRequests:
    """What all pods request of each node, as the scheduler counts it, summed up once for all campaigns. Read only.

    Args:
        nodes: the nodes.
        trial_pods: the pods of all trials. One that is on no node yet counts on the node that it says was chosen for it
            only if that is believed and it fits there: anybody may write that on a pod of theirs.
        other_pods: all others.
        believed: the uids of those whose claim is believed.
        leaving: by when pods must have left each node that goes, in Unix seconds.
    """

    def __init__(
        self,
        nodes: Iterable[NodeRecord],
        trial_pods: Iterable[PodRecord],
        other_pods: Iterable[OtherPod],
        believed: Collection[str] = frozenset(),
        leaving: Mapping[str, float] | None = None,
    ) -> None:
        self.nodes: Mapping[str, NodeRecord] = {node.name: node for node in nodes}
        self.leaving = leaving or {}
        self._by_pods_there = dict.fromkeys(self.nodes, NO_RESOURCES)
        self._by_pods_to_come: dict[str, Resources] = {}
        self._counted = {pod.uid: pod for pod in trial_pods}
        there, to_come = self._by_pods_there, self._by_pods_to_come
        self.daemons: dict[str, Resources] = {}
        """What the pods request that run on every node, by node."""
        for other in other_pods:
            if other.node in there:
                there[other.node] += other.requests
                if other.daemon:
                    self.daemons[other.node] = self.daemons.get(other.node, NO_RESOURCES) + other.requests
        for pod in self._counted.values():
            if pod.on_node and pod.node in there:
                there[pod.node] += pod.requests
            elif (chosen := self.nodes.get(pod.marks.placed_on)) and pod.claims and pod.uid in believed:
                fits = pod.requests.cpu <= chosen.cpu and pod.requests.memory <= chosen.memory
                if fits:
                    to_come[chosen.name] = to_come.get(chosen.name, NO_RESOURCES) + pod.requests
        # Most campaigns have pods on few of the nodes: the others are the same for all, and made once.
        self._free = {NodeName(name): record.without(there[name]) for name, record in self.nodes.items()}

    def of(self, name: str) -> Resources:
        """Return what is requested of a node, by the pods on it and the pods it was chosen for."""
        there, to_come = self._by_pods_there.get(name), self._by_pods_to_come.get(name)
        if there is None:
            return NO_RESOURCES
        return there if to_come is None else there + to_come

    def nodes_for(
        self,
        own: Iterable[PodRecord],
        starting: Iterable[tuple[str, PodRecord]] = (),
        tolerated: Collection[NodeName] = (),
    ) -> dict[NodeName, Node]:
        """Return the nodes as a policy sees them: less what all but its own pods request.

        Args:
            own: Pods whose shares it gives.
            starting: Its pods with devices that were placed and do not run yet, each after the name of its node. Their
                cores and memory are nobody's to give; their devices count, so that a pin on one waits for it.
            tolerated: Tainted nodes that some of its trials may use all the same.
        """
        less: dict[str, Resources] = {}
        held: dict[str, Devices] = {}

        def take_out(pod: PodRecord, amount: Resources) -> None:
            before = less.get(pod.node, self._by_pods_there[pod.node])
            less[pod.node] = before + amount

        for pod in own:
            # What went into the sums comes out of them, not what the pod requests by now.
            if (counted := self._counted_there(pod)) is not None:
                share = max(counted.share.wanted, counted.share.has)
                take_out(counted, Resources(-share, -counted.memory, counted.requests.devices * -1))
        for name, pod in starting:
            held[name] = held.get(name, NO_DEVICES) + pod.requests.devices
            if (counted := self._counted_there(pod)) is not None:
                take_out(counted, Resources(0.0, 0.0, counted.requests.devices * -1))
        changed = [name for name in dict.fromkeys((*less, *held, *tolerated)) if name in self.nodes]
        return self._free | {
            NodeName(name): self.nodes[name].without(
                less.get(name, self._by_pods_there[name]), held.get(name, NO_DEVICES), tolerated=name in tolerated
            )
            for name in changed
        }

    def _counted_there(self, pod: PodRecord) -> PodRecord | None:
        """Return the record of ``pod`` that went into the sums of its node, None where it did not."""
        counted = self._counted.get(pod.uid)
        return counted if counted is not None and counted.on_node and counted.node in self._by_pods_there else None


class NodeRoom:
    """The nodes by name, and what room each has, less what one campaign has reserved since the requests were summed."""

    def __init__(self, requests: NodeRequests) -> None:
        self.nodes = requests.nodes
        self._requests = requests
        self._reserved: dict[str, dict[str, Resources]] = {}

    def why_unfit(
        self,
        nodes: Sequence[str],
        worker: Resources,
        demands: Demands = ANY_NODE,
        trial: str = "",
        leaving: Sequence[PodRecord] = (),
    ) -> str | None:
        """Return why the workers of an attempt cannot start on ``nodes``; None where all of them can.

        Args:
            nodes: The node of each worker.
            worker: What each requests.
            demands: What each demands of its node.
            trial: Whose pods they are. What is reserved there for it is room for them,
            leaving: and so is what those of its pods request that will be gone by then.
        """
        at_each = {name: worker * nodes.count(name) for name in nodes}
        whys = (self._why_not_on(name, wanted, demands, trial, leaving) for name, wanted in at_each.items())
        return next(filter(None, whys), None)

    def _why_not_on(
        self, name: str, wanted: Resources, demands: Demands, trial: str, leaving: Sequence[PodRecord]
    ) -> str | None:
        node = self.nodes.get(name)
        if node is None:
            return f"there is no node {name}"
        if not node.fit:
            return f"node {name} takes no pods: it is not ready, cordoned, or goes"
        if not node.allows(demands):
            return f"node {name} is none for this trial: {_why_not_for(demands, node)}"
        freed = (pod.requests for pod in leaving if pod.on_node and pod.node == name)
        taken = self._taken(name, trial) - sum(freed, NO_RESOURCES)
        if taken.cpu + wanted.cpu > node.cpu + _SLACK:
            return f"{wanted.cpu:g} cores do not fit on {name}: {taken.cpu:g} of {node.cpu:g} are requested"
        if wanted.memory and taken.memory + wanted.memory > node.memory:
            return f"{wanted.memory:g} bytes do not fit on {name}: {taken.memory:g} of {node.memory:g} are requested"
        return _why_no_devices(wanted.devices, taken.devices, node)

    def places(
        self, workers: int, worker: Resources, demands: Demands, trial: str, preferred: Sequence[str]
    ) -> tuple[str, ...]:
        """Return a node for each of a gang's workers, or none at all where they do not all fit now.

        Args:
            workers: How many.
            worker: What each requests.
            demands: What each demands of its node.
            trial: The gang, as for ``why_unfit``.
            preferred: The node of each worker where that is possible; the rest goes to few nodes, the emptiest first.
        """
        allowed = [name for name, node in self.nodes.items() if node.allows(demands)]
        emptiest = sorted(allowed, key=lambda name: (self._taken(name).cpu - self.nodes[name].cpu, name))
        chosen: list[str] = []
        for rank in range(workers):
            names = dict.fromkeys((*preferred[rank : rank + 1], *chosen, *emptiest))
            wanted = {name: worker * (chosen.count(name) + 1) for name in names}
            roomy = (name for name in names if not self._why_not_on(name, wanted[name], demands, trial, ()))
            if (name := next(roomy, None)) is None:
                return ()
            chosen.append(name)
        return tuple(chosen)

    def lacks(self, name: str, more: float) -> bool:
        """Whether a node does not have ``more`` cores left for pods that are on it."""
        node = self.nodes.get(name)
        return node is None or self._taken(name).cpu + more > node.cpu + _SLACK

    def reserve(self, name: str, amount: Resources, trial: str) -> None:
        """Take what ``trial`` is about to request out of a node's room."""
        reserved = self._reserved.setdefault(name, {})
        reserved[trial] = reserved.get(trial, NO_RESOURCES) + amount

    def _taken(self, name: str, but_for: str = "") -> Resources:
        others = (amount for trial, amount in self._reserved.get(name, {}).items() if trial != but_for)
        return sum(others, self._requests.of(name))


def _why_not_for(demands: Demands, node: NodeRecord) -> str:
    if not demands.understood:
        return "it demands more of its node than is read"
    held_off = [taint.key for taint in node.taints if not demands.tolerate(taint)]
    return f"it does not tolerate the taint {held_off[0]}" if held_off else "its selector or affinity forbids it"


def _why_no_devices(wanted: Devices, taken: Devices, node: NodeRecord) -> str | None:
    if not node.only_for <= wanted.kinds():
        return f"node {node.name} takes only pods that ask for {', '.join(sorted(node.only_for))}"
    if wanted and not wanted.within(node.devices - taken):
        return f"{node.name} cannot give {wanted}: it has {node.devices}, and {taken} are requested"
    return None
