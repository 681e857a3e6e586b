"""What a world may have to do for a trial next: small orders that say what, to which pod, and why."""

from dataclasses import dataclass

from controllers.worlds.argo.nodes import NodeRecord
from controllers.worlds.argo.pods import PodRecord


@dataclass(frozen=True, slots=True)
class Ask:
    """Send SIGTERM to the trainer, so that it saves and leaves."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class Force:
    """Kill the trainer, which did not leave in its grace period; ``tries`` of it before were in vain."""

    pod: PodRecord
    tries: int


@dataclass(frozen=True, slots=True)
class Open:
    """Take the gate away and bind the pod to ``node``, or leave its place to the scheduler (None)."""

    pod: PodRecord
    node: NodeRecord | None
    reason: str
    moved_from: str = ""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Give a move up: take its mark from ``pod``, where the trial goes on."""

    pod: PodRecord
    reason: str


@dataclass(frozen=True, slots=True)
class Recreate:
    """Delete a pod that can't start on the node it was bound to; Argo makes it anew, gated, as the same attempt.

    ``before`` is the attempt's predecessor, whose mark goes too.
    """

    pod: PodRecord
    before: PodRecord | None
    reason: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a pod for good, without waiting for its kubelet, so that Argo makes the next attempt."""

    pod: PodRecord
    reason: str


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take back the wish for a share that the node can't give."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class Note:
    """Write the trial's tally on its newest pod, so that it outlives the pods before."""

    pod: PodRecord


Deed = Ask | Force | Open | Abandon | Recreate | Remove | Withdraw | Note
