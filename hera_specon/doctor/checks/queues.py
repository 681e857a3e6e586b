"""Kueue: a pod that it admitted is deleted once it is resized, unless it belongs to a group."""

from collections.abc import Iterator
from typing import Final

from controllers.core.kueue import LABEL_GROUP
from controllers.worlds.argo.calls.untrusted import text
from hera_specon.doctor.facts import QueueFacts, Unread, Why
from hera_specon.doctor.findings import Finding, ok, unknown, warning
from hera_specon.doctor.sweep_needs import SweepNeeds

_DEFAULT: Final = "default"
"""A LocalQueue of this name takes pods that name none."""
_GROUP: Final = (
    "Shares of such trials are left alone. To let them change, name the queue in Sweep(queue=...), or make each pod a "
    f'group of one (label {LABEL_GROUP}: "{{{{pod.name}}}}", annotations kueue.x-k8s.io/pod-group-total-count: "1" and '
    'kueue.x-k8s.io/retriable-in-group: "false").'
)


def check_queues(facts: QueueFacts, needs: SweepNeeds | None) -> Iterator[Finding]:
    """Yield what Kueue does to the sweep's pods."""
    subject, show = "Kueue", f"kubectl get localqueues.kueue.x-k8s.io -n {facts.name}"
    if needs is not None and needs.queue and needs.grouped:
        yield ok(
            subject, "each pod is a group, which survives a resize: shares fall, and rise to what it was admitted with"
        )
        return
    if needs is not None and needs.queue:
        yield warning(
            subject, f"the sweep asks for queue {needs.queue!r}: Kueue deletes a pod that is resized", _GROUP, show
        )
        return
    if isinstance(facts.queues, Unread):
        if facts.queues.why is Why.MISSING:
            yield ok(subject, "not installed")
        else:
            advice = "Ask the platform team whether Kueue manages this namespace: it deletes pods that are resized."
            yield unknown(subject, facts.queues.told, advice, show)
        return
    names = [text(queue, "metadata", "name", most=253) for queue in facts.queues]
    if _DEFAULT in names:
        yield warning(subject, "the namespace has a default queue: Kueue deletes a pod that is resized", _GROUP, show)
    elif names:
        yield ok(subject, f"{', '.join(names[:5])}: the sweep asks for none, so its pods are left alone")
    else:
        yield ok(subject, "the namespace has no queue")
