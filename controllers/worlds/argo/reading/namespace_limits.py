"""Small records of what bounds the pods of a namespace: ResourceQuota and LimitRange. Tenants may write both."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import at, mappings, quantity, text

PODS: Final = "pods"
CPU: Final = "requests.cpu"
MEMORY: Final = "requests.memory"
REQUESTS: Final = "requests."
_SAME: Final = {"cpu": CPU, "memory": MEMORY, "count/pods": PODS}
"""Other names that a quota has for the same."""
_OF_TRIALS: Final = frozenset({"NotTerminating", "NotBestEffort"})
"""Scopes of quotas that count trials' pods: these request CPU, and have no deadline of Kubernetes' as a rule."""
_MOST_NAME: Final = 253
_MOST_RESOURCES: Final = 64
_MOST_BOUNDS: Final = 32


@dataclass(frozen=True, slots=True)
class QuotaRecord:
    """A ResourceQuota that counts trials' pods: how much is ``left`` of each resource, below 0 where more is used.

    Resources are named as quotas name them; CPU is in cores, memory in bytes. The API server adds to what is used while
    it lets a pod or a share through; it takes away what a pod leaves seconds later.
    """

    namespace: str
    name: str
    left: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class RangeRecord:
    """A LimitRange: the ``least`` and the ``most`` cores that a container may request, and a pod.

    A container's limit may be ``ratio`` times its request at most.
    """

    namespace: str
    name: str
    least: float = 0.0
    most: float = math.inf
    ratio: float = math.inf
    pod_least: float = 0.0
    pod_most: float = math.inf


def project_quota(quota: Json) -> QuotaRecord | None:
    """Return the record of a ResourceQuota; None where it counts no trials' pods, or Kubernetes has not counted yet.

    Where nobody can tell by its scopes, the API server says what it refuses.
    """
    scopes = [text({"scope": scope}, "scope") for scope in _listed(at(quota, "spec", "scopes"))]
    selected = mappings(quota, "spec", "scopeSelector", "matchExpressions")
    scopes += [text(one, "scopeName") if text(one, "operator") == "Exists" else "" for one in selected]
    if not _OF_TRIALS.issuperset(scopes):
        return None
    hard = at(quota, "status", "hard")
    names = [name for name in (hard if isinstance(hard, Mapping) else ()) if isinstance(name, str)]
    left: dict[str, float] = {}
    for name in sorted(names)[:_MOST_RESOURCES]:
        known = _SAME.get(name, name)
        if known == PODS or known.startswith(REQUESTS):
            amount = quantity(hard, name) - quantity(quota, "status", "used", name)
            left[known] = min(amount, left.get(known, math.inf))
    namespace, name = (text(quota, "metadata", part, most=_MOST_NAME) for part in ("namespace", "name"))
    return QuotaRecord(namespace, name, tuple(sorted(left.items()))) if left else None


def _listed(value: object) -> list[object]:
    return value[:_MOST_RESOURCES] if isinstance(value, list) else []


def project_range(limit_range: Json) -> RangeRecord | None:
    """Return the record of a LimitRange, None where it bounds no requests of CPU."""
    items = list(mappings(limit_range, "spec", "limits"))[:_MOST_BOUNDS]
    containers, pods = ([item for item in items if text(item, "type") == kind] for kind in ("Container", "Pod"))

    def least(of: list[Mapping[str, object]]) -> float:
        return max((quantity(item, "min", "cpu") for item in of), default=0.0)

    def most(of: list[Mapping[str, object]], bound: str = "max") -> float:
        return min((amount for item in of if (amount := quantity(item, bound, "cpu"))), default=math.inf)

    namespace, name = (text(limit_range, "metadata", part, most=_MOST_NAME) for part in ("namespace", "name"))
    record = RangeRecord(
        namespace,
        name,
        least=least(containers),
        most=most(containers),
        ratio=most(containers, "maxLimitRequestRatio"),
        pod_least=least(pods),
        pod_most=most(pods),
    )
    return None if record == RangeRecord(namespace, name) else record
