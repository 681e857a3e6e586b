"""What the network sees: the snapshot as numbers about trials, nodes, and pairs of them. Pure.

Trials and nodes are the two sides of a graph, in which a trial is joined to the node that it is on or on its way to.
All numbers are ratios: times are told in lengths of a usual trial of the sweep, cores in those of the node. So they
mean the same on a cluster of any size. If you change a number here, count ``FEATURES_VERSION`` up and train again.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from controllers.core.model import NodeName, Phase, Snapshot, Trial, TrialId
from controllers.policies.kais.grid import Bools, Floats, Ints, squash
from controllers.policies.kit.capacity import SLACK, Capacity
from controllers.policies.kit.work_left import Estimate

FEATURES_VERSION: Final = "1"
TRIAL_FEATURES: Final = ("length", "most cores", "request", "length is known", "trains")
NODE_FEATURES: Final = (
    "work",
    "demand",
    "requests",
    "trials beside others",
    "cores beside others",
    "trials",
    "unknown",
)
CLUSTER_FEATURES: Final = ("trials arrive", "waiting", "demand", "trials per node", "work", "most work")
PAIR_FEATURES: Final = (
    "work after", "delay", "length there", "demand after", "requests after", "work beside the most", "cores",
    "delay where cores are short",
)  # fmt: skip
MOVE_FEATURES: Final = (*PAIR_FEATURES, "delay here", "work here", "demand here", "cost of a move")
USUAL: Final = 4.0
"""Trials of a node that count as many: the middle of the scale on which they are told."""
TINY: Final = 1e-9
MOST_CORES: Final = 1e6
"""Of a node: whatever it tells, all numbers stay finite."""


@dataclass(slots=True)
class Scene:
    """Trials and nodes as arrays, in the order of their names; places and moves are counted in as they are chosen.

    ``at`` is each trial's node by number, -1 where it waits. Work is in seconds as on a single core. ``sizes`` are the
    cores of each node that may be requested, ``cores`` those that its trials get. ``taken`` is what is requested of
    it, ``memory_taken`` of its memory. ``unit`` is the length of a usual trial in seconds, ``mean_cores`` and
    ``mean_count`` are those of the nodes, ``most_load`` is the most work that a node had for each of its cores: they
    stay as they were at the beginning.
    """

    trials: list[TrialId]
    nodes: list[NodeName]
    work: Floats
    most: Floats
    cpu: Floats
    memory_asked: Floats
    known: Floats
    trains: Floats
    at: Ints
    sizes: Floats
    cores: Floats
    memory: Floats
    taken: Floats
    memory_taken: Floats
    cluster: Floats
    unit: float
    mean_cores: float
    mean_count: float
    most_load: float

    def fits(self, trial: int) -> Bools:
        """Return for each node whether there is room for ``trial``."""
        return np.asarray(
            (self.taken + self.cpu[trial] <= self.sizes + SLACK)
            & (self.memory_taken + self.memory_asked[trial] <= self.memory)
        )

    def attach(self, trial: int, node: int) -> None:
        """Count ``trial`` on ``node`` from now on; what it requested of a node that it leaves stays taken."""
        self.at[trial] = node
        self.taken[node] += self.cpu[trial]
        self.memory_taken[node] += self.memory_asked[trial]

    def trial_rows(self) -> Floats:
        """Return the features of every trial."""
        lengths = self.work / np.minimum(self.most, self.mean_cores) / self.unit
        ratios = squash(np.array((lengths, self.most / self.mean_cores, self.cpu / self.mean_cores)))
        return np.concatenate([ratios, [self.known, self.trains]]).T

    def loads(self) -> Floats:
        """Return the work on each node."""
        return self._sums(self.work)

    def demands(self) -> Floats:
        """Return how many cores the trials of each node can use, for each that it has."""
        return self._sums(np.minimum(self.most, self._cores_there())) / self.cores

    def node_rows(self) -> Floats:
        """Return the features of every node."""
        counts = self._sums(np.ones_like(self.work))
        unknown = self._sums(1.0 - self.known)
        rows = (
            self.loads() / self.cores / self.unit,
            self.demands(),
            self.taken / self.sizes,
            counts / (self.mean_count + TINY),
            self.cores / self.mean_cores,
            counts / USUAL,
            unknown / USUAL,
        )
        return squash(np.array(rows)).T

    def pair_rows(self, trial: int) -> Floats:
        """Return the features of ``trial`` with every node, as they are once it is there."""
        others = np.flatnonzero((self.at >= 0) & (np.arange(len(self.at)) != trial))
        there, count = self.at[others], len(self.cores)
        work, most = self.work[trial], np.minimum(self.most[trial], self.cores)
        load = (np.bincount(there, self.work[others], count) + work) / self.cores
        used = np.minimum(self.most[others], self.cores[there])
        demand = (np.bincount(there, used, count) + most) / self.cores
        delay = np.bincount(there, np.minimum(self.work[others], work), count) / self.cores / self.unit
        rows = (
            load / self.unit,
            delay,
            work / most / self.unit,
            demand,
            (self.taken + self.cpu[trial]) / self.sizes,
            load / (self.most_load + TINY),
            self.cores / self.mean_cores,
            delay * np.maximum(0.0, 1.0 - 1.0 / demand),
        )
        return squash(np.array(rows)).T

    def move_rows(self, trial: int, targets: Ints, move_cost: float) -> Floats:
        """Return the features of a move of ``trial`` to each of ``targets``; one takes ``move_cost`` seconds."""
        pairs, source = self.pair_rows(trial), int(self.at[trial])
        here = pairs[source][[1, 0, 3]]
        cost = squash(np.array([move_cost * min(self.most[trial], self.cores[source]) / (self.work[trial] + TINY)]))
        ends = np.tile(np.concatenate([here, cost]), (len(targets), 1))
        return np.concatenate([pairs[targets], ends], axis=1)

    def _cores_there(self) -> Floats:
        return np.asarray(np.where(self.at >= 0, self.cores[self.at], self.mean_cores))

    def _sums(self, values: Floats) -> Floats:
        placed = self.at >= 0
        return np.bincount(self.at[placed], values[placed], len(self.cores)).astype(np.float64)


def scene(
    snapshot: Snapshot, estimates: Mapping[TrialId, Estimate], starting: Mapping[TrialId, NodeName], *, arriving: bool
) -> Scene | None:
    """Return what there is to see; None where no node can take trials.

    Args:
        snapshot: What there is.
        estimates: Of every trial that has not ended.
        starting: Where trials were placed that have yet to start.
        arriving: Whether more trials are expected.
    """
    ready = [node for node in snapshot.nodes if node.ready and node.supplied > 0]
    trials = [
        estimate.trial
        for estimate in estimates.values()
        if estimate.trial.phase not in {Phase.SUSPENDING, Phase.STOPPING}
    ]
    if not ready or not trials:
        return None
    numbers = {node.name: number for number, node in enumerate(ready)}
    sizes = np.array([min(node.cpu, MOST_CORES) for node in ready])
    cores = np.array([min(node.supplied, MOST_CORES) for node in ready])
    capacity, largest = Capacity.of(snapshot), float(cores.max())
    for trial in trials:
        if trial.id in starting and starting[trial.id] in numbers:
            capacity.expect(trial, starting[trial.id])
    taken = [capacity.taken(node.name) for node in ready]
    closed = np.array([math.inf if node.only_for else 0.0 for node in ready])
    work = np.array([estimates[trial.id].work for trial in trials])
    most = np.minimum([estimates[trial.id].most for trial in trials], largest)
    at = np.array([_node_of(trial, starting, numbers) for trial in trials], dtype=np.int64)
    mean_cores, mean_count = float(cores.mean()), float((at >= 0).sum() / len(ready))
    unit = math.fsum(work / np.minimum(most, mean_cores)) / len(trials) + TINY
    memory = np.array([node.memory for node in ready])
    seen = Scene(
        trials=[trial.id for trial in trials],
        nodes=[node.name for node in ready],
        work=work,
        most=most,
        cpu=np.array([max(trial.cpu, trial.base_cpu) for trial in trials]),
        memory_asked=np.array([trial.memory for trial in trials]),
        known=np.array([float(estimates[trial.id].known) for trial in trials]),
        trains=np.array([float(trial.steady) for trial in trials]),
        at=at,
        sizes=sizes,
        cores=cores,
        memory=memory,
        taken=np.array([cpu for cpu, _ in taken]) + closed,
        memory_taken=np.array([used for _, used in taken]),
        cluster=np.zeros(len(CLUSTER_FEATURES)),
        unit=unit,
        mean_cores=mean_cores,
        mean_count=mean_count,
        most_load=1.0,
    )
    _look_over(seen, arriving=arriving)
    return seen


def _look_over(seen: Scene, *, arriving: bool) -> None:
    """Fill in what ``seen`` tells of the cluster as a whole."""
    loads = seen.loads()
    seen.most_load = max(float((loads / seen.cores).max()), seen.unit)
    total = math.fsum(seen.cores)
    ratios = (
        math.fsum(seen.most) / total,
        len(seen.trials) / len(seen.nodes) / USUAL,
        math.fsum(seen.work) / total / seen.unit,
        seen.most_load / seen.unit,
    )
    waits = float((seen.at < 0).mean())
    seen.cluster = np.array([float(arriving), round(waits * 4096) / 4096, *squash(np.array(ratios))])


def _node_of(trial: Trial, starting: Mapping[TrialId, NodeName], numbers: Mapping[NodeName, int]) -> int:
    """Return the number of the node that ``trial`` is on, on its way to, or starts on; -1 for none."""
    moving = trial.moving_to if trial.phase is Phase.MOVING else None
    node = moving or trial.node or starting.get(trial.id)
    return -1 if node is None else numbers.get(node, -1)
