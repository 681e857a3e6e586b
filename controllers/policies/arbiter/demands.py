"""What sweeps want of a cluster, and what its owner grants their namespaces: in cores, bytes and devices."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import NodeName, TrialId

SLACK: Final = 1e-9
"""Cores that sums of floats may be wrong by."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Cores, bytes and devices."""

    cpu: float = 0.0
    memory: float = 0.0
    devices: Devices = NO_DEVICES

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.cpu + other.cpu, self.memory + other.memory, self.devices + other.devices)

    def __sub__(self, other: "Amount") -> "Amount":
        devices = self.devices - other.devices if other.devices.counts else self.devices
        return Amount(self.cpu - other.cpu, self.memory - other.memory, devices)

    def __mul__(self, times: int) -> "Amount":
        return self if times == 1 else Amount(self.cpu * times, self.memory * times, self.devices * times)

    def within(self, room: "Amount") -> bool:
        """Return whether ``room`` holds as much of everything."""
        return (
            self.cpu <= room.cpu + SLACK
            and (not self.memory or self.memory <= room.memory)
            and (not self.devices.counts or self.devices.within(room.devices))
        )

    def positive(self) -> "Amount":
        """Return it without what is below nothing."""
        return Amount(max(0.0, self.cpu), max(0.0, self.memory), self.devices.positive())

    def __str__(self) -> str:
        return f"{self.cpu:.3g} cores" + (f" and {self.devices}" if self.devices else "")


NOTHING: Final = Amount()
UNBOUNDED: Final = math.inf


@dataclass(frozen=True, slots=True)
class Claimant:
    """A trial that has not ended, as far as sweeps share a cluster by it.

    ``each`` is what its author asked for each of its ``workers``, ``cpu`` the cores that each has now. ``nodes`` names
    the node of each worker that runs, or where a move leads; empty while it waits. ``steady`` tells that it runs and
    was not told to leave, ``leaving`` that its room will be free soon; ``starting`` that it was placed and does not run
    yet: then the nodes are shown without what it holds. ``held_back`` tells that it starts only by a ``Place``: what
    waits without that waits for the scheduler, and starts there as it comes. ``since`` is when it was submitted,
    ``attempt`` the number of its attempt. ``most_cpu`` is how many cores each worker can use, ``left_s`` how many
    seconds it still needs, None where nobody knows. ``may_use`` are the nodes it may go to, None for any. ``least`` is
    the fewest workers that it starts with, where all nodes together hold no more; 0 where it needs all ``workers``.
    ``comes_from`` names the node of each worker that has yet to leave for another.
    """

    id: TrialId
    each: Amount
    cpu: float = 0.0
    workers: int = 1
    nodes: tuple[NodeName, ...] = ()
    steady: bool = False
    leaving: bool = False
    starting: bool = False
    held_back: bool = True
    since: float = 0.0
    attempt: int = 0
    most_cpu: float = UNBOUNDED
    left_s: float | None = None
    may_use: frozenset[NodeName] | None = None
    least: int = 0
    comes_from: tuple[NodeName, ...] = ()

    @property
    def asked(self) -> Amount:
        """What all its workers ask for."""
        return self.each * self.workers

    @property
    def has(self) -> Amount:
        """What its workers have now."""
        here = len(self.nodes)
        return Amount(self.cpu, self.each.memory, self.each.devices) * here if here else NOTHING


@dataclass(frozen=True, slots=True)
class SweepDemand:
    """One sweep: ``name`` tells it from all others, ``weight`` and ``priority`` count among those of its namespace.

    ``places`` tells that its policy chooses nodes, ``grows`` that it changes shares.
    """

    name: str
    namespace: str
    trials: tuple[Claimant, ...]
    weight: float = 1.0
    priority: int = 0
    places: bool = True
    grows: bool = False


@dataclass(frozen=True, slots=True)
class NamespaceTerms:
    """What the owner of a cluster grants a namespace; None in a quota where there is no bound.

    Among namespaces of one ``priority`` each gets cores, memory and devices by ``weight``; those of a higher one come
    first. ``quota_devices`` bounds the kinds that it names.
    """

    weight: float = 1.0
    priority: int = 0
    quota_cpu: float | None = None
    quota_memory: float | None = None
    quota_devices: tuple[tuple[str, int], ...] = ()

    @property
    def bounded(self) -> bool:
        """Whether there is any quota."""
        return self.quota_cpu is not None or self.quota_memory is not None or bool(self.quota_devices)

    def why_over(self, wanted: Amount) -> str | None:
        """Return which quota a namespace that has ``wanted`` would exceed; None where it keeps to all."""
        if self.quota_cpu is not None and wanted.cpu > self.quota_cpu + SLACK:
            return f"{self.quota_cpu:g} cores"
        if self.quota_memory is not None and wanted.memory > self.quota_memory:
            return f"{self.quota_memory:g} bytes of memory"
        over = [(kind, most) for kind, most in self.quota_devices if wanted.devices.count(kind) > most]
        return f"{over[0][1]} {over[0][0]}" if over else None


Terms = Mapping[str, NamespaceTerms]
"""What each namespace is granted, by its name; ``*`` stands for those that are not named."""
EVERY_OTHER: Final = "*"
_USUAL: Final = NamespaceTerms()


def terms_of(namespace: str, terms: Terms) -> NamespaceTerms:
    """Return what a namespace is granted."""
    return terms.get(namespace) or terms.get(EVERY_OTHER) or _USUAL
