"""Whole devices, such as GPUs: what a trial's worker holds alone, because it cannot be shared.

Kubernetes calls them extended resources. Those behind ResourceClaims are of a kind for each DeviceClass, by the name
that Kubernetes has for it among resources.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

GPU: Final = "nvidia.com/gpu"
"""A whole GPU as NVIDIA's device plugin advertises it, and the one kind of device that the local world gives out."""
MOST_KINDS: Final = 64
"""Kinds of devices that are read of a pod or node: its labels and requests are anybody's to write."""
MOST_OF_A_KIND: Final = 2**31 - 1
_MOST_NAME: Final = 253 + 1 + 63
_KIND = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_NATIVE: Final = "kubernetes.io/"
_OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"
_MOST_CLASS: Final = 253


@dataclass(frozen=True, slots=True)
class Devices:
    """How many of each kind, sorted by kind; a kind without any is left out.

    A difference of two may hold negative numbers.
    """

    counts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Devices":
        """Return the devices that ``counts`` gives by kind."""
        return cls(tuple(sorted((kind, count) for kind, count in counts.items() if count)))

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __add__(self, other: "Devices") -> "Devices":
        if not other.counts:
            return self  # most trials ask for none
        counts = dict(self.counts)
        for kind, count in other.counts:
            counts[kind] = counts.get(kind, 0) + count
        return Devices.of(counts)

    def __sub__(self, other: "Devices") -> "Devices":
        return self + other * -1

    def __mul__(self, times: int) -> "Devices":
        return self if times == 1 else Devices.of({kind: count * times for kind, count in self.counts})

    def __str__(self) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in self.counts) or "no devices"

    def count(self, kind: str) -> int:
        """Return how many there are of ``kind``."""
        for known, count in self.counts:  # not next(): policies ask for every trial and node
            if known == kind:
                return count
        return 0

    def kinds(self) -> frozenset[str]:
        """Return the kinds that there are."""
        return frozenset(kind for kind, _ in self.counts)

    def within(self, free: "Devices") -> bool:
        """Return whether ``free`` holds as many of each kind."""
        return all(count <= free.count(kind) for kind, count in self.counts)

    def positive(self) -> "Devices":
        """Return these without the kinds that have a negative number."""
        return Devices(tuple((kind, count) for kind, count in self.counts if count > 0))


NO_DEVICES: Final = Devices()


def is_device(resource: str) -> bool:
    """Return whether a resource of this name is a device to Kubernetes: it has a domain that is not Kubernetes' own.

    As IsExtendedResourceName does in pkg/apis/core/v1/helper, ``cpu``, ``hugepages-2Mi`` and the like are none. One
    of a DeviceClass is.
    """
    named = resource.removeprefix(_OF_CLASS)
    return len(resource) <= _MOST_NAME and _NATIVE not in named and _KIND.fullmatch(resource) is not None


def device_class_kind(name: str) -> str:
    """Return the kind that devices of a DeviceClass are of; empty where that is no name of one."""
    kind = _OF_CLASS + name
    return kind if 0 < len(name) <= _MOST_CLASS and "/" not in name and is_device(kind) else ""


def is_of_class(kind: str) -> bool:
    """Return whether devices of this kind are those of a DeviceClass, which claims are made for."""
    return kind.startswith(_OF_CLASS)
