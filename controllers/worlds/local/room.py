"""What of this machine's nodes is taken, and where the next attempt of a job may start."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from controllers.worlds.kube_scheduler import NodeLoad, choose, scores
from controllers.worlds.local.gpus import devices_of, least_shared
from controllers.worlds.local.jobs import LocalJob
from controllers.worlds.local.workflow import PodStep

JOIN_S: Final = 300.0
"""Seconds within which the workers of a gang must have begun to meet: imports on a small share take minutes."""
_SLACK: Final = 1e-9


@dataclass(frozen=True)
class Machine:
    """The nodes of a run, with ``memory`` bytes each, and how first attempts find theirs.

    ``pinned`` names the nodes of a trial's first attempt by rank (by the trial's id without the workflow's uid), so
    that two policies can be compared from the same initial placement. With ``gate_first`` each trial's first attempt
    waits for a ``Place``, as those of a policy that needs it do. ``join_s`` is within how many seconds the workers of
    a gang must have begun to meet. ``gpus`` names those of each node, each as often as trials may hold it. ``jobs`` is
    how many trials run at a time, None for as many as pay.
    """

    nodes: Mapping[str, float]
    memory: float
    seed: int = 0
    pinned: Mapping[str, Sequence[str]] = field(default_factory=dict)
    gate_first: bool = False
    join_s: float = JOIN_S
    gpus: Mapping[str, Sequence[str]] = field(default_factory=dict)
    jobs: int | None = None

    def at_once(self, node: str, step: PodStep, trials: int) -> int:
        """Return how many workers like ``step``'s run on ``node`` at a time, where there are so many ``trials`` to run.

        Trials that use little may leave room for more, and memory for fewer.
        """
        by_hand = trials if self.jobs is None else min(trials, self.jobs)
        there = math.ceil(by_hand * step.workers / len(self.nodes))
        if self.jobs is None or not step.cpu_guessed:
            there = min(there, math.floor(self.nodes[node] / step.cpu + _SLACK))
        return max(1, there)

    def most_workers(self, step: PodStep) -> int:
        """Return how many workers of ``step`` the nodes hold together while nothing else is there."""
        by_memory = math.floor(self.memory / step.memory) if step.memory else math.inf
        by_gpus = {node: len(self.gpus.get(node, ())) // step.gpus if step.gpus else math.inf for node in self.nodes}
        return int(
            sum(min(math.floor(cpu / step.cpu + _SLACK), by_memory, by_gpus[node]) for node, cpu in self.nodes.items())
        )


class Room:
    """The nodes of ``machine`` with what ``jobs`` take of them, moves under way counted at both their ends.

    ``limits`` are the cores that may be requested of nodes by those that come, where that is not what they have.
    """

    def __init__(self, machine: Machine, jobs: Iterable[LocalJob], limits: Mapping[str, float] | None = None) -> None:
        self._machine = machine
        self._jobs = list(jobs)
        self._limits = {**machine.nodes, **(limits or {})}

    def load(self, node: str) -> NodeLoad:
        """Return what is requested of ``node``."""
        held = [(job, *workers_on(node, job)) for job in self._jobs]
        return NodeLoad(
            node,
            self._limits[node],
            self._machine.memory,
            sum(max(now * job.cpu, then * job.step.cpu) for job, now, then in held),
            sum(max(now, then) * job.step.memory for job, now, then in held),
            pods_without_memory=sum(max(now, then) for job, now, then in held if not job.step.memory),
            devices_free=devices_of(
                len(self._machine.gpus.get(node, ())) - sum(max(now, then) * job.step.gpus for job, now, then in held)
            ),
        )

    def gpus(self, job: LocalJob, nodes: Sequence[str]) -> tuple[str, ...]:
        """Return GPUs for an attempt of ``job`` with a worker on each of ``nodes``: they have as many free.

        Of GPUs that several trials may share, those with the fewest come first.
        """
        held = Counter(gpu for other in self._jobs if other.placed for gpu in other.gpus)
        free = {node: iter(least_shared(self._machine.gpus.get(node, ()), held)) for node in dict.fromkeys(nodes)}
        return tuple(gpu for node in nodes for gpu in islice(free[node], job.step.gpus))

    def why_unfit(self, job: LocalJob, nodes: Sequence[str]) -> str | None:
        """Return what speaks against an attempt of ``job`` with a worker on each of ``nodes``; None if it fits.

        What ``job`` itself holds must not be among what this room counts: that goes before the next attempt comes.
        """
        for node in dict.fromkeys(nodes):
            workers = nodes.count(node)
            if node not in self._machine.nodes:
                return f"there is no node {node}"
            devices = devices_of(workers * job.step.gpus)
            if not scores(workers * job.step.cpu, workers * job.step.memory, [self.load(node)], pod_devices=devices):
                return f"{node} has no room for it" if len(nodes) == 1 else f"{node} has no room for {workers} workers"
        return None

    def why_no_resize(self, job: LocalJob, cpu: float) -> str | None:
        """Return what speaks against ``cpu`` cores for each worker of ``job``; None if they fit."""
        for node in dict.fromkeys(job.nodes):
            more = job.nodes.count(node) * (cpu - job.cpu)
            # Where more is requested than there is, as trials use less or wait their turn, a smaller share always fits.
            if more > 0 and self.load(node).cpu_requested + more > self._machine.nodes[node] + _SLACK:
                return f"{cpu:g} cores do not fit on {node}"
        return None

    def places(self, job: LocalJob, workers: int, pick: Callable[[Sequence[str]], str]) -> tuple[str, ...] | None:
        """Return a node for each of ``workers`` of ``job``, each where the default scheduler puts it after the others.

        None where they do not all fit: workers are alike, so that others would not either.
        """
        loads, devices = {node: self.load(node) for node in self._machine.nodes}, devices_of(job.step.gpus)
        chosen: list[str] = []
        for _ in range(workers):
            fits = scores(job.step.cpu, job.step.memory, list(loads.values()), pod_devices=devices)
            if not fits:
                return None
            node = choose(fits, pick)
            chosen.append(node)
            loads[node] = replace(
                loads[node],
                cpu_requested=loads[node].cpu_requested + job.step.cpu,
                memory_requested=loads[node].memory_requested + job.step.memory,
                pods_without_memory=loads[node].pods_without_memory + (not job.step.memory),
                devices_free=loads[node].devices_free - devices,
            )
        return tuple(chosen)


def workers_on(node: str, job: LocalJob) -> tuple[int, int]:
    """Return how many workers of ``job`` are on ``node`` now, and how many its next attempt has there."""
    return job.nodes.count(node) if job.placed else 0, 0 if job.phase.ended else job.targets.count(node)
