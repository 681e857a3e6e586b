"""Nodes: a small record of each, what pods request of it, and what room it has for a campaign's trials."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import Node, NodeName
from controllers.worlds.argo.api import Json
from controllers.worlds.argo.pods import HOSTNAME, ZONE, OtherPod, PodRecord, Resources
from controllers.worlds.argo.untrusted import at, device_kinds, devices_of, epoch, mappings, quantity, text

_KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})
_SLACK = 1e-9
_NOTHING = Resources(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node: cores, bytes and devices that its pods may request, and whether it takes new ones.

    ``hostname`` is what a pod selects it by, ``zone`` where it stands.
    ``unready_since`` in Unix seconds, None while its kubelet is heard. Taints
    keep pods away that do not ask for every device in ``only_for``.
    """

    name: str
    hostname: str
    cpu: float
    memory: float
    open: bool
    unready_since: float | None
    devices: Devices = NO_DEVICES
    only_for: frozenset[str] = frozenset()
    zone: str = ""

    @property
    def fit(self) -> bool:
        """Whether a new pod may start there."""
        return self.open and self.unready_since is None

    def why_no_devices(self, wanted: Devices, taken: Devices) -> str:
        """Return why a pod that asks for ``wanted`` cannot have them beside those ``taken``; empty where it can."""
        if not self.only_for <= wanted.kinds():
            return f"node {self.name} takes only pods that ask for {', '.join(sorted(self.only_for))}"
        if wanted and not wanted.within(self.devices - taken):
            return f"{self.name} cannot give {wanted}: it has {self.devices}, and {taken} are requested"
        return ""

    def without(self, requested: Resources, devices_starting: Devices = NO_DEVICES) -> Node:
        """Return the node for policies, with what is left of it; of that, ``devices_starting`` are about to be used."""
        return Node(
            name=NodeName(self.name),
            cpu=round(max(0.0, self.cpu - requested.cpu), 6),
            memory=max(0.0, self.memory - requested.memory),
            ready=self.fit,
            devices=(self.devices - requested.devices).positive() if self.devices else NO_DEVICES,
            devices_starting=devices_starting,
            only_for=self.only_for,
            zone=self.zone,
        )


def project_node(node: Json) -> NodeRecord | None:
    """Return the record of a node."""
    name = text(node, "metadata", "name", most=253)
    if not name:
        return None
    ready = next((c for c in mappings(node, "status", "conditions") if text(c, "type") == "Ready"), {})
    since = epoch(ready, "lastTransitionTime") or epoch(node, "metadata", "creationTimestamp") or 0.0
    allocatable = at(node, "status", "allocatable")
    devices = devices_of(device_kinds(allocatable), lambda kind: quantity(allocatable, kind))
    keep_away = [taint for taint in mappings(node, "spec", "taints") if text(taint, "effect") in _KEEPS_AWAY]
    # By convention a taint with the name of a device keeps pods away that do not ask for it; Kubernetes' admission
    # plugin ExtendedResourceToleration, and Sweep, let those tolerate it that do.
    only_for = {key for taint in keep_away if (key := text(taint, "key")) in devices.kinds()}
    tainted = any(text(taint, "key") not in only_for or text(taint, "effect") != "NoSchedule" for taint in keep_away)
    return NodeRecord(
        name=name,
        hostname=text(node, "metadata", "labels", HOSTNAME, most=253) or name,
        cpu=quantity(allocatable, "cpu"),
        memory=quantity(allocatable, "memory"),
        open=not tainted and at(node, "spec", "unschedulable") is not True,
        unready_since=None if text(ready, "status") == "True" else since,
        devices=devices,
        only_for=frozenset(only_for),
        zone=text(node, "metadata", "labels", ZONE, most=253),
    )


class NodeRequests:
    """What all pods request of each node, as the scheduler counts it, summed up once for all campaigns. Read only.

    Args:
        nodes: the nodes.
        trial_pods: the pods of all trials. One that is on no node yet counts on the node that it says was chosen for it
            only if Argo made it and it fits there: anybody may write that on a pod of theirs.
        other_pods: all others.
        made: the uids of those that Argo made.
    """

    def __init__(
        self,
        nodes: Iterable[NodeRecord],
        trial_pods: Iterable[PodRecord],
        other_pods: Iterable[OtherPod],
        made: Collection[str] = frozenset(),
    ) -> None:
        self.nodes: Mapping[str, NodeRecord] = {node.name: node for node in nodes}
        self._by_pods_there = dict.fromkeys(self.nodes, _NOTHING)
        self._by_pods_to_come: dict[str, Resources] = {}
        self._counted = {pod.uid: pod for pod in trial_pods}
        there, to_come = self._by_pods_there, self._by_pods_to_come
        for other in other_pods:
            if other.node in there:
                there[other.node] += other.requests
        for pod in self._counted.values():
            if pod.on_node and pod.node in there:
                there[pod.node] += pod.requests
            elif (chosen := self.nodes.get(pod.marks.placed_on)) and not pod.on_node and not pod.over:
                fits = pod.requests.cpu <= chosen.cpu and pod.requests.memory <= chosen.memory
                if fits and not pod.gated and pod.uid in made:
                    to_come[chosen.name] = to_come.get(chosen.name, _NOTHING) + pod.requests
        # Most campaigns have pods on few of the nodes: the others are the same for all, and made once.
        self._free = {NodeName(name): record.without(there[name]) for name, record in self.nodes.items()}

    def of(self, name: str) -> Resources:
        """Return what is requested of a node, by the pods on it and the pods it was chosen for."""
        there, to_come = self._by_pods_there.get(name), self._by_pods_to_come.get(name)
        if there is None:
            return _NOTHING
        return there if to_come is None else there + to_come

    def nodes_for(
        self, own: Iterable[PodRecord], starting: Iterable[tuple[str, PodRecord]] = ()
    ) -> dict[NodeName, Node]:
        """Return the nodes as a policy sees them: less what all but its own pods request.

        Args:
            own: Pods whose shares it gives.
            starting: Its pods with devices that were placed and do not run yet, each after the name of its node. Their
                cores and memory are nobody's to give; their devices count, so that a pin on one waits for it.
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
        changed = [name for name in {**less, **held} if name in self.nodes]
        return self._free | {
            NodeName(name): self.nodes[name].without(
                less.get(name, self._by_pods_there[name]), held.get(name, NO_DEVICES)
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
        self._reserved: dict[str, Resources] = {}
        self._of_trials: dict[tuple[str, str], Resources] = {}

    def why_unfit(self, name: str, wanted: Resources, less: Resources = _NOTHING) -> str:
        """Return why pods that request ``wanted`` cannot start on a node; empty where they can.

        Args:
            name: The node.
            wanted: What they request together.
            less: What is requested or reserved there now and will not be by then.
        """
        node = self.nodes.get(name)
        if node is None:
            return f"there is no node {name}"
        if not node.fit:
            return f"node {name} takes no pods: it is not ready, cordoned or tainted"
        taken = self._taken(name) - less
        if taken.cpu + wanted.cpu > node.cpu + _SLACK:
            return f"{wanted.cpu:g} cores do not fit on {name}: {taken.cpu:g} of {node.cpu:g} are requested"
        if wanted.memory and taken.memory + wanted.memory > node.memory:
            return f"{wanted.memory:g} bytes do not fit on {name}: {taken.memory:g} of {node.memory:g} are requested"
        return node.why_no_devices(wanted.devices, taken.devices)

    def why_no_gang(
        self, nodes: Sequence[str], worker: Resources, trial: str, leaving: Iterable[PodRecord] = ()
    ) -> str:
        """Return why a gang's workers cannot start on ``nodes``, one for each; empty where all of them can.

        Args:
            nodes: The node of each worker.
            worker: What each requests.
            trial: The gang. What is reserved for it counts as free.
            leaving: Its pods, which will be gone by then.
        """
        less = {name: self._of_trials.get((trial, name), _NOTHING) for name in nodes}
        for pod in leaving:
            if pod.on_node and pod.node in less:
                less[pod.node] += pod.requests
        whys = (self.why_unfit(name, worker * nodes.count(name), less[name]) for name in dict.fromkeys(nodes))
        return next(filter(None, whys), "")

    def places(self, workers: int, worker: Resources, trial: str, preferred: Sequence[str]) -> tuple[str, ...]:
        """Return a node for each of a gang's workers, or none at all where they do not all fit now.

        Args:
            workers: How many.
            worker: What each requests.
            trial: The gang, as for ``why_no_gang``.
            preferred: The node of each worker where that is possible; the rest goes to few nodes, the emptiest first.
        """
        emptiest = sorted(self.nodes, key=lambda name: (self._taken(name).cpu - self.nodes[name].cpu, name))
        chosen: list[str] = []
        for rank in range(workers):
            names = dict.fromkeys((*preferred[rank : rank + 1], *chosen, *emptiest))
            found = next((n for n in names if not self._why_no_more(n, chosen, worker, trial)), None)
            if found is None:
                return ()
            chosen.append(found)
        return tuple(chosen)

    def _why_no_more(self, name: str, chosen: Sequence[str], worker: Resources, trial: str) -> str:
        return self.why_no_gang([*(one for one in chosen if one == name), name], worker, trial)

    def lacks(self, name: str, more: float) -> bool:
        """Whether a node does not have ``more`` cores left for pods that are on it."""
        node = self.nodes.get(name)
        return node is None or self._taken(name).cpu + more > node.cpu + _SLACK

    def reserve(self, name: str, amount: Resources, trial: str = "") -> None:
        """Take what is about to be requested for ``trial`` out of a node's room."""
        self._reserved[name] = self._reserved.get(name, _NOTHING) + amount
        self._of_trials[trial, name] = self._of_trials.get((trial, name), _NOTHING) + amount

    def reserved(self, name: str, trial: str) -> Resources:
        """Return what is reserved on a node for ``trial``."""
        return self._of_trials.get((trial, name), _NOTHING)

    def _taken(self, name: str) -> Resources:
        requested, reserved = self._requests.of(name), self._reserved.get(name)
        return requested if reserved is None else requested + reserved
