"""What the quotas of a namespace leave for a campaign's trials, and which shares its LimitRanges allow. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from controllers.worlds.argo.reading.namespace_limits import CPU, MEMORY, PODS, REQUESTS, QuotaRecord, RangeRecord
from controllers.worlds.argo.reading.pods import NO_RESOURCES, PodRecord, Resources

_SLACK: Final = 1e-9


class NamespaceRoom:
    """What the quotas leave, less what one campaign has reserved.

    Kubernetes counts a pod from when it is made, whether it waits at a gate or runs, until it has ended. So a place
    takes nothing of a quota. The attempt after a move starts with the request of old: where its trial had been given
    less, it takes more than it left.

    Args:
        quotas: Those that count trials' pods.
        ranges: Every LimitRange.
    """

    def __init__(self, quotas: Sequence[QuotaRecord] = (), ranges: Sequence[RangeRecord] = ()) -> None:
        self._quotas = quotas
        self._ranges = ranges
        self._reserved, self._pods_reserved = NO_RESOURCES, 0

    @property
    def counts(self) -> bool:
        """Whether there is a quota, so that what trials are about to request matters."""
        return bool(self._quotas)

    def reserve(self, more: Resources, pods: int = 0) -> None:
        """Take what trials are about to request, and the ``pods`` that they are about to get, out of the room."""
        self._reserved += more.positive()
        self._pods_reserved += max(0, pods)

    def why_not(self, more: Resources, pods: int = 0) -> str | None:
        """Return why the namespace has no room for ``more`` requests in so many further ``pods``; None where it has."""
        wanted = _by_name(more, pods)
        for quota, left in self._left():
            for name, amount in wanted.items():
                if amount > _SLACK and amount > left.get(name, math.inf) + _SLACK:
                    return f"quota {quota} has {max(0.0, left[name]):g} {name} left, and this takes {amount:g} more"
        return None

    def rise_left(self) -> tuple[float, str]:
        """Return how many more cores running pods may request together, and the quota that says so."""
        rises = ((max(0.0, left[CPU]), quota) for quota, left in self._left() if CPU in left)
        return min(rises, default=(math.inf, ""))

    def least_share(self, worker: PodRecord) -> float:
        """Return the least cores that the ranges let a worker's main container request."""
        beside, limit = _beside(worker), worker.share.limit or 0.0
        least = [max(one.least, one.pod_least - beside, limit / one.ratio) for one in self._ranges]
        return max(least, default=0.0)

    def most_share(self, worker: PodRecord) -> tuple[float, str]:
        """Return the most that they let it request, and the LimitRange that says so."""
        beside = _beside(worker)
        most = ((min(one.most, one.pod_most - beside), one.name) for one in self._ranges)
        return min(most, default=(math.inf, ""))

    def _left(self) -> Iterable[tuple[str, Mapping[str, float]]]:
        reserved = _by_name(self._reserved, self._pods_reserved)
        for quota in self._quotas:
            yield quota.name, {name: amount - reserved.get(name, 0.0) for name, amount in quota.left}


def _by_name(requests: Resources, pods: int) -> dict[str, float]:
    devices = {f"{REQUESTS}{kind}": float(count) for kind, count in requests.devices.counts}
    return {CPU: requests.cpu, MEMORY: requests.memory, PODS: float(pods), **devices}


def _beside(worker: PodRecord) -> float:
    """Return the cores that a pod requests beside those of its main container."""
    return max(0.0, worker.requests.cpu - max(worker.share.wanted, worker.share.has))
