"""What a simulated sweep is made of: trials with their work and learning curves, and the nodes that they run on.

Work is counted in *lone seconds*: seconds of training that a trial needs alone on a node of speed 1 with all the
cores it can use. What it does with fewer cores is its ``Speedup``, a property of the trial that was measured.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, Protocol, Self

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.goals import AskedGoals
from controllers.core.model import Direction, NodeName, Parameters, Point, TrialId
from controllers.core.parameters import bound_parameters
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.scaling import AutoscalerTiming, SpotMarket

MIB: Final = 1024.0 * 1024.0
BOOTS_S: Final = 120.0
"""Seconds from the request for a node until it takes trials, unless something else is known."""


@dataclass(frozen=True, slots=True)
class Speedup:
    """Speed of a trial as a function of the cores it gets, relative to all the cores that it can use.

    ``points`` are measured pairs (cores, speed), both rising, the last of speed 1; between them, and from (0, 0) to
    the first, speed is interpolated linearly; cores beyond the last point stay idle.
    """

    points: tuple[tuple[float, float], ...] = ((1.0, 1.0),)

    def __post_init__(self) -> None:
        if not self.points or self.points[-1][1] != 1.0:
            message = f"the last point of a speedup must have speed 1, not {self.points!r}"
            raise WorkloadError(message)
        path = ((0.0, 0.0), *self.points)
        if any(not (a[0] < b[0] < math.inf and a[1] < b[1]) for a, b in pairwise(path)):
            message = f"cores and speed of a speedup must rise from (0, 0), not {self.points!r}"
            raise WorkloadError(message)

    @classmethod
    def linear(cls, cores: float) -> Self:
        """Return the speedup of a trial that makes full use of up to ``cores`` cores."""
        return cls(((cores, 1.0),))

    @property
    def max_cores(self) -> float:
        """Cores that the trial can use."""
        return self.points[-1][0]

    def speed(self, cores: float) -> float:
        """Return the speed (0 to 1) with ``cores`` cores."""
        if cores >= self.max_cores:
            return 1.0
        index = bisect_left(self.points, (cores,))
        x0, y0 = self.points[index - 1] if index else (0.0, 0.0)
        x1, y1 = self.points[index]
        return y0 + (y1 - y0) * (max(cores, 0.0) - x0) / (x1 - x0)


@dataclass(frozen=True, slots=True)
class Network:
    """Bytes a second that gloo brings from worker to worker on one node, within a zone and between zones.

    ``call_s`` are the seconds that each sum takes beside that. The defaults were measured: loopback, and links of
    1 Gbit/s and 200 Mbit/s.
    """

    node: float = MIB / 0.0022
    zone: float = MIB / 0.0137
    across: float = MIB / 0.044
    call_s: float = 0.00035

    def __post_init__(self) -> None:
        for name in ("node", "zone", "across"):
            if not getattr(self, name) > 0:
                message = f"network: {name} must be above 0 bytes a second, not {getattr(self, name)}"
                raise WorkloadError(message)
        if not 0 <= self.call_s < math.inf:
            message = f"network: call_s must be finite and at least 0, not {self.call_s}"
            raise WorkloadError(message)

    def slowest_link(self, nodes: Sequence[str], zones: Sequence[str]) -> float:
        """Return the bandwidth of the slowest link between workers on ``nodes``, each in its zone of ``zones``."""
        if len(set(zones)) > 1:
            return self.across
        return self.zone if len(set(nodes)) > 1 else self.node


@dataclass(frozen=True, slots=True)
class WorkerExchange:
    """What a trial's workers do for each other.

    ``step_s`` are the lone seconds of a step, whose batch they split; ``bytes`` is the size of what they sum.
    """

    step_s: float = 1.0
    bytes: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.step_s < math.inf or not 0 <= self.bytes < math.inf:
            message = f"exchange: step_s must be above 0 and bytes at least 0, not {self.step_s} and {self.bytes}"
            raise WorkloadError(message)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The objective's ``value`` as logged after ``work_s`` lone seconds of training."""

    work_s: float
    value: float


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """A trial as its author and its training define it.

    ``cpu`` (cores) and ``memory`` (bytes) are what its pods request; ``reports`` rise in ``work_s``, the n-th is step
    n (from 1), none lies beyond ``work_s``. ``retries`` counts the failures that it survives, moves apart.
    ``checkpoint_every_s`` is the work between periodic checkpoints; None saves only when told to leave. ``limit`` is
    the most cores that its container may use. A ``deaf`` trial ignores the request to leave. ``goals`` is what it is
    meant to reach. ``upkeep`` is the cores that go into logging while it trains, however few it has. ``steps_told`` is
    how many steps it says that it has in all: None for as many as it reports, 0 if it never says. It counts its CPU
    seconds with a report only ``cpu_every_s`` seconds after it last did; the reports between repeat the older count.
    With ``waits_untold`` it does not tell how long it waited for a CPU, as where the operating system does not count.
    ``devices`` are those that its pods hold, and ``device_use`` is the part of a device's time that it takes where it
    has the device alone: trials that share one slow each other only where they want more than all of it together.
    ``parameters`` are its hyperparameters. With ``search``, the text of a search,
    it waits for a place until that has given it others. ``sweep`` is the name of its sweep, where there are several.
    ``may_use`` are the nodes that its selectors and tolerations leave it, None for all.
    With ``max_workers`` above 1 it is a gang, for which ``cpu``, ``memory``, ``limit``, ``devices`` and ``speedup`` are
    each worker's; what its workers do for each other is its ``exchange``.
    """

    id: TrialId
    submitted_at: float
    work_s: float
    reports: tuple[CurvePoint, ...]
    cpu: float
    speedup: Speedup = Speedup()
    memory: float = 0.0
    direction: Direction = Direction.MINIMIZE
    retries: int = 2
    checkpoint_every_s: float | None = None
    limit: float = math.inf
    deaf: bool = False
    goals: AskedGoals = field(default_factory=AskedGoals)
    upkeep: float = 0.0
    steps_told: int | None = None
    cpu_every_s: float = 0.0
    waits_untold: bool = False
    devices: Devices = NO_DEVICES
    device_use: float = 1.0
    parameters: Parameters = ()
    search: str = ""
    sweep: str = ""
    may_use: frozenset[NodeName] | None = None
    min_workers: int = 1
    max_workers: int = 1
    exchange: WorkerExchange = field(default_factory=WorkerExchange)

    @property
    def gang(self) -> bool:
        """Whether it may have several workers."""
        return self.max_workers > 1

    @property
    def steps_total(self) -> int | None:
        """Steps in all, as the trial tells them; None if it never does."""
        return (len(self.reports) if self.steps_told is None else self.steps_told) or None

    def left_to_train(self, cores: float) -> float:
        """Return the cores that training gets of ``cores``: half of them at least, since logging can wait."""
        return max(cores - self.upkeep, cores / 2)

    def __post_init__(self) -> None:
        self._check_amounts()
        if self.parameters != bound_parameters(dict(self.parameters)):
            message = f"trial {self.id}: parameters must be finite numbers and short texts by name: {self.parameters}"
            raise WorkloadError(message)
        marks = [0.0, *(report.work_s for report in self.reports), self.work_s * (1 + 1e-9)]
        if any(not a <= b for a, b in pairwise(marks)):
            message = f"trial {self.id}: work_s of its reports must rise from 0 to {self.work_s}"
            raise WorkloadError(message)

    def _check_amounts(self) -> None:
        for name in ("submitted_at", "cpu", "memory", "retries", "upkeep", "steps_told", "cpu_every_s"):
            if not 0 <= (getattr(self, name) or 0) < math.inf:
                message = f"trial {self.id}: {name} must be at least 0, not {getattr(self, name)}"
                raise WorkloadError(message)
        _check_devices(f"trial {self.id}", self.devices)
        if not 0 < self.device_use <= 1:
            message = f"trial {self.id}: device_use must be above 0 and at most 1, not {self.device_use}"
            raise WorkloadError(message)
        if not 1 <= self.min_workers <= self.max_workers:
            message = (
                f"trial {self.id}: workers must be from 1, the least first: ({self.min_workers}, {self.max_workers})"
            )
            raise WorkloadError(message)
        for name in ("work_s", "checkpoint_every_s", "limit"):
            amount = getattr(self, name)
            endless = name == "limit" and amount == math.inf
            if amount is not None and not 0 < amount < math.inf and not endless:
                message = f"trial {self.id}: {name} must be greater than 0, not {amount}"
                raise WorkloadError(message)


def _check_devices(whose: str, devices: Devices) -> None:
    if devices != devices.positive():
        message = f"{whose}: it cannot have fewer devices than none, not {devices}"
        raise WorkloadError(message)


class Surrogate(Protocol):
    """Knows how a training goes with any hyperparameters."""

    def trained(self, spec: TrialSpec, point: Point) -> TrialSpec:
        """Return ``spec`` as it trains with the hyperparameters ``point``: its work, reports and parameters."""
        ...

    def followed(self, spec: TrialSpec, parent: TrialSpec, work_s: float, point: Point) -> TrialSpec:
        """Return ``spec`` as it goes on with ``point`` from a checkpoint of ``parent`` that holds ``work_s``."""
        ...


def following(spec: TrialSpec, parent: TrialSpec) -> TrialSpec:
    """Return ``spec`` as it goes on from a checkpoint of ``parent``, where nobody knows what its hyperparameters do."""
    return replace(spec, work_s=parent.work_s, reports=parent.reports)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node: cores, bytes, devices, and the ``speed`` of its cores relative to those that work was measured on.

    ``supply`` holds pairs (from when in seconds, cores) where whatever else runs on the machine leaves the trials
    less than ``cpu``, however much of it they request; up to the first pair they get all of it.
    ``contention`` is what each further trial that computes there costs all of them (caches, memory bandwidth): n of
    them go at ``speed / (1 + contention * (n - 1))``. ``price`` is what an hour of it costs, None where nobody knows.
    A trial that holds ``devices`` trains ``device_speed`` times as fast as on those that its work was measured on.
    ``device_model`` is the name under which policies see how alike devices are. ``replicas`` is as how many devices
    each of them is advertised, as with time-slicing: ``devices`` counts these.
    """

    name: NodeName
    cpu: float
    memory: float = math.inf
    speed: float = 1.0
    zone: str = ""
    supply: tuple[tuple[float, float], ...] = ()
    contention: float = 0.0
    devices: Devices = NO_DEVICES
    price: float | None = None
    device_speed: float = 1.0
    device_model: str = ""
    replicas: int = 1

    def __post_init__(self) -> None:
        for name in ("cpu", "memory", "speed", "device_speed"):
            if not getattr(self, name) > 0:
                message = f"node {self.name}: {name} must be greater than 0, not {getattr(self, name)}"
                raise WorkloadError(message)
        _check_devices(f"node {self.name}", self.devices)
        self._check_sharing()
        if not 0 <= self.contention < math.inf:
            message = f"node {self.name}: contention must be at least 0, not {self.contention}"
            raise WorkloadError(message)
        if self.price is not None and not 0 <= self.price < math.inf:
            message = f"node {self.name}: price must be at least 0 an hour, not {self.price}"
            raise WorkloadError(message)
        path = ((-math.inf, self.cpu), *self.supply)
        if any(not (a[0] < b[0] < math.inf and 0 < b[1] <= self.cpu) for a, b in pairwise(path)):
            message = f"node {self.name}: supply must rise in time and lie in (0, {self.cpu:g}], not {self.supply!r}"
            raise WorkloadError(message)

    def _check_sharing(self) -> None:
        if not self.device_speed < math.inf:
            message = f"node {self.name}: device_speed must be finite, not {self.device_speed}"
            raise WorkloadError(message)
        if self.replicas < 1:
            message = f"node {self.name}: replicas must be at least 1, not {self.replicas}"
            raise WorkloadError(message)
        for kind, count in self.devices.counts:
            if count % self.replicas:
                message = (
                    f"node {self.name}: {count} of {kind} cannot be {self.replicas} replicas of each device: "
                    f"devices counts replicas, so give a multiple of {self.replicas}"
                )
                raise WorkloadError(message)

    @property
    def replicas_by_kind(self) -> Devices:
        """As how many devices each is advertised, of each kind that is shared; as policies see it."""
        return Devices.of({kind: self.replicas for kind, _ in self.devices.counts} if self.replicas > 1 else {})

    def supplied(self, at: float) -> float:
        """Return the cores that its trials get together at ``at`` seconds."""
        index = bisect_right(self.supply, (at, math.inf))
        return self.supply[index - 1][1] if index else self.cpu

    def speed_of(self, computing: int) -> float:
        """Return the speed of a core while that many trials compute."""
        return self.speed / (1 + self.contention * max(0, computing - 1))


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that an autoscaler adds and removes: each is like ``node``, and called by its name and a number.

    ``least`` of them are there from the beginning and never removed; there are never more than ``most``. One that was
    asked for takes trials ``boots_s`` seconds later. With a ``spot`` market, its provider may take one away at any
    time.
    """

    node: NodeSpec
    most: int
    least: int = 0
    boots_s: float = BOOTS_S
    spot: SpotMarket | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most or not self.most:
            message = f"group {self.name}: least and most must be from 0 and 1, not {self.least} and {self.most}"
            raise WorkloadError(message)
        if not 0 <= self.boots_s < math.inf:
            message = f"group {self.name}: boots_s must be finite and at least 0, not {self.boots_s}"
            raise WorkloadError(message)

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.node.name)

    def numbered(self, number: int) -> NodeSpec:
        """Return its ``number``-th node."""
        return replace(self.node, name=NodeName(f"{self.name}-{number}"))


@dataclass(frozen=True, slots=True)
class Image:
    """The image that the trials' pods run: ``size`` in bytes, and the seconds that a node takes to pull it.

    ``containers`` counts those of a pod, which kube-scheduler scores images by: Argo's are init, wait and main.
    """

    size: float
    pull_s: float
    containers: int = 3

    def __post_init__(self) -> None:
        for name in ("size", "pull_s", "containers"):
            least = 1 if name == "containers" else 0
            if not least <= getattr(self, name) < math.inf:
                message = f"image: {name} must be at least {least}, not {getattr(self, name)}"
                raise WorkloadError(message)


@dataclass(frozen=True, slots=True)
class Workload:
    """Trials and nodes, each name once, at least one of each; without an ``image``, every node has it already.

    ``network`` is what the workers of gangs talk over. Nodes of ``groups`` come and go beside ``nodes``, as their
    autoscaler works by ``scaling``; with groups, there may be no other nodes.
    """

    trials: tuple[TrialSpec, ...]
    nodes: tuple[NodeSpec, ...]
    image: Image | None = None
    network: Network = field(default_factory=Network)
    groups: tuple[NodeGroup, ...] = ()
    scaling: AutoscalerTiming = field(default_factory=AutoscalerTiming)

    def __post_init__(self) -> None:
        _distinct("trial", [trial.id for trial in self.trials])
        _distinct("node", [*(node.name for node in self.nodes), *(group.name for group in self.groups)])
        for node in self.nodes:
            before, _, number = node.name.rpartition("-")
            if number.isdecimal() and any(group.name == before for group in self.groups):
                message = f"node {node.name} is named as one of the group {before}"
                raise WorkloadError(message)

    @property
    def most_nodes(self) -> tuple[NodeSpec, ...]:
        """Every node that can be there at a time, those of groups included."""
        grown = (group.numbered(number) for group in self.groups for number in range(1, group.most + 1))
        return (*self.nodes, *grown)

    @property
    def priced(self) -> bool:
        """Whether it is known what any of its nodes costs."""
        return any(node.price is not None for node in (*self.nodes, *(group.node for group in self.groups)))


def _distinct(kind: str, names: Sequence[str]) -> None:
    if not names:
        message = f"a workload needs at least one {kind}"
        raise WorkloadError(message)
    if twice := sorted({name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()):
        message = f"{kind} {twice[0]} is there more than once"
        raise WorkloadError(message)
