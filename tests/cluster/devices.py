"""Devices that nodes have because somebody says so: Kubernetes' extended resources without a device plugin."""

from typing import Final

from controllers.worlds.argo.calls.api import NODES, KubeApi
from tests.cluster.processes import wait_until

_SHOWS_WITHIN_S: Final = 30.0


def advertise(api: KubeApi, node: str, kind: str, count: int | None) -> None:
    """Let ``node`` have so many devices of ``kind``, None for no such kind; return once pods may have them."""
    told = None if count is None else str(count)
    api.patch(NODES.path(None, node, "status"), {"status": {"capacity": {kind: told}}})
    # Its kubelet takes what the capacity says over into what pods may have.
    wait_until(
        lambda: api.get(NODES.path(None, node))["status"]["allocatable"].get(kind) == told,
        f"{node} shows {told} of {kind}",
        _SHOWS_WITHIN_S,
        interval=0.2,
    )
