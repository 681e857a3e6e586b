"""A cluster around a cluster, which differs from it in what its subclasses say."""

from collections.abc import Sequence

from controllers.core.model import Action, Node, NodeName, Trial, TrialId
from controllers.core.ports import Cluster, Outcome


class Wrapped:
    """Passes everything on to ``cluster``."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def can(self) -> frozenset[type[Action]]:
        """What the cluster can."""
        return self._cluster.can

    def trials(self) -> Sequence[Trial]:
        """Return the cluster's trials."""
        return self._cluster.trials()

    def nodes(self) -> Sequence[Node]:
        """Return the cluster's nodes."""
        return self._cluster.nodes()

    def trial(self, name: TrialId) -> Trial | None:
        """Return one of the cluster's trials."""
        return self._cluster.trial(name)

    def node(self, name: NodeName) -> Node | None:
        """Return one of the cluster's nodes."""
        return self._cluster.node(name)

    def apply(self, action: Action) -> Outcome:
        """Have the cluster carry out ``action``."""
        return self._cluster.apply(action)
