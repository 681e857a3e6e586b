"""Notices that a node goes: the taints, conditions and deletions by which a cluster says so.

Autoscalers and those who drain a node give none of its deadlines: they evict its pods at once, and each has its own
grace period then. Spot machines are gone after what their cloud gives. A cordon is no notice, nor is a taint that says
that a node may be removed some time (DeletionCandidateOfClusterAutoscaler, rebalance-recommendation).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import epoch, mappings, number, text

DRAIN_S: Final = 30.0
"""Seconds that the pods of a node have that is drained: the grace period of one that asks for none."""
AWS_SPOT_S: Final = 120.0
AZURE_SPOT_S: Final = 30.0
GOOGLE_SPOT_S: Final = 15.0
"""Of the 30 s that a spot machine of Google's has, its kubelet keeps half for the system's own pods."""
GONE: Final = 0.0
MOST_NOTICES: Final = 8
_AUTOSCALER: Final = "ToBeDeletedByClusterAutoscaler"
_TAINTS: Final[Mapping[str, float]] = {
    _AUTOSCALER: DRAIN_S,
    "karpenter.sh/disrupted": DRAIN_S,
    "karpenter.sh/disruption": DRAIN_S,  # before Karpenter 1.0
    "aws-node-termination-handler/spot-itn": AWS_SPOT_S,
    "aws-node-termination-handler/scheduled-maintenance": DRAIN_S,
    "aws-node-termination-handler/asg-lifecycle-termination": DRAIN_S,
    "cloud.google.com/impending-node-termination": GOOGLE_SPOT_S,
    "remediator.kubernetes.azure.com/unschedulable": DRAIN_S,
    "remediator.aks.microsoft.com/unschedulable": DRAIN_S,  # before AKS of 2025
    "node.kubernetes.io/out-of-service": GONE,
    "node.cloudprovider.kubernetes.io/shutdown": GONE,
}
_DELETED: Final = "deletionTimestamp"
_CONDITIONS: Final = ("VMEventScheduled", "PreemptionScheduled")
"""Of Azure: the first tells of any event by its message, the second of a spot machine that is taken away."""
_ENDS_PODS: Final = re.compile(r"\b(Preempt|Terminate|Redeploy|Reboot)", re.IGNORECASE)
"""Events of Azure after which what runs on the machine is gone. It is only paused for a freeze."""
_DATE: Final = re.compile(r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT")
_SHUTS_DOWN: Final = "node is shutting down"
"""How a kubelet says that its machine was told to shut down: on Google's, often all that tells of it."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that says that a node goes.

    Its pods have ``within_s`` seconds from ``given_at``, which is None where nobody says when that was, or until
    ``told``, None where it tells no deadline. Both are Unix seconds, as somebody wrote them.
    """

    kind: str
    within_s: float
    given_at: float | None = None
    told: float | None = None


def notices_of(node: Json) -> tuple[Notice, ...]:
    """Return what says that a node goes, as much as is read; nothing of a node that stays."""
    found = [*_of_deletion(node), *_of_taints(node), *_of_conditions(node)]
    return tuple(found[:MOST_NOTICES])


def _of_deletion(node: Json) -> Iterator[Notice]:
    if (deleted := epoch(node, "metadata", _DELETED)) is not None:
        yield Notice(_DELETED, DRAIN_S, deleted)


def _of_taints(node: Json) -> Iterator[Notice]:
    for taint in mappings(node, "spec", "taints"):
        key = text(taint, "key")
        if key in _TAINTS:
            given = number(text(taint, "value")) if key == _AUTOSCALER else None
            yield Notice(key, _TAINTS[key], given or epoch(taint, "timeAdded"))


def _of_conditions(node: Json) -> Iterator[Notice]:
    for condition in mappings(node, "status", "conditions"):
        kind, holds = text(condition, "type"), text(condition, "status") == "True"
        message, since = text(condition, "message"), epoch(condition, "lastTransitionTime")
        if kind == "Ready" and not holds and _SHUTS_DOWN in message:
            yield Notice(kind, GOOGLE_SPOT_S, since)
        elif kind in _CONDITIONS and holds and (kind != _CONDITIONS[0] or _ENDS_PODS.search(message)):
            yield Notice(kind, AZURE_SPOT_S, since, _date_in(message))


def _date_in(message: str) -> float | None:
    written = _DATE.search(message)
    try:
        return None if written is None else parsedate_to_datetime(written[0]).timestamp()
    except (ValueError, OverflowError):
        return None
