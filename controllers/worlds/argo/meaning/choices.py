"""The nodes that each trial of a campaign may use, by what it demands and what keeps pods off the nodes."""

from collections.abc import Iterable, Mapping
from typing import Final

from controllers.core.model import NodeName
from controllers.worlds.argo.meaning.node_kinds import KindsSeen
from controllers.worlds.argo.reading.definitions import warn_once
from controllers.worlds.argo.reading.demands import Demands
from controllers.worlds.argo.reading.nodes import NodeRecord

_MOST_KINDS: Final = 16
"""Different demands that the trials of a campaign may have: for each, all nodes are looked at."""


class Choices:
    """The nodes that trials may use, worked out once for each kind of demands while the nodes stay what they are.

    Args:
        nodes: every node by name.
        kinds: the kinds of nodes that were there.
    """

    def __init__(self, nodes: Mapping[str, NodeRecord], kinds: KindsSeen) -> None:
        self.nodes = nodes
        self._kinds = kinds
        self.tolerated: frozenset[NodeName] = frozenset()
        """Nodes whose taints some trial tolerates."""
        self._untainted = frozenset(NodeName(name) for name, node in nodes.items() if not node.taints)
        self._allowed: dict[Demands, frozenset[NodeName]] = {}
        self._allowed_kinds: dict[Demands, frozenset[str] | None] = {}
        self._shown = self._untainted

    def serve(self, kinds: Iterable[Demands], where: str) -> None:
        """Work out the nodes for trials with these demands, and no others; ``where`` names them in a warning."""
        wanted = dict.fromkeys(kinds)
        if len(wanted) > _MOST_KINDS:
            text = f"{where} has trials with more than {_MOST_KINDS} kinds of demands on nodes: others go nowhere"
            warn_once(f"{where}: demands", text)
        kept = list(wanted)[:_MOST_KINDS]
        self._allowed = {
            demands: self._allowed[demands] if demands in self._allowed else self._allowed_by(demands)
            for demands in kept
        }
        self._allowed_kinds = {
            demands: self._allowed_kinds[demands] if demands in self._allowed_kinds else self._kinds.for_pods(demands)
            for demands in kept
        }
        self._shown = self._untainted.union(*self._allowed.values())
        self.tolerated = self._shown - self._untainted

    def for_trial(self, demands: Demands) -> frozenset[NodeName] | None:
        """Return the nodes that a trial may use, None where that is every node which any trial may use."""
        allowed = self._allowed.get(demands, frozenset())
        return None if allowed >= self._shown else allowed

    def kinds_for_trial(self, demands: Demands) -> frozenset[str] | None:
        """Return the kinds of nodes that a trial may use, by name; None where that is every one."""
        return self._allowed_kinds.get(demands, frozenset())

    def _allowed_by(self, demands: Demands) -> frozenset[NodeName]:
        return frozenset(NodeName(name) for name, node in self.nodes.items() if node.allows(demands))
