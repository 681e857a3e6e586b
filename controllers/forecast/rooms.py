"""The nodes of a sweep as the fluid model sees them: what trials leave of each. Pure."""

from collections.abc import Iterable, Sequence

from controllers.core.devices import Devices
from controllers.core.model import Node, NodeName, Phase, Trial
from controllers.forecast.model import ModelNode
from controllers.policies.kit.device_paces import devices_to_share, model_of


def node_of(trial: Trial) -> NodeName | None:
    """Return the node where a trial is, or to which it is on its way."""
    return trial.moving_to if trial.phase is Phase.MOVING and trial.moving_to else trial.node


def asked_of(trial: Trial) -> tuple[float, float, Devices]:
    """Return the cores, bytes and devices that all workers of a trial request."""
    return trial.base_cpu * trial.workers, trial.memory * trial.workers, trial.devices * trial.workers


def rooms_of(nodes: Sequence[Node], trials: Iterable[Trial], worth_sharing: float) -> list[ModelNode]:
    """Return what ``trials`` leave of ``nodes``; so many of them share a device at most."""
    cpu = {node.name: node.cpu for node in nodes}
    memory = {node.name: node.memory for node in nodes}
    devices = {node.name: _worth_holding(node, worth_sharing) - node.devices_starting for node in nodes}
    for trial in trials:
        node = node_of(trial)
        if node in cpu:
            own_cpu, own_memory, own_devices = asked_of(trial)
            cpu[node] -= own_cpu
            memory[node] -= own_memory
            if own_devices:
                devices[node] -= own_devices
    cpu |= {node.name: node.room for node in nodes if node.room is not None}
    return [
        ModelNode(
            node.cpu,
            cpu[node.name],
            memory[node.name],
            devices[node.name].positive(),
            node.only_for,
            node.supply,
            model_of(node) if node.devices.counts else "",
            node.replicas,
            devices_to_share(node),
        )
        for node in nodes
    ]


def _worth_holding(node: Node, most: float) -> Devices:
    """Return the devices of a node, of shared ones so many replicas that at ``most`` so many trials share each."""
    return Devices.of(
        {
            kind: min(count, int(min(most, times) * count / times) if (times := node.replicas.count(kind)) else count)
            for kind, count in node.devices.counts
        }
    )
