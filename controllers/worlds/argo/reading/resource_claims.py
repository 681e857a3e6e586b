"""Small records of ResourceClaims, and of what a pod has to do with them. Whatever they say is untrusted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from controllers.core.devices import MOST_KINDS, MOST_OF_A_KIND, device_class_kind
from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import at, mappings, text, whole

_MOST_NAME: Final = 253
_MOST_CLAIMS: Final = 32
_MOST_RESULTS: Final = 32
"""Devices that a claim may be given, and claims of a pod: Kubernetes takes no more."""
_OTHER_FIELDS: Final = {
    "selectors": "selectors of its own",
    "capacity": "a part of a device",
    "adminAccess": "access for administration",
}
_BY_PEOPLE: Final = "a ResourceClaim that somebody made, which pods may share"


@dataclass(frozen=True, slots=True)
class GivenDevice:
    """A device that a claim was given."""

    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A ResourceClaim of the pod ``owner`` (uid), or of none; ``given`` are the devices that it holds.

    ``classes`` has how many devices it asks of each DeviceClass. ``why_unread`` says what else it asks, empty where
    that is all: then ``classes`` is empty.
    """

    namespace: str
    name: str
    owner: str
    classes: tuple[tuple[str, int], ...]
    why_unread: str
    given: tuple[GivenDevice, ...]

    @property
    def weight(self) -> int:
        """How much room it takes, in kilobytes, roughly: names are anybody's to write."""
        names = sum(len(name) for name, _ in self.classes)
        return 1 + (names + sum(len(one.driver) + len(one.pool) + len(one.device) for one in self.given)) // 1024


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of a pod: the names of those ``made`` for it, and whether others are ``missing`` yet.

    ``why_unread`` says which of them are not read. ``fixed`` tells that a container names them: then no API server
    before Kubernetes 1.37 changes the pod's share.
    """

    made: tuple[str, ...] = ()
    missing: bool = False
    why_unread: str = ""
    fixed: bool = False

    @property
    def length(self) -> int:
        """How many characters it holds."""
        return sum(map(len, self.made))


NO_CLAIMS: Final = PodClaims()


def project_claim(item: Json) -> ClaimRecord:
    """Return the record of a ResourceClaim."""
    owners = mappings(item, "metadata", "ownerReferences")
    owner = next((one for one in owners if text(one, "kind") == "Pod" and at(one, "controller") is True), {})
    classes, why_unread = _asked(at(item, "spec", "devices"))
    results = zip(range(_MOST_RESULTS), mappings(item, "status", "allocation", "devices", "results"), strict=False)
    return ClaimRecord(
        namespace=text(item, "metadata", "namespace", most=_MOST_NAME),
        name=text(item, "metadata", "name", most=_MOST_NAME),
        owner=text(owner, "uid", most=_MOST_NAME),
        classes=tuple(sorted(classes.items())),
        why_unread=why_unread,
        given=tuple(_given(one) for _, one in results if at(one, "adminAccess") is not True),
    )


def _given(result: Mapping[str, Any]) -> GivenDevice:
    driver, pool, device = (text(result, field, most=_MOST_NAME) for field in ("driver", "pool", "device"))
    return GivenDevice(driver, pool, device)


def asked_by_template(template: Json) -> tuple[dict[str, int], str]:
    """Return what each claim made by a ResourceClaimTemplate asks: devices by class, or why that is not read."""
    return _asked(at(template, "spec", "spec", "devices"))


def _asked(devices: object) -> tuple[dict[str, int], str]:
    """Return how many devices of each class a claim asks for, or what it asks that is not read."""
    requests, found = at(devices, "requests"), dict[str, int]()
    if not isinstance(requests, list) or len(requests) > _MOST_RESULTS:
        return {}, "no list of requests"
    for request in requests:
        exactly = at(request, "exactly")
        if not isinstance(exactly, Mapping):
            return {}, "a choice among devices (firstAvailable)"
        if other := next((words for field, words in _OTHER_FIELDS.items() if at(exactly, field)), ""):
            return {}, other
        if (mode := at(exactly, "allocationMode") or "ExactCount") != "ExactCount":
            return {}, f"the allocation mode {str(mode)[:20]!r}"
        name, given = text(exactly, "deviceClassName", most=_MOST_NAME), at(exactly, "count")
        count = 1 if given is None else whole(exactly, "count") or 0
        if not device_class_kind(name) or not 0 < count <= MOST_OF_A_KIND:
            return {}, f"{str(given)[:20]} devices of class {name[:60]!r}"
        found[name] = found.get(name, 0) + count
    if at(devices, "constraints") and sum(found.values()) > 1:
        return {}, "devices that are alike or unlike (constraints)"
    return (found, "") if len(found) <= MOST_KINDS else ({}, "too many classes")


def claims_of(pod: Json) -> PodClaims:
    """Return what a pod has to do with claims, by its spec and by what Kubernetes says that it made for it."""
    wanted = list(mappings(pod, "spec", "resourceClaims"))
    status = mappings(pod, "status", "resourceClaimStatuses")
    made = {text(one, "name"): text(one, "resourceClaimName", most=_MOST_NAME) for one in status}
    special = text(pod, "status", "extendedResourceClaimStatus", "resourceClaimName", most=_MOST_NAME)
    if not wanted and not special:
        return NO_CLAIMS
    names = [text(claim, "name") for claim in wanted]
    unread = _BY_PEOPLE if any(at(claim, "resourceClaimName") for claim in wanted) else ""
    if len(wanted) > _MOST_CLAIMS:
        unread = f"more than {_MOST_CLAIMS} ResourceClaims"
    containers = (*mappings(pod, "spec", "containers"), *mappings(pod, "spec", "initContainers"))
    kept = [*names[:_MOST_CLAIMS]]
    return PodClaims(
        # A claim without a name in the status is one that is not needed after all.
        made=tuple(filter(None, (*(made.get(name, "") for name in kept), special))),
        missing=any(name not in made for name in kept) and not unread,
        why_unread=unread,
        fixed=any(at(container, "resources", "claims") for container in containers),
    )
