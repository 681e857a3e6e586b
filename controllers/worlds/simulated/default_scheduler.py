"""A simulated kube-scheduler: its queue, the images that its nodes have, and where it puts what waits.

A pod that fits nowhere does not hold up those behind it; it is tried again, in the order of first trial, when
something that it lacks has been freed. kube-scheduler's back-off after a failed try (1 to 10 s) is left out: since
Kubernetes 1.33 it takes pods from the back-off queue too while nothing else waits (SchedulerPopFromBackoffQ).
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from operator import itemgetter

from controllers.core.devices import Devices
from controllers.core.model import NodeName, TrialId
from controllers.worlds.kube_scheduler import NodeLoad, choose, image_locality, scores
from controllers.worlds.simulated.node_run import NodeRun
from controllers.worlds.simulated.trial_run import TrialRun
from controllers.worlds.simulated.workload import Image

_SCORE_ALL_BELOW = 100
_LEAST_PERCENTAGE = 5
_MOST_SHAPES = 32
"""Kinds of pods whose scores are kept up to date from one placement to the next."""


def nodes_to_find(nodes: int) -> int:
    """Return how many fitting nodes kube-scheduler looks for before it scores them (percentageOfNodesToScore unset).

    All of less than 100; otherwise 50 % less a 125th of their number, but at least 5 % and 100 of them
    (numFeasibleNodesToFind in pkg/scheduler/schedule_one.go).
    """
    if nodes < _SCORE_ALL_BELOW:
        return nodes
    percentage = max(_LEAST_PERCENTAGE, 50 - nodes // 125)
    return max(_SCORE_ALL_BELOW, nodes * percentage // 100)


class ImagePulls:
    """The image on each node: a node pulls it when its first trial is placed there, once for all.

    Args:
        image: what is pulled; None where every node has it.
        nodes: those that are there.
        now: the time in seconds.
    """

    def __init__(self, image: Image | None, nodes: Sized, now: Callable[[], float]) -> None:
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
        return image_locality(self._image.size, len(self._having), len(self._nodes), self._image.containers)

    def arrived(self) -> bool:
        """Return whether any node has got the image since the last call: then the points of all have changed."""
        if len(self._having) == len(self._pulled_at):
            return False
        before = len(self._having)
        self._having.update(node for node, at in self._pulled_at.items() if at <= self._now())
        return len(self._having) > before

    def gone(self, node: NodeName) -> None:
        """Forget ``node``, which is no longer there."""
        self._pulled_at.pop(node, None)
        self._having.discard(node)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What pods must share to fit on the same nodes."""

    cpu: float
    memory: float
    devices: Devices
    pinned: NodeName | None
    may_use: frozenset[NodeName] | None


@dataclass
class _Scores:
    """The scores of a shape on every node, and the nodes that have changed since they were worked out."""

    by_node: dict[NodeName, int] = field(default_factory=dict)
    stale: set[NodeName] = field(default_factory=set)


class DefaultScheduler:
    """Places one attempt after the other, each where it scores best; a seeded generator breaks ties.

    ``pinned`` names the nodes of first attempts: such a trial waits for that node, unless it could never hold it.
    """

    def __init__(
        self, nodes: Mapping[NodeName, NodeRun], images: ImagePulls, seed: int, pinned: Mapping[TrialId, NodeName]
    ) -> None:
        self._nodes = nodes
        self._images = images
        self._order = list(nodes)
        self._next = 0
        self._pinned = pinned
        self._random = random.Random(seed)  # noqa: S311 - breaks ties between nodes
        self._waiting: dict[_Shape, deque[tuple[int, TrialRun]]] = {}
        self._tried: dict[_Shape, bool] = {}
        self._scores: dict[_Shape, _Scores] = {}
        self._number = 0

    def add(self, run: TrialRun) -> None:
        """Queue the next attempt of ``run``; each worker of a gang is a pod of its own."""
        pin = None if run.attempt or run.spec.gang else self._pinned.get(run.spec.id)
        if pin is not None and not (self._nodes[pin].ready and self._nodes[pin].could_hold(run)):
            pin = None  # Otherwise the trial would never start.
        shape = _Shape(run.spec.cpu, run.spec.memory, run.spec.devices, pin, run.spec.may_use)
        for _ in range(run.workers):
            self._waiting.setdefault(shape, deque()).append((self._number, run))
            self._number += 1
        self._tried[shape] = False

    def withdraw(self, run: TrialRun) -> None:
        """Take out of the queue what of ``run`` is still in it."""
        for shape, waiting in list(self._waiting.items()):
            left = deque(entry for entry in waiting if entry[1] is not run)
            if left:
                self._waiting[shape] = left
            else:
                del self._waiting[shape], self._tried[shape]

    @property
    def asked(self) -> int:
        """How many pods have been queued by now."""
        return self._number

    @property
    def waits(self) -> bool:
        """Whether any pod waits for whatever node has room."""
        return any(shape.pinned is None for shape in self._waiting)

    @property
    def unplaced(self) -> list[TrialRun]:
        """The trial of each pod that waits, in the order of queueing; not those that wait for a certain node."""
        free = (entry for shape, waiting in self._waiting.items() if shape.pinned is None for entry in waiting)
        return [run for _, run in sorted(free, key=itemgetter(0))]

    def came(self, node: NodeName) -> None:
        """Note that ``node`` is there from now on."""
        self._order.append(node)
        self.changed(node, freed=True)

    def gone(self, node: NodeName) -> None:
        """Note that ``node`` is not there any more."""
        self._order.remove(node)
        self._next %= max(1, len(self._order))
        self._images.gone(node)
        for scored in self._scores.values():
            scored.by_node.pop(node, None)
            scored.stale.discard(node)

    def changed(self, node: NodeName, *, freed: bool) -> None:
        """Note that what is requested of ``node`` has changed; ``freed`` where that makes room."""
        for scored in self._scores.values():
            scored.stale.add(node)
        if freed:  # What fitted nowhere may fit now; otherwise trying again would only cost time.
            for shape in self._waiting:
                self._tried[shape] = False

    def placements(self) -> Iterator[tuple[TrialRun, NodeName]]:
        """Yield what can be placed now and where; each must be placed before the next is asked for."""
        if self._images.arrived():
            self._scores.clear()
        while untried := [shape for shape in self._waiting if not self._tried[shape]]:
            shape = min(untried, key=lambda shape: self._waiting[shape][0][0])
            node = self._node_for(shape)
            if node is None:
                self._tried[shape] = True
                continue
            run = self._waiting[shape].popleft()[1]
            if not self._waiting[shape]:
                del self._waiting[shape], self._tried[shape]
            yield run, node

    def _node_for(self, shape: _Shape) -> NodeName | None:
        if shape.pinned is not None:
            return shape.pinned if self._scores_of(shape, [shape.pinned]) else None
        fits = self._found(self._scored(shape))
        return choose(fits, self._random.choice) if fits else None

    def _scored(self, shape: _Shape) -> dict[NodeName, int]:
        scored = self._scores.get(shape)
        if scored is None:
            if len(self._scores) == _MOST_SHAPES:
                del self._scores[next(iter(self._scores))]
            scored = self._scores[shape] = _Scores(stale=set(self._order))
        fresh = self._scores_of(shape, scored.stale)
        for name in scored.stale:
            scored.by_node.pop(name, None)
        scored.by_node.update((NodeName(name), score) for name, score in fresh.items())
        scored.stale = set()
        return scored.by_node

    def _scores_of(self, shape: _Shape, nodes: Iterable[NodeName]) -> dict[str, int]:
        loads = [self._load(name) for name in nodes]
        return scores(shape.cpu, shape.memory, loads, pod_devices=shape.devices, may_use=shape.may_use)

    def _found(self, scored: dict[NodeName, int]) -> dict[NodeName, int]:
        """Return the nodes that are scored: on a large cluster the first that fit, after those looked at last."""
        total = len(self._order)
        enough = nodes_to_find(total)
        if enough == total:
            return scored
        nodes: dict[NodeName, int] = {}
        for looked_at in range(total):
            name = self._order[(self._next + looked_at) % total]
            if name in scored:
                nodes[name] = scored[name]
                if len(nodes) == enough:
                    self._next = (self._next + looked_at + 1) % total
                    break
        return nodes

    def _load(self, name: NodeName) -> NodeLoad:
        node = self._nodes[name]
        return NodeLoad(
            name,
            node.spec.cpu,
            node.spec.memory,
            node.cpu_requested,
            node.memory_requested,
            node.ready,
            node.without_cpu,
            node.without_memory,
            self._images.points(name),
            node.spec.devices - node.devices_requested,
        )
