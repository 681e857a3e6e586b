"""What kind of machine a node is: by its labels, and by what an owner says of nodes with such labels. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controllers.core.devices import NO_DEVICES, Devices
from controllers.worlds.argo.reading.demands import Demands, Taint

KARPENTER: Final = "karpenter.sh/nodepool"
"""The label of all nodes that Karpenter made."""
_POOLS: Final = (
    KARPENTER,
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
)
_MACHINE: Final = "node.kubernetes.io/instance-type"
_SPOT: Final = (
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("cloud.google.com/gke-spot", "true"),
    ("cloud.google.com/gke-preemptible", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)


@dataclass(frozen=True, slots=True)
class GivenKind:
    """A kind of nodes that an owner says can come: all that have these ``labels``.

    ``cpu`` (cores), ``memory`` (bytes) and ``devices`` are what an empty one has for trials, ``taints`` keep pods away
    as on the nodes. ``most`` is how many there can be in all, ``boots_s`` how many seconds one takes to be there, and
    ``price`` what an hour of one costs, None where nobody knows.
    """

    name: str
    labels: Mapping[str, str]
    cpu: float
    memory: float
    devices: Devices = NO_DEVICES
    taints: tuple[Taint, ...] = ()
    most: int = 1
    boots_s: float = 120.0
    price: float | None = None
    spot: bool = False

    @property
    def only_for(self) -> frozenset[str]:
        """Devices that a pod must ask for, each with a taint of its name."""
        return frozenset(taint.key for taint in self.taints) & self.devices.kinds()

    def allows(self, demands: Demands) -> bool:
        """Whether such a node is one for pods with these demands."""
        kept_off = [taint for taint in self.taints if taint.key not in self.only_for]
        return demands.allow("", self.labels, kept_off)


@dataclass(frozen=True, slots=True)
class GivenPrice:
    """What an hour of a node with these ``labels`` costs."""

    labels: Mapping[str, str]
    price: float


@dataclass(frozen=True, slots=True)
class GivenKinds:
    """What an owner says of the nodes of a cluster; of several that match a node, the first counts."""

    kinds: tuple[GivenKind, ...] = ()
    prices: tuple[GivenPrice, ...] = ()

    def of(self, labels: Mapping[str, str]) -> "MachineKind":
        """Return the kind of a node with these ``labels``."""
        given = next((kind for kind in self.kinds if _match(kind.labels, labels)), None)
        price = next((one.price for one in self.prices if _match(one.labels, labels)), None)
        if given is not None:
            return MachineKind(given.name, price if given.price is None else given.price, given.spot)
        spot = any(labels.get(key) == value for key, value in _SPOT)
        pool = next((labels[key] for key in _POOLS if labels.get(key)), "")
        named = (pool, labels.get(_MACHINE, ""))
        return MachineKind("/".join(filter(None, (*named, "spot" if spot and any(named) else ""))), price, spot)


NOTHING_GIVEN: Final = GivenKinds()


@dataclass(frozen=True, slots=True)
class MachineKind:
    """The kind of a node: its ``name``, empty where no label tells, what an hour costs, and whether it is spot."""

    name: str = ""
    price: float | None = None
    spot: bool = False


NO_KIND: Final = MachineKind()


def _match(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())
