"""How Kueue holds a trial's pod. Whatever a pod says of itself is untrusted."""

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.core import kueue
from controllers.worlds.argo.calls.api import Json
from controllers.worlds.argo.calls.untrusted import mappings, text

_MOST_NAME = 253


@dataclass(frozen=True, slots=True)
class Queueing:
    """How Kueue holds a pod.

    ``queue`` is the name of its queue, empty where it names none. ``alone`` tells that it is a group by itself, so that
    Kueue lets its share change; ``waits`` that Kueue has not admitted it yet.
    """

    queue: str
    alone: bool
    waits: bool

    @property
    def why_no_shares(self) -> str | None:
        """Why its share must never change, None where it may."""
        if self.alone:
            return None
        where = f"queue {self.queue}" if self.queue else "a queue"
        return (
            f"Kueue, which holds the pod in {where}, deletes a pod whose share changes; "
            "submit the sweep again with Sweep(queue=...), whose pods are groups of one"
        )


def queueing_of(pod: Json, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Queueing | None:
    """Return how Kueue holds a pod with these ``labels`` and ``annotations``, None where it does not."""
    waits = any(text(gate, "name").startswith(kueue.DOMAIN) for gate in mappings(pod, "spec", "schedulingGates"))
    queue = labels.get(kueue.LABEL_QUEUE, "")[:_MOST_NAME]
    if not (waits or queue or labels.get(kueue.LABEL_MANAGED) == "true"):
        return None
    alone = bool(labels.get(kueue.LABEL_GROUP)) and annotations.get(kueue.ANNOTATION_GROUP_SIZE) == kueue.ALONE
    return Queueing(queue, alone, waits)
