"""One node in virtual time: what is requested of it, and how its cores are shared."""

from collections.abc import Iterable, Sequence
from typing import Final

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import Node, NodeName, TrialId
from controllers.worlds.simulated.billing import NodeMeter
from controllers.worlds.simulated.device_sharing import DeviceSharing
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.trial_run import TrialRun
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec

_SLACK = 1e-9
LEAST_WEIGHT: Final = 2 / 1024
"""Cores that a request of nothing weighs: cpu.shares are never below 2, and 1024 of them are a core."""


def fair_cores(weights: Sequence[float], caps: Sequence[float], capacity: float) -> list[float]:
    """Return the cores that each gets of ``capacity``.

    Nobody gets more than its cap; what one leaves unused, the others share by weight. Nobody could get more without
    another, who has less in proportion to its weight, getting less (progressive filling: Bertsekas and Gallager,
    Data Networks, 2nd ed., section 6.5.2).

    Args:
        weights: CPU requests in cores; greater than 0.
        caps: most cores that each can use.
        capacity: cores of the node.
    """
    cores = list(caps)
    if sum(caps) <= capacity:
        return cores
    left, weight_left = capacity, sum(weights)
    for index in sorted(range(len(caps)), key=lambda i: caps[i] / weights[i]):
        cores[index] = min(caps[index], max(0.0, left) * weights[index] / weight_left)
        left -= cores[index]
        weight_left -= weights[index]
    return cores


class NodeRun:
    """A node's state. ``runs`` are the attempts on it, ``expected`` those of moves under way towards it.

    ``deferred`` are attempts on it that were promised a greater share, and wait for others to have given theirs up.
    ``others_cpu`` is what pods of others request; ``losses`` counts what keeps the node from working, ``ready`` is what
    is known of that. ``leaves_at`` is when it will be gone, None where it stays. A node of a ``group`` has been
    ``idle_since`` then, None where anything is there or on its way; it stays until ``kept_until`` even so.
    """

    def __init__(self, spec: NodeSpec, meter: NodeMeter | None = None, group: NodeGroup | None = None) -> None:
        self.spec = spec
        self.group = group
        self.meter = meter or NodeMeter(spec.name, "", spec.price, 0.0)
        self.leaves_at: float | None = None
        self.idle_since: float | None = None
        self.kept_until = 0.0
        self.runs: dict[TrialId, TrialRun] = {}
        self.expected: dict[TrialId, TrialRun] = {}
        self.deferred: dict[TrialId, TrialRun] = {}
        self.version = 0
        self.ready = True
        self.losses = 0
        self.others_cpu = 0.0
        self._cpu_used = 0.0
        self._device_sharing = DeviceSharing(spec)
        self._shown: Node | None = None

    @property
    def name(self) -> NodeName:
        """Its name."""
        return self.spec.name

    @property
    def cpu_requested(self) -> float:
        """Cores requested of it, moves towards it included."""
        return self.cpu_taken + self.cpu_expected

    @property
    def cpu_expected(self) -> float:
        """Cores requested by moves towards it."""
        return sum(run.expected_cpu(self.spec.name) for run in self.expected.values())

    @property
    def cpu_taken(self) -> float:
        """Cores requested by what is on it, changes under way counted at their larger end."""
        return sum(run.held_cpu * run.on(self.spec.name) for run in self.runs.values()) + self.others_cpu

    @property
    def cpu_given(self) -> float:
        """Cores that what is on it has now, before changes under way."""
        return sum(run.cpu * run.on(self.spec.name) for run in self.runs.values()) + self.others_cpu

    @property
    def cpu_promised(self) -> float:
        """Cores that what is on it will have after all changes under way."""
        return sum(run.wished_cpu * run.on(self.spec.name) for run in self.runs.values()) + self.others_cpu

    @property
    def memory_requested(self) -> float:
        """Bytes requested of it, moves towards it included."""
        return sum(run.spec.memory * workers for run, workers in self._all())

    @property
    def devices_requested(self) -> Devices:
        """Devices requested of it, moves towards it included."""
        return _devices_of(self._all()) if self.spec.devices else NO_DEVICES

    @property
    def without_cpu(self) -> int:
        """How many of its pods request no CPU."""
        return sum(workers for run, workers in self._all() if not run.spec.cpu)

    @property
    def without_memory(self) -> int:
        """How many of its pods request no memory."""
        return sum(workers for run, workers in self._all() if not run.spec.memory)

    def why_unfit(self, run: TrialRun, workers: int = 1) -> str | None:
        """Return why ``workers`` of the trial's next attempt cannot start here, once the present one has left.

        None where they can.
        """
        spec, leaving = run.spec, run.on(self.name)
        if not self.ready:
            return f"node {self.name} is not ready"
        if spec.may_use is not None and self.name not in spec.may_use:
            return f"node {self.name} is none that the trial may use"
        requested, cpu = self.cpu_requested - leaving * run.held_cpu, spec.cpu * workers
        if requested + cpu > self.spec.cpu + _SLACK:
            return f"{cpu:g} cores do not fit on {self.name}: {requested:g} of {self.spec.cpu:g} are requested"
        if spec.memory and self.memory_requested + spec.memory * (workers - leaving) > self.spec.memory:
            return f"{spec.memory * workers:g} bytes do not fit on {self.name}"
        free = self.spec.devices - self.devices_requested + spec.devices * leaving
        if spec.devices and not (spec.devices * workers).within(free):
            taken = f"it has {self.spec.devices}, and {self.devices_requested} are requested"
            return f"{self.name} cannot give {spec.devices * workers}: {taken}"
        return None

    @property
    def empty(self) -> bool:
        """Whether nothing is on it or on its way."""
        return not (self.runs or self.expected or self.others_cpu)

    def could_hold(self, run: TrialRun) -> bool:
        """Whether the trial, or one worker of it, would fit here if nothing else were there."""
        return most_workers(self.spec, run) > 0

    def has_cores_for(self, run: TrialRun, cpu: float) -> bool:
        """Whether the share of a trial that is here can become ``cpu`` cores, once shrinks under way took hold."""
        more = (cpu - run.wished_cpu) * run.on(self.name)
        return self.cpu_promised + self.cpu_expected + more <= self.spec.cpu + _SLACK

    def can_give(self, run: TrialRun) -> bool:
        """Whether a trial that is here can have now what it was promised."""
        more = (run.wished_cpu - run.cpu) * run.on(self.name)
        return self.cpu_given + more <= self.spec.cpu + _SLACK

    def share(self, now: float) -> None:
        """Give every attempt its part of the cores from ``now`` on: gangs settle afterwards what that comes to."""
        for run in self.runs.values():
            run.advance(now)
        if self.meter.price is not None:
            self.meter.count(now, {name: self._part(run) for name, run in self.runs.items()})
        workers = [run for run in self._computing() for _ in range(run.on(self.name))]
        given = fair_cores(
            [max(run.cpu, LEAST_WEIGHT) for run in workers],
            [run.most_cores for run in workers],
            self.spec.supplied(now),
        )
        speed, on_devices = self.spec.speed_of(len(workers)), self._device_sharing.speeds(self.runs.values())
        for run, cores in zip(workers, given, strict=True):
            on_device = on_devices.get(run.spec.id, 1.0)
            if run.spec.gang:
                run.given[self.name] = cores, speed, on_device
            else:
                # A program has whole threads, which wait where a node gives them a part of a core.
                most = min(run.most_cores, max(1.0, self.spec.cpu))
                run.give(now, cores, speed, most, on_device=on_device)

    def gangs(self) -> list[TrialRun]:
        """Return the gangs that compute here."""
        return [run for run in self._computing() if run.spec.gang]

    def foreseen(self) -> float:
        """Return when the first stage will be over of those that compute here; what was foreseen before is void."""
        computing = self._computing()
        self._cpu_used = sum(run.used[self.name] if run.spec.gang else run.cores for run in computing)
        self.version += 1
        return min((run.stage_ends_at for run in computing), default=float("inf"))

    def _computing(self) -> list[TrialRun]:
        return [run for run in self.runs.values() if run.computes and not self.losses and not run.silent]

    def shown(self) -> Node:
        """Return the node for policies; the same object as last time if nothing of it has changed."""
        left, last, starting = max(0.0, self.spec.cpu - self.others_cpu), self._shown, NO_DEVICES
        if self.spec.devices.counts:
            starting = _devices_of((run, run.on(self.name)) for run in self.runs.values() if not run.shown_on)
        seen = left, self._cpu_used, self.ready, starting, self.leaves_at
        if last is None or (last.cpu, last.cpu_used, last.ready, last.devices_starting, last.leaves_at) != seen:
            last = self._shown = Node(
                self.spec.name,
                left,
                self.spec.memory,
                self._cpu_used,
                self.ready,
                self.spec.devices,
                starting,
                zone=self.spec.zone,
                leaves_at=self.leaves_at,
                kind="" if self.group is None else self.group.name,
                price=self.spec.price,
                device_model=self.spec.device_model,
                replicas=self.spec.replicas_by_kind,
            )
        return last

    def _part(self, run: TrialRun) -> float:
        """Return the part of the node that an attempt holds: the largest of its cores, memory and devices."""
        workers, devices = run.on(self.name), self.spec.devices
        of_devices = (run.spec.devices.count(kind) / count for kind, count in devices.counts if count)
        return workers * max(run.held_cpu / self.spec.cpu, run.spec.memory / self.spec.memory, *of_devices)

    def _all(self) -> Iterable[tuple[TrialRun, int]]:
        """Yield what is here or on its way, and how many workers it has here, or more than it has here."""
        yield from ((run, run.on(self.name)) for run in self.runs.values())
        yield from ((run, run.coming(self.name)) for run in self.expected.values())


def _devices_of(runs: Iterable[tuple[TrialRun, int]]) -> Devices:
    return sum((run.spec.devices * workers for run, workers in runs), NO_DEVICES)


def most_workers(node: NodeSpec, run: TrialRun) -> int:
    """Return how many of the trial's workers fit on ``node`` if nothing else is there."""
    spec, fitting = run.spec, 0
    if spec.may_use is not None and node.name not in spec.may_use:
        return 0
    while (
        fitting < spec.max_workers
        and spec.cpu * (fitting + 1) <= node.cpu + _SLACK
        and spec.memory * (fitting + 1) <= node.memory
        and (spec.devices * (fitting + 1)).within(node.devices)
    ):
        fitting += 1
    return fitting


def workers_held(run: TrialRun, nodes: Iterable[NodeSpec], groups: Iterable[NodeGroup]) -> int:
    """Return how many of the trial's workers all nodes that can be there hold together if nothing else is there.

    Raises:
        WorkloadError: They are fewer than it needs.
    """
    spec = run.spec
    held = sum(most_workers(node, run) for node in nodes)
    held += sum(group.most * most_workers(group.node, run) for group in groups)
    asked = f"{spec.cpu:g} cores, {spec.memory:g} bytes of memory and {spec.devices}"
    if held < spec.min_workers > 1:
        message = f"trial {spec.id} needs {spec.min_workers} workers of {asked}: all nodes together hold {held}"
        raise WorkloadError(message)
    if not held:
        message = f"trial {spec.id} requests {asked}: no node has as much"
        raise WorkloadError(message)
    return held
