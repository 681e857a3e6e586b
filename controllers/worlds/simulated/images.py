"""Which simulated nodes have the image that the trials' pods run, and what pulling it costs."""

from collections.abc import Callable

from controllers.core.model import NodeName
from controllers.worlds.kube_scheduler import image_locality
from controllers.worlds.simulated.workload import Image


class Images:
    """The image on each node: a node pulls it when its first trial is placed there, once for all.

    Args:
        image: what is pulled; None where every node has it.
        nodes: how many nodes there are.
        now: the time in seconds.
    """

    def __init__(self, image: Image | None, nodes: int, now: Callable[[], float]) -> None:
        self._image = image
        self._nodes = nodes
        self._now = now
        self._pulled_at: dict[NodeName, float] = {}
        self._having: set[NodeName] = set()

    def wait_s(self, node: NodeName) -> float:
        """Return the seconds until a pod that is placed on ``node`` now finds the image there."""
        if self._image is None:
            return 0.0
        pulled_at = self._pulled_at.setdefault(node, self._now() + self._image.pull_s)
        return max(0.0, pulled_at - self._now())

    def points(self, node: NodeName) -> int:
        """Return what kube-scheduler's ImageLocality gives ``node``, as of the last ``arrived``."""
        if self._image is None or node not in self._having:
            return 0
        return image_locality(self._image.size, len(self._having), self._nodes, self._image.containers)

    def arrived(self) -> bool:
        """Return whether any node has got the image since the last call: then the points of all have changed."""
        if len(self._having) == len(self._pulled_at):
            return False
        before = len(self._having)
        self._having.update(node for node, at in self._pulled_at.items() if at <= self._now())
        return len(self._having) > before
