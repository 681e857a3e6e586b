"""What a cluster can do of what a world asks of it, by the versions of its parts. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from controllers.core.actions import ACTION_KINDS, Action, Resize
from controllers.worlds.argo.reading.nodes import NodeRecord
from controllers.worlds.argo.reading.versions import CLAIMS_RESIZE_SINCE, RESIZES_SINCE, Version

_POD_LEVEL: Final = Version(1, 36)
_KUBERNETES: Final = RESIZES_SINCE
_ARGO: Final = Version(3, 6)
_TELLS_LAST: Final = Version(3, 7)
"""Since then Argo knows how the attempt before ended while it makes a pod."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Abilities:
    """What was found.

    Attributes:
        kubernetes: the API server's version, None where it tells none.
        argo: the newest Argo that made a pod here, None as long as no pod tells.
        subresource: whether the API server has ``pods/resize``.
        nodes: how many there are.
        old_nodes: those whose kubelet changes no share of a running pod, by name.
    """

    kubernetes: Version | None = None
    argo: Version | None = None
    subresource: bool = True
    nodes: int = 0
    old_nodes: tuple[str, ...] = ()

    @property
    def can(self) -> frozenset[type[Action]]:
        """The kinds of action that it can carry out, on one of its nodes at least."""
        return frozenset(ACTION_KINDS) - ({Resize} if self.why_no_shares else set())

    @property
    def why_no_shares(self) -> str:
        """Why no share can be changed, and what to do; empty where some can."""
        upgrade = f"upgrade it to {RESIZES_SINCE.major}.{RESIZES_SINCE.minor} or newer"
        if not self.subresource:
            return f"the API server of {self._kubernetes} has no pods/resize: {upgrade}"
        if self.nodes and len(self.old_nodes) == self.nodes:
            return f"no node's kubelet is {RESIZES_SINCE} or newer: upgrade the nodes"
        return ""

    @property
    def line(self) -> str:
        """All of it, for people."""
        parts = [f"{self._kubernetes}, {'Argo of unknown version' if self.argo is None else f'Argo {self.argo}'}"]
        parts += self._shares()
        for name, found, least in (("Kubernetes", self.kubernetes, _KUBERNETES), ("Argo", self.argo, _ARGO)):
            if found is not None and found < least:
                parts.append(f"{name} before {least.major}.{least.minor} is not supported")
        return "; ".join(parts)

    @property
    def _kubernetes(self) -> str:
        return "Kubernetes of unknown version" if self.kubernetes is None else f"Kubernetes {self.kubernetes}"

    @property
    def limits(self) -> list[str]:
        """What newer versions can do that these cannot, each in words."""
        kept = (("pod-level resources", _POD_LEVEL), ("resource claims", CLAIMS_RESIZE_SINCE))
        pods = [what for what, since in kept if self.kubernetes is not None and self.kubernetes < since]
        limits = [f"pods with {' or '.join(pods)} keep the share that they begin with"] if pods else []
        if self.argo is not None and self.argo < _TELLS_LAST:
            limits.append("each retry waits a second or two for the controller, not only one that follows a move")
        return limits

    def _shares(self) -> list[str]:
        if why_not := self.why_no_shares:
            return [f"no share of a running trial can be changed: {why_not}"]
        shares = "shares change in place"
        if self.old_nodes:
            more = ", ..." if len(self.old_nodes) > _SHOWN else ""
            named = ", ".join(self.old_nodes[:_SHOWN])
            shares += f" but on {len(self.old_nodes)} of {self.nodes} nodes, whose kubelets are too old ({named}{more})"
        return [shares, *self.limits]


def abilities_of(
    kubernetes: Version | None, nodes: Iterable[NodeRecord], argo: Iterable[Version | None], *, subresource: bool
) -> Abilities:
    """Return what a cluster with these parts can do; ``argo`` has the version of each Argo that made a pod."""
    known = list(nodes)
    old = tuple(sorted(node.name for node in known if not node.resizes))
    return Abilities(kubernetes, max(filter(None, argo), default=None), subresource, len(known), old)
