"""Where kube-scheduler would put a pod that names no nodes of its own.

Modelled on the default profile of Kubernetes 1.35: the sum, with weight 1 each, of NodeResourcesFit (strategy
LeastAllocated, cpu and memory alike), NodeResourcesBalancedAllocation and ImageLocality, in Go's integer arithmetic.
Nobody gets points for an image unless the caller says so, which is right once every node has it. The profile's other
plugins give all nodes the same for such a pod and are left out of the sum: NodeAffinity, InterPodAffinity and
TaintToleration (nothing to prefer), and PodTopologySpread, whose built-in constraints count the pods of the same
Service, ReplicaSet or StatefulSet: a workflow's pods belong to none. Sidecars that request nothing (Argo's ``wait``)
are not counted. A node that lacks a device which the pod asks for is filtered out; devices bring no points, since the
default profile scores cpu and memory only. So is a node that selector, required affinity or taints keep the pod off.

Kubernetes 1.36 scores how much a pod *changes* a node's balance (kubernetes/kubernetes#135573) where 1.35 scores the
balance that results; ``BalanceRule`` has both.
"""

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.errors import SpeconError

N = TypeVar("N", bound=str)

MAX_NODE_SCORE: Final = 100
UNREQUESTED_CPU: Final = 0.1
"""Cores that LeastAllocated counts for a pod that requests none."""
UNREQUESTED_MEMORY: Final = 200.0 * 1024 * 1024
"""Bytes that LeastAllocated counts for a pod that requests none."""
_LEAST_IMAGE: Final = 23 * 1024 * 1024
_MOST_IMAGE: Final = 1000 * 1024 * 1024


class PlacementError(SpeconError):
    """What a pod requests is no amount, or it fits on no node."""


class BalanceRule(Enum):
    """What NodeResourcesBalancedAllocation rewards."""

    RESULT = "up to Kubernetes 1.35: an even use of cpu and memory once the pod is there"
    CHANGE = "from Kubernetes 1.36: a use of cpu and memory that the pod makes more even"


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """A node and what its pods request: ``cpu`` and ``memory`` to give, in cores and bytes, memory perhaps infinite.

    ``pods_without_cpu`` and ``pods_without_memory`` count the pods that request none, since LeastAllocated counts
    something for each. An unready node takes no pods. ``image_points`` are those of ``image_locality``.
    ``devices_free`` is what no pod holds of its devices.
    """

    node: str
    cpu: float
    memory: float
    cpu_requested: float
    memory_requested: float
    ready: bool = True
    pods_without_cpu: int = 0
    pods_without_memory: int = 0
    image_points: int = 0
    devices_free: Devices = NO_DEVICES


def scores(
    pod_cpu: float,
    pod_memory: float,
    loads: Sequence[NodeLoad],
    balance: BalanceRule = BalanceRule.RESULT,
    *,
    pod_devices: Devices = NO_DEVICES,
    may_use: Container[str] | None = None,
) -> dict[str, int]:
    """Return the score (0 to 300) of each node that a pod fits on; the highest gets the pod.

    Args:
        pod_cpu: Cores that the pod requests, 0 for none.
        pod_memory: Bytes that it requests, 0 for none.
        loads: The nodes, each name once.
        balance: Which Kubernetes to follow.
        pod_devices: Devices that it asks for.
        may_use: The nodes that its selector, required affinity and tolerations leave it, None for all.

    Raises:
        PlacementError: A request is negative or not finite.
    """
    for name, amount in (("cpu", pod_cpu), ("memory", pod_memory)):
        if not (math.isfinite(amount) and amount >= 0):
            message = f"a pod's {name} request must be finite and at least 0, not {amount}"
            raise PlacementError(message)
    pod = (_milli(pod_cpu), math.ceil(pod_memory))
    open_to = loads if may_use is None else [load for load in loads if load.node in may_use]
    fitting = (load for load in open_to if _fits(pod, load) and pod_devices.within(load.devices_free))
    return {load.node: _score(pod, load, balance) for load in fitting}


def image_locality(size: float, having: int, nodes: int, containers: int) -> int:
    """Return the points (0 to 100) of a node for having an image, by the formula of ImageLocality.

    The size counts by the share of nodes that have the image, between 23 MiB and 1000 MiB for each of the pod's
    containers (pkg/scheduler/framework/plugins/imagelocality).

    Args:
        size: Bytes of the image.
        having: How many nodes have it, this one included.
        nodes: How many nodes there are.
        containers: How many containers the pod has, those that run first included.
    """
    most = _MOST_IMAGE * containers
    counted = min(max(int(size * (having / nodes)), _LEAST_IMAGE), most)
    return MAX_NODE_SCORE * (counted - _LEAST_IMAGE) // (most - _LEAST_IMAGE)


def choose(scored: Mapping[N, int], pick: Callable[[Sequence[N]], N]) -> N:
    """Return one of the nodes with the highest score.

    Args:
        scored: What ``scores`` returned, not empty.
        pick: Breaks a tie, such as a seeded generator's ``choice``; it sees the names in order.

    Raises:
        PlacementError: There is no node to choose from.
    """
    if not scored:
        message = "no node to choose from: the pod fits nowhere"
        raise PlacementError(message)
    best = max(scored.values())
    return pick(sorted(node for node, score in scored.items() if score == best))


def _milli(cpu: float) -> int:
    """Round up to thousandths of a core, as Kubernetes does; first drop what binary fractions add (2.3 * 1000)."""
    return math.ceil(round(cpu * 1000, 6))


def _fits(pod: tuple[int, int], load: NodeLoad) -> bool:
    free_cpu = _milli(load.cpu) - _milli(load.cpu_requested)
    return (
        load.ready
        and (pod[0] == 0 or pod[0] <= free_cpu)
        and (pod[1] == 0 or pod[1] <= load.memory - load.memory_requested)
    )


def _score(pod: tuple[int, int], load: NodeLoad, balance: BalanceRule) -> int:
    least = _least_allocated(pod, load) + load.image_points
    if pod == (0, 0):
        return least  # kube-scheduler skips the other for a pod that requests nothing
    return least + _balanced_allocation(pod, load, balance)


def _least_allocated(pod: tuple[int, int], load: NodeLoad) -> int:
    cpu = pod[0] or _milli(UNREQUESTED_CPU)
    memory = pod[1] or int(UNREQUESTED_MEMORY)
    parts = [
        _free_share(cpu + _milli(load.cpu_requested + load.pods_without_cpu * UNREQUESTED_CPU), _milli(load.cpu)),
        _free_share(memory + load.memory_requested + load.pods_without_memory * UNREQUESTED_MEMORY, load.memory),
    ]
    counted = [part for part in parts if part is not None]
    return sum(counted) // len(counted) if counted else 0


def _free_share(requested: float, capacity: float) -> int | None:
    """Return the free percentage, None where there is nothing to have shares of."""
    if capacity == 0:
        return None
    if math.isinf(capacity):
        return MAX_NODE_SCORE
    requested, capacity = math.ceil(requested), math.floor(capacity)
    return 0 if requested > capacity else (capacity - requested) * MAX_NODE_SCORE // capacity


def _balanced_allocation(pod: tuple[int, int], load: NodeLoad, balance: BalanceRule) -> int:
    cpu, memory = _milli(load.cpu_requested), load.memory_requested
    after = _evenness(pod[0] + cpu, pod[1] + memory, load)
    if balance is BalanceRule.RESULT:
        return after
    half = MAX_NODE_SCORE // 2
    return half + (half + after - _evenness(cpu, memory, load)) // 2


def _evenness(cpu: float, memory: float, load: NodeLoad) -> int:
    """Return 100 less the standard deviation (in per cent) of the shares of cpu and memory requested."""
    pairs = ((cpu, _milli(load.cpu)), (memory, load.memory))
    shares = [min(1.0, requested / capacity) for requested, capacity in pairs if capacity]
    deviation = abs(shares[0] - shares[1]) / 2 if len(shares) == len(pairs) else 0.0
    return int((1 - deviation) * MAX_NODE_SCORE)
