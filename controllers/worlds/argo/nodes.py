"""Small records of a cluster's nodes."""

from dataclasses import dataclass

from controllers.worlds.argo.api import Json
from controllers.worlds.argo.pods import HOSTNAME
from controllers.worlds.argo.untrusted import at, epoch, mappings, quantity, text

_KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node: cores and bytes that its pods may request, and whether it takes new ones.

    ``hostname`` is what a pod selects it by; ``unready_since`` in Unix seconds, None while its kubelet is heard.
    """

    name: str
    hostname: str
    cpu: float
    memory: float
    open: bool
    unready_since: float | None

    @property
    def fit(self) -> bool:
        """Whether a new pod may start there."""
        return self.open and self.unready_since is None


def project_node(node: Json) -> NodeRecord | None:
    """Return the record of a node."""
    name = text(node, "metadata", "name", most=253)
    if not name:
        return None
    ready = next((c for c in mappings(node, "status", "conditions") if text(c, "type") == "Ready"), {})
    tainted = any(text(taint, "effect") in _KEEPS_AWAY for taint in mappings(node, "spec", "taints"))
    since = epoch(ready, "lastTransitionTime") or epoch(node, "metadata", "creationTimestamp") or 0.0
    return NodeRecord(
        name=name,
        hostname=text(node, "metadata", "labels", HOSTNAME, most=253) or name,
        cpu=quantity(node, "status", "allocatable", "cpu"),
        memory=quantity(node, "status", "allocatable", "memory"),
        open=not tainted and at(node, "spec", "unschedulable") is not True,
        unready_since=None if text(ready, "status") == "True" else since,
    )
