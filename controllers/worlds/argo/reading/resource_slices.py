"""Small records of what drivers offer (ResourceSlices) and of its kinds (DeviceClasses). All of it is untrusted."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import at, mappings, text, whole
from controllers.worlds.argo.reading.device_selectors import AttributeComparison, Value, comparisons_in

MOST_DEVICES: Final = 128
"""Devices of a slice that are read: Kubernetes takes no more."""
_MOST_ATTRIBUTES: Final = 64
_MOST_WORD: Final = 64
_MOST_NAME: Final = 253
_MOST_SELECTORS: Final = 32
_KEEPS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})
_SEVERAL_NODES: Final = ("nodeName", "nodeSelector", "allNodes")


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A device; ``attributes`` by ``domain/name``.

    ``whole`` tells that it goes to one claim at a time and takes nothing from other devices, ``open`` that no taint
    keeps claims away.
    """

    name: str
    attributes: Mapping[str, Value]
    whole: bool
    open: bool


@dataclass(frozen=True, slots=True)
class SliceRecord:
    """A part of a pool of devices; ``node`` is empty where several nodes reach them.

    Only the newest ``generation`` of a pool counts, once all its ``parts`` are there.
    """

    driver: str
    pool: str
    generation: int
    parts: int
    node: str
    devices: tuple[DeviceRecord, ...]

    @property
    def weight(self) -> int:
        """How much room it takes, in kilobytes, roughly."""
        return 1 + sum(1 + len(device.attributes) for device in self.devices) // 8


@dataclass(frozen=True, slots=True)
class ClassRecord:
    """A DeviceClass: the comparisons that hold of its devices, None where its selectors say more than is read."""

    name: str
    comparisons: tuple[AttributeComparison, ...] | None

    def selects(self, driver: str, device: DeviceRecord) -> bool:
        """Whether a device is of the class; of one whose selectors are not read, none is."""
        known = self.comparisons
        return known is not None and all(one.holds(driver, device.attributes) for one in known)


def project_slice(item: Json) -> SliceRecord | None:
    """Return the record of a ResourceSlice, None for one that names no driver or no pool."""
    driver = text(item, "spec", "driver", most=_MOST_NAME)
    pool = text(item, "spec", "pool", "name", most=_MOST_NAME)
    if not driver or not pool:
        return None
    by_device = at(item, "spec", "perDeviceNodeSelection") is True
    read = [device for _, device in zip(range(MOST_DEVICES), mappings(item, "spec", "devices"), strict=False)]
    return SliceRecord(
        driver=driver,
        pool=pool,
        generation=whole(item, "spec", "pool", "generation") or 0,
        parts=whole(item, "spec", "pool", "resourceSliceCount") or 0,
        node="" if by_device else text(item, "spec", "nodeName", most=_MOST_NAME),
        devices=tuple(device for one in read if (device := _device(one, driver)) is not None),
    )


def _device(item: Mapping[str, Any], driver: str) -> DeviceRecord | None:
    name = text(item, "name", most=_MOST_NAME)
    if not name:
        return None
    shared = at(item, "consumesCounters") or at(item, "allowMultipleAllocations")
    elsewhere = any(at(item, field) for field in _SEVERAL_NODES)
    effects = (text(taint, "effect") for taint in mappings(item, "taints"))
    return DeviceRecord(
        name=name,
        attributes=_attributes(at(item, "attributes"), driver),
        whole=not shared and not elsewhere,
        open=not any(effect in _KEEPS_AWAY for effect in effects),
    )


def _attributes(given: object, driver: str) -> dict[str, Value]:
    """Return the attributes that a comparison may be about; a name without a domain is in that of the driver."""
    items = list(given.items())[:_MOST_ATTRIBUTES] if isinstance(given, Mapping) else []
    found: dict[str, Value] = {}
    for name, value in items:
        word, number, truth = text(value, "string", most=_MOST_WORD), whole(value, "int"), at(value, "bool")
        read: Value | None = word or (number if number is not None else truth if isinstance(truth, bool) else None)
        if read is not None and isinstance(name, str) and len(name) <= 2 * _MOST_WORD:
            found[sys.intern(name if "/" in name else f"{driver}/{name}")] = read
    return found


def project_class(item: Json) -> ClassRecord | None:
    """Return the record of a DeviceClass."""
    name, given = text(item, "metadata", "name", most=_MOST_NAME), at(item, "spec", "selectors") or []
    if not isinstance(given, list) or len(given) > _MOST_SELECTORS:
        return ClassRecord(name, None) if name else None
    # A selector that is no expression, or one that is too long, is not plain either.
    read = [comparisons_in(text(one, "cel", "expression") or "?") for one in given]
    plain = None if None in read else tuple(one for part in read for one in part or ())
    return ClassRecord(name, plain) if name else None
