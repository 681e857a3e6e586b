"""Devices behind ResourceClaims: how many of each DeviceClass a node has, and which devices are held. Pure.

A class is counted where its selectors are read, and none of its devices is shared, a part of another, or reached from
several nodes. Pods that claim anything else are left to the scheduler.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from controllers.core.devices import MOST_KINDS, Devices, device_class_kind, is_of_class
from controllers.worlds.argo.reading.nodes import NodeRecord
from controllers.worlds.argo.reading.pods import OtherPod, PodRecord, Resources
from controllers.worlds.argo.reading.resource_claims import ClaimRecord, GivenDevice
from controllers.worlds.argo.reading.resource_slices import ClassRecord, SliceRecord

NOT_SEEN: Final = (
    "this controller may not read the ResourceSlices, ResourceClaims and DeviceClasses of resource.k8s.io/v1, or there "
    "are none before Kubernetes 1.34"
)
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a device is, and the kinds that it counts as."""

    node: str
    kinds: tuple[str, ...]


def _whole_pools(slices: Iterable[SliceRecord]) -> list[SliceRecord]:
    """Return the slices of the newest generation of each pool that is there whole: the scheduler takes no others."""
    pools: dict[tuple[str, str], list[SliceRecord]] = {}
    for part in slices:
        pools.setdefault((part.driver, part.pool), []).append(part)
    whole: list[SliceRecord] = []
    for parts in pools.values():
        newest = max(part.generation for part in parts)
        kept = [part for part in parts if part.generation == newest]
        whole += kept if len(kept) == kept[0].parts else ()
    return whole


class Offers:
    """What drivers offer, by DeviceClass: worked out once while slices and classes stay what they are.

    Args:
        slices: all ResourceSlices.
        classes: all DeviceClasses. The first by name are counted, as many as a node may have kinds of devices.
    """

    def __init__(self, slices: Iterable[SliceRecord], classes: Iterable[ClassRecord]) -> None:
        named = sorted(classes, key=lambda one: one.name)
        self._known = {one.name: one for one in named[:MOST_KINDS]}
        self._uncounted: dict[str, str] = {
            one.name: f"the selectors of DeviceClass {one.name[:_SHOWN]} say more than is read"
            for one in self._known.values()
            if one.comparisons is None
        }
        whole = _whole_pools(slices)
        for part in whole:
            self._note_uncounted(part)
        self.places = {key: place for part in whole for key, place in self._places(part)}
        totals: dict[str, Counter[str]] = {}
        for place in self.places.values():
            totals.setdefault(place.node, Counter()).update(place.kinds)
        self.by_node: Mapping[str, Devices] = {node: Devices.of(counts) for node, counts in totals.items()}
        """All devices of each node, held or not, by its name."""

    def why_uncounted(self, name: str) -> str:
        """Return why the devices of a class are not counted, empty where they are."""
        if name not in self._known:
            return f"there is no DeviceClass {name[:_SHOWN]}, or more than {MOST_KINDS} others"
        return self._uncounted.get(name, "")

    def with_devices(self, node: NodeRecord) -> NodeRecord:
        """Return a node with the devices that drivers offer there."""
        offered = self.by_node.get(node.name)
        return node if offered is None else replace(node, devices=node.devices + offered)

    def _note_uncounted(self, part: SliceRecord) -> None:
        """Note the classes with a device that is not one node's alone, or no whole one."""
        odd = [device for device in part.devices if not (part.node and device.whole)]
        for one in self._known.values() if odd else ():
            if one.name not in self._uncounted and any(one.selects(part.driver, device) for device in odd):
                self._uncounted[one.name] = (
                    f"DeviceClass {one.name[:_SHOWN]} has devices that are shared, parts of others, or of several nodes"
                )

    def _places(self, part: SliceRecord) -> Iterable[tuple[GivenDevice, _Place]]:
        counted = [one for one in self._known.values() if one.name not in self._uncounted]
        for device in part.devices if part.node else ():
            kinds = tuple(device_class_kind(one.name) for one in counted if one.selects(part.driver, device))
            if kinds and device.whole and device.open:
                yield GivenDevice(part.driver, part.pool, device.name), _Place(part.node, kinds)


NO_OFFERS: Final = Offers((), ())


class ClaimedDevices:
    """Who claims which devices.

    Args:
        offers: what there is.
        claims: all ResourceClaims that may be seen.
        seen: whether slices, classes and claims were read; None as long as there is no answer.
    """

    def __init__(self, offers: Offers = NO_OFFERS, claims: Iterable[ClaimRecord] = (), *, seen: bool | None) -> None:
        self._offers = offers if seen else NO_OFFERS
        self._seen = seen
        self._claims = {(claim.namespace, claim.name): claim for claim in claims}

    def of_pod(self, pod: PodRecord) -> PodRecord:
        """Return a pod of a trial with what its claims ask for among its requests, or why that is not known."""
        claims = pod.resource_claims
        if not claims.made and not claims.missing and not claims.why_unread:
            return pod
        own = self._own(pod)
        if self._seen is None:
            return replace(pod, devices_pending=True)
        if why_unread := claims.why_unread or self._why_unread(own):
            return replace(pod, devices_unread=why_unread)
        if claims.missing or len(own) < len(claims.made):
            return replace(pod, devices_pending=True)
        asked = sum((Counter(dict(claim.classes)) for claim in own), Counter[str]())
        # What a container requests as a resource has a claim, too: it is counted already.
        kinds = {kind: count for name, count in asked.items() if (kind := device_class_kind(name))}
        more = Devices.of({kind: count - pod.requests.devices.count(kind) for kind, count in kinds.items()}).positive()
        return replace(pod, requests=pod.requests + Resources(0.0, 0.0, more))

    def _own(self, pod: PodRecord) -> list[ClaimRecord]:
        found = (self._claims.get((pod.namespace, name)) for name in pod.resource_claims.made)
        return [claim for claim in found if claim is not None and claim.owner == pod.uid]

    def _why_unread(self, claims: Iterable[ClaimRecord]) -> str:
        if not self._seen:
            return NOT_SEEN
        for claim in claims:
            if claim.why_unread:
                return f"its ResourceClaim asks for {claim.why_unread}"
            for name, _ in claim.classes:
                if why_not := self._offers.why_uncounted(name):
                    return why_not
        return ""

    def with_devices(self, nodes: Iterable[NodeRecord]) -> list[NodeRecord]:
        """Return nodes with all devices that are offered there, held or not."""
        return [self._offers.with_devices(node) for node in nodes]

    def held_by_others(self, trial_pods: Iterable[PodRecord], others: Iterable[OtherPod]) -> list[OtherPod]:
        """Return what is requested of nodes but by the pods of trials: by ``others``, and by claims.

        Args:
            trial_pods: the pods of trials, as ``of_pod`` returns them. Their own claims are counted with them.
            others: all other pods. What they request of a DeviceClass is in their claims.
        """
        own = self._kinds_of_own(trial_pods)
        holders = {given: key for key, claim in self._claims.items() for given in claim.given}
        held: dict[str, Counter[str]] = {}
        for given, key in holders.items():
            if (place := self._offers.places.get(given)) is not None:
                kinds = own.get(key, frozenset())
                held.setdefault(place.node, Counter()).update(kind for kind in place.kinds if kind not in kinds)
        by_claims = (OtherPod("", node, Resources(0.0, 0.0, Devices.of(counts))) for node, counts in held.items())
        return [*map(_without_classes, others), *(one for one in by_claims if one.requests.devices)]

    def _kinds_of_own(self, trial_pods: Iterable[PodRecord]) -> Mapping[tuple[str, str], frozenset[str]]:
        """Return the kinds that pods of trials count for by themselves, by their claims."""
        return {
            (pod.namespace, claim.name): pod.requests.devices.kinds()
            for pod in trial_pods
            if pod.resource_claims.made and not (pod.over or pod.devices_unread or pod.devices_pending)
            for claim in self._own(pod)
        }


def _without_classes(pod: OtherPod) -> OtherPod:
    devices = pod.requests.devices
    if not any(is_of_class(kind) for kind, _ in devices.counts):
        return pod
    kept = Devices(tuple((kind, count) for kind, count in devices.counts if not is_of_class(kind)))
    return replace(pod, requests=replace(pod.requests, devices=kept))
