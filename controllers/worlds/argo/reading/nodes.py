"""Small records of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import Node, NodeName
from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import at, device_kinds, devices_of, epoch, mappings, quantity, text
from controllers.worlds.argo.reading.demands import HOSTNAME, Demands, Taint, labels_of, taints_of
from controllers.worlds.argo.reading.device_labels import device_model, replicas_told
from controllers.worlds.argo.reading.node_kinds import KARPENTER, NO_KIND, NOTHING_GIVEN, GivenKinds, MachineKind
from controllers.worlds.argo.reading.notices import Notice, notices_of
from controllers.worlds.argo.reading.pods import Resources
from controllers.worlds.argo.reading.versions import CLAIMS_RESIZE_SINCE, RESIZES_SINCE, Version, version_in

ZONE: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node: cores, bytes and devices that its pods may request, and whether it takes new ones.

    ``hostname`` is what a pod selects it by, ``zone`` where it stands; ``unready_since`` in Unix seconds, None while
    its kubelet is heard. Taints keep pods away that do not ask for every device in ``only_for``, and those that do not
    tolerate ``taints``. ``kubelet`` is its version, None where it tells none. ``notices`` say that it goes.
    It was made at ``created_at``, in Unix seconds.
    """

    name: str
    hostname: str
    cpu: float
    memory: float
    open: bool
    unready_since: float | None
    devices: Devices = NO_DEVICES
    only_for: frozenset[str] = frozenset()
    taints: tuple[Taint, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    zone: str = ""
    kubelet: Version | None = None
    notices: tuple[Notice, ...] = ()
    created_at: float = 0.0
    kind: MachineKind = NO_KIND

    @property
    def resizes(self) -> bool:
        """Whether its kubelet may change the shares of running pods."""
        return self.kubelet is None or self.kubelet >= RESIZES_SINCE

    @property
    def resizes_with_claims(self) -> bool:
        """Whether the shares of running pods with resource claims may change there.

        No kubelet is newer than its API server.
        """
        return self.kubelet is None or self.kubelet >= CLAIMS_RESIZE_SINCE

    @property
    def karpenters(self) -> bool:
        """Whether Karpenter made it, and may remove it."""
        return KARPENTER in self.labels

    @property
    def fit(self) -> bool:
        """Whether a new pod may start there, if it is one for the node."""
        return self.open and self.unready_since is None and not self.notices

    def allows(self, demands: Demands) -> bool:
        """Whether it is a node for pods with these demands."""
        return demands.allow(self.name, self.labels, self.taints)

    def without(self, requested: Resources, devices_starting: Devices = NO_DEVICES, *, tolerated: bool = False) -> Node:
        """Return the node for policies, with what is left of it; of that, ``devices_starting`` are about to be used.

        ``tolerated`` tells that some trial tolerates its taints.
        """
        return Node(
            name=NodeName(self.name),
            cpu=round(max(0.0, self.cpu - requested.cpu), 6),
            memory=max(0.0, self.memory - requested.memory),
            ready=self.fit and (tolerated or not self.taints),
            devices=(self.devices - requested.devices).positive() if self.devices else NO_DEVICES,
            devices_starting=devices_starting,
            only_for=self.only_for,
            zone=self.zone,
            kind=self.kind.name,
            price=self.kind.price,
            device_model=device_model(self.labels, self.devices),
            replicas=replicas_told(self.labels, self.devices),
        )


def project_node(node: Json, given: GivenKinds = NOTHING_GIVEN) -> NodeRecord | None:
    """Return the record of a node; ``given`` is what an owner says of nodes."""
    name = text(node, "metadata", "name", most=253)
    if not name:
        return None
    ready = next((c for c in mappings(node, "status", "conditions") if text(c, "type") == "Ready"), {})
    created_at = epoch(node, "metadata", "creationTimestamp") or 0.0
    since = epoch(ready, "lastTransitionTime") or created_at
    allocatable = at(node, "status", "allocatable")
    devices = devices_of(device_kinds(allocatable), lambda kind: quantity(allocatable, kind))
    keep_away, amiss = taints_of(node)
    # By convention a taint with the name of a device keeps pods away that do not ask for it; Kubernetes' admission
    # plugin ExtendedResourceToleration, and Sweep, let those tolerate it that do.
    only_for = frozenset(taint.key for taint in keep_away) & devices.kinds()
    labels = labels_of(node)
    return NodeRecord(
        name=name,
        hostname=text(node, "metadata", "labels", HOSTNAME, most=253) or name,
        cpu=quantity(allocatable, "cpu"),
        memory=quantity(allocatable, "memory"),
        open=not amiss and at(node, "spec", "unschedulable") is not True,
        unready_since=None if text(ready, "status") == "True" else since,
        devices=devices,
        only_for=only_for,
        taints=tuple(taint for taint in keep_away if taint.key not in only_for or taint.effect != "NoSchedule"),
        labels=labels,
        zone=text(node, "metadata", "labels", ZONE, most=253),
        kubelet=version_in(text(node, "status", "nodeInfo", "kubeletVersion", most=128)),
        notices=notices_of(node),
        created_at=created_at,
        kind=given.of(labels),
    )
