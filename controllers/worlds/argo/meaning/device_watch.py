"""The watches of what drivers offer and of what is claimed, and the devices that they come to."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from controllers.worlds.argo.calls.api import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES, Json
from controllers.worlds.argo.meaning.claimed_devices import NO_OFFERS, ClaimedDevices, Offers
from controllers.worlds.argo.reading.pods import PodRecord, Resources
from controllers.worlds.argo.reading.resource_claims import NO_CLAIMS, ClaimRecord, project_claim
from controllers.worlds.argo.reading.resource_slices import ClassRecord, SliceRecord, project_class, project_slice
from controllers.worlds.argo.reading.watch import Collection, Reflector

_PAGE: Final = 100
_MOST_SLICES: Final = 60_000
_MOST_CLASSES: Final = 1_000
_MOST_CLAIMS: Final = 20_000
"""Kilobytes, roughly, of all slices; classes; and kilobytes of the claims of a namespace."""
Watch = Callable[[Collection, Callable[[Json], Any], Callable[[Any], int]], Reflector[Any]]


class DeviceWatch:
    """Watches, where this account may: a cluster without such devices, or one that shows none, is as good as any.

    Args:
        namespaces: whose claims are to be seen in any case; None for all.
        watch: makes a watch.
    """

    def __init__(self, namespaces: Sequence[str | None], watch: Watch) -> None:
        def of(path: str, project: Callable[[Json], Any], most: int, query: dict[str, str]) -> Reflector[Any]:
            collection = Collection(path, query, _PAGE, expendable=True, most=most)
            return watch(collection, project, lambda record: getattr(record, "weight", 1))

        self._slices: Reflector[SliceRecord] = of(RESOURCE_SLICES.path(), project_slice, _MOST_SLICES, {})
        self._classes: Reflector[ClassRecord] = of(DEVICE_CLASSES.path(), project_class, _MOST_CLASSES, {})
        self._claims: list[Reflector[ClaimRecord]] = [
            of(RESOURCE_CLAIMS.path(namespace), project_claim, _MOST_CLAIMS, {}) for namespace in namespaces
        ]
        self._elsewhere: list[Reflector[ClaimRecord]] = []
        if None not in namespaces:
            query = {"fieldSelector": ",".join(f"metadata.namespace!={namespace}" for namespace in namespaces)}
            self._elsewhere = [of(RESOURCE_CLAIMS.path(), project_claim, _MOST_CLAIMS, query)]
        self._lock = threading.Lock()
        self._offers, self._offers_version = NO_OFFERS, -1
        self._devices, self._version = ClaimedDevices(seen=None), -1
        self._asked: dict[str, Resources] = {}
        """What each pod with claims requests, by uid: Kubernetes deletes the claims of a pod as soon as it is over."""

    @property
    def reflectors(self) -> Sequence[Reflector[Any]]:
        """All watches."""
        return (self._slices, self._classes, *self._claims, *self._elsewhere)

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        return sum(reflector.version for reflector in self.reflectors)

    def of_pods(self, pods: Sequence[PodRecord]) -> list[PodRecord]:
        """Return the pods of trials, all of them, with what their claims ask for; one that is over as it was before."""
        devices, asked = self.devices(), self._asked
        found = [devices.of_pod(pod) for pod in pods]
        kept = [
            replace(pod, requests=asked[pod.uid], devices_pending=False)
            if pod.over and pod.devices_pending and pod.uid in asked
            else pod
            for pod in found
        ]
        claiming = (pod for pod in kept if pod.resource_claims is not NO_CLAIMS)
        self._asked = {pod.uid: pod.requests for pod in claiming if not (pod.devices_pending or pod.devices_unread)}
        return kept

    def devices(self) -> ClaimedDevices:
        """Return who claims which devices, as far as that is seen; worked out again after a change."""
        with self._lock:
            version = self.version
            if version != self._version:
                offered = self._slices.version + self._classes.version
                if offered != self._offers_version:
                    self._offers = Offers(self._slices.records(), self._classes.records())
                    self._offers_version = offered
                claims = [record for watch in (*self._claims, *self._elsewhere) for record in watch.records()]
                needed: tuple[Reflector[Any], ...] = (self._slices, self._classes, *self._claims)
                seen = all(one.synced and not one.absent and one.refused is None for one in needed)
                known = seen if all(one.answered for one in needed) else None
                self._devices, self._version = ClaimedDevices(self._offers, claims, seen=known), version
            return self._devices
