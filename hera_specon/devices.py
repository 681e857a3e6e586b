"""Whole devices, such as GPUs, as a sweep's author asks for them: checked, read, and let onto nodes kept for them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hera.workflows import Resources
from hera.workflows.models import Toleration

from controllers.core.devices import GPU, MOST_KINDS, Devices, is_device
from hera_specon.errors import SweepError

MOST_DEVICES: Final = 1024
"""Greatest number of devices of a kind that a trial may ask for: no machine has as many."""
_SHARED: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES: Final = "hugepages-"
_SHOWN: Final = 60
MOST_CLAIMS: Final = 32
"""Claims of a pod that Kubernetes takes."""
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_MOST_NAME: Final = 253
_PART: Final = re.compile(r"0?\.[0-9]{1,16}")
_NO_PARTS: Final = (
    "Kubernetes gives devices out whole: ask for one of those that an administrator cut. Time slices and MPS of the "
    "device plugin advertise each GPU several times (gpus=1, perhaps gpu_flag='nvidia.com/gpu.shared'), MIG advertises "
    "partitions (gpus=1, gpu_flag='nvidia.com/mig-1g.5gb'), and a claim may ask a driver for a part (resource_claims=)"
)


def check_custom_resources(resources: object) -> None:
    """Check that Hera keeps all that ``custom_resources`` of a sweep's ``resources`` holds.

    Raises:
        SweepError: It has another shape than a container's resources, which Hera drops or refuses.
    """
    given = (isinstance(resources, Resources) and resources.custom_resources) or {}
    fits = all(
        side in {"requests", "limits"}
        and isinstance(amounts, Mapping)
        and all(isinstance(amount, str) for amount in amounts.values())
        for side, amounts in given.items()
    )
    if not fits:
        shape = "{'requests': {KIND: '1'}, 'limits': {KIND: '1'}}"
        problem = f"custom_resources= has the shape {shape}, not {_shorten(given)}; gpus=1, gpu_flag=KIND is shorter"
        raise SweepError(problem)


def check_claims(claims: object) -> dict[str, str]:
    """Return the ResourceClaimTemplates of a trial by the names of its claims.

    Raises:
        SweepError: These are no names, or too many.
    """
    if claims is None:
        return {}
    if not isinstance(claims, Mapping) or len(claims) > MOST_CLAIMS:
        problem = (
            f"resource_claims= names a ResourceClaimTemplate for each of at most {MOST_CLAIMS} claims, "
            f"such as {{'gpu': 'one-gpu'}}, and not {_shorten(claims)}"
        )
        raise SweepError(problem)
    for name, template in claims.items():
        if not (isinstance(name, str) and _LABEL.fullmatch(name)):
            problem = f"resource_claims= names a claim {_shorten(name)}; it takes lower-case letters, digits and dashes"
            raise SweepError(problem)
        if not (isinstance(template, str) and len(template) <= _MOST_NAME and _DOMAIN.fullmatch(template)):
            problem = f"resource_claims= has {_shorten(template)} for {name!r}, which names no ResourceClaimTemplate"
            raise SweepError(problem)
    return dict(claims)


def device_problems(resources: Mapping[str, Any], *, parts: bool = False) -> Iterator[str]:
    """Yield what is wrong with the devices that a container's ``resources`` ask for, with the value.

    Kubernetes takes whole numbers of them, as a limit and, if at all, as the same request. With ``parts`` a part of one
    GPU is right, too, as one machine may give it out.
    """
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    names = sorted({*map(str, limits), *map(str, requests)} - _SHARED)
    devices = [name for name in names if not name.startswith(_HUGE_PAGES)]
    if len(devices) > MOST_KINDS:
        yield f"asks for {len(devices)} kinds of devices, more than {MOST_KINDS}"
        return
    for name in devices:
        limit, request = (str(side[name]) if name in side else None for side in (limits, requests))
        if not is_device(name):
            yield f"asks for {_shorten(name)}, but the name of a device has a domain, as nvidia.com/gpu has"
        elif limit is None or request not in {None, limit}:
            yield f"asks for {_shorten(request)} of {name} with a limit of {_shorten(limit)}: they must be the same"
        elif _is_part(name, limit):
            if not parts:
                yield f"asks for {_shorten(limit)} of {name}, and {_NO_PARTS}"
        elif "{{" not in limit and not (limit.isdecimal() and len(limit) < _SHOWN and int(limit) <= MOST_DEVICES):
            yield f"asks for {_shorten(limit)} of {name}, which is no whole number from 0 to {MOST_DEVICES}"


def _is_part(kind: str, limit: str) -> bool:
    """Return whether ``limit`` is a part of one GPU."""
    return kind == GPU and _PART.fullmatch(limit) is not None and 0 < float(limit) < 1


def devices_asked(resources: Mapping[str, Any]) -> Devices:
    """Return the devices that a container's ``resources`` ask for, once nothing is wrong with them.

    A number that only Argo fills in is left out.
    """
    limits = {str(name): str(amount) for name, amount in (resources.get("limits") or {}).items()}
    return Devices.of({name: int(limit) for name, limit in limits.items() if is_device(name) and limit.isdecimal()})


def tolerations(given: list[Toleration] | None, resources: Mapping[str, Any]) -> list[Toleration] | None:
    """Return ``given`` with one for the taint of each kind of device that ``resources`` ask for.

    Nodes with devices often carry a taint of that name, which keeps away pods that ask for none. Many clusters add the
    toleration themselves (admission plugin ExtendedResourceToleration), but not all.
    """
    known = {toleration.key for toleration in given or []}
    kinds = sorted(name for name in map(str, resources.get("limits") or {}) if is_device(name) and name not in known)
    added = [Toleration(key=kind, operator="Exists", effect="NoSchedule") for kind in kinds]
    return [*(given or []), *added] or None


def _shorten(value: object) -> str:
    return repr(value)[:_SHOWN]
