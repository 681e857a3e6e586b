"""Run a try-out: create its workflow, open the gate, resize the pod, read what it says, and remove it all."""

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from controllers.core.labels import GATE_PLACEMENT
from controllers.worlds.argo.calls.api import EVENTS, PODS, STRATEGIC, WORKFLOWS, Json, KubeApi
from controllers.worlds.argo.calls.errors import ApiError, ConflictError, NotFoundError
from controllers.worlds.argo.calls.untrusted import at, epoch, mappings, quantity, text
from controllers.worlds.argo.reading.pods import LABEL_WORKFLOW, MAIN, whole_milli
from hera_specon.cluster.access import Access
from hera_specon.doctor.tryout.report import Resized, TryOut, read_report

Build = Callable[..., Json]
"""Makes the workflow from its ``name`` and whether it is ``gated``."""
_EVERY_S: Final = 0.5
_MOST_WORDS: Final = 400
_ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})
_HOPELESS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}
)
"""Reasons of a waiting container that more waiting does not change."""
_NOT_FOUND: Final = "not found"
_SETTLES_S: Final = 2.0
"""Seconds that the pod's program is given to start and look at its share, before that changes."""
_RESULT_S: Final = 25.0
"""Seconds that Argo is given to see the end of a pod that has ended: it looks at a workflow every ten by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryOutOrder:
    """How to try out.

    Attributes:
        cpu: cores that the pod requests; a resize asks for twice as many.
        gated: whether the user may open the gate, and so the pod may have one.
        resize: whether the user may resize.
        timeout_s: seconds for all of it.
    """

    cpu: float
    gated: bool
    resize: bool
    timeout_s: float


def try_out(access: Access, account: str, build: Build, order: TryOutOrder, tell: Callable[[str], object]) -> TryOut:
    """Try out in the cluster, and remove it all again, whatever comes between.

    Args:
        access: the cluster.
        account: the service account by which Argo's executor in the pod reports.
        build: makes the workflow.
        order: how.
        tell: says to a person what happens.
    """
    attempt = _Attempt(access.api, access.namespace, f"specon-doctor-{secrets.token_hex(4)}", order, tell)
    came_to = TryOut(namespace=access.namespace, account=account)
    began = time.monotonic()
    try:
        attempt.create(build(name=attempt.name, gated=order.gated))
        came_to = attempt.follow(came_to, began + order.timeout_s)
    except ApiError as error:
        came_to = replace(came_to, refused=str(error)[:_MOST_WORDS])
    finally:
        left = attempt.remove()
    return replace(came_to, left=left, seconds=time.monotonic() - began)


class _Attempt:
    """One workflow, from its creation to its end."""

    def __init__(
        self, api: KubeApi, namespace: str, name: str, order: TryOutOrder, tell: Callable[[str], object]
    ) -> None:
        self._api, self._namespace, self.name = api, namespace, name
        self._order, self._tell = order, tell
        self._told = ""
        self._asked_to_resize = False
        self._runs_since: float | None = None

    def create(self, manifest: Json) -> None:
        """Create the workflow.

        Raises:
            ApiError: it was refused.
        """
        self._say("created; waiting for Argo to make its pod")
        self._api.create(WORKFLOWS.path(self._namespace), manifest)

    def follow(self, came_to: TryOut, until: float) -> TryOut:
        """Return what it came to by its end, or by ``until``."""
        ended_at: float | None = None
        while time.monotonic() < until:
            with suppress(ApiError):  # it may answer the next time
                workflow = self._api.get(WORKFLOWS.path(self._namespace, self.name))
                pod = self._pod()
                came_to = self._next(came_to, workflow, pod)
                if came_to.phase in _ENDED or (came_to.waits and _hopeless(came_to.waits)):
                    break
                if _main_ended(pod):
                    ended_at = ended_at or time.monotonic()
                    if time.monotonic() - ended_at > _RESULT_S:
                        break
            time.sleep(_EVERY_S)
        return self._explained(came_to)

    def remove(self) -> str:
        """Remove the workflow, and with it its pod; return what could not be removed, empty where all was."""
        path = WORKFLOWS.path(self._namespace, self.name)
        try:
            uid = text(self._api.get(path), "metadata", "uid")
            self._api.delete(path, uid)
        except (NotFoundError, ConflictError):
            return ""
        except ApiError as error:
            return f"workflow {self.name}: {str(error)[:_MOST_WORDS]}"
        self._say("removed")
        return ""

    def _pod(self) -> Json:
        """Return the workflow's pod as it is, empty without one."""
        query = {"labelSelector": f"{LABEL_WORKFLOW}={self.name}", "limit": "5"}
        page = self._api.get(PODS.path(self._namespace), query)
        return dict(next(mappings(page, "items"), {}))

    def _next(self, before: TryOut, workflow: Json, pod: Json) -> TryOut:
        """Return what it has come to, and do what is next."""
        came_to = replace(
            before,
            phase=text(workflow, "status", "phase", most=40),
            message=_reason_of(workflow, pod),
            pod=before.pod or bool(pod),
            waits=_waits_for(pod) if pod else before.waits,
        )
        gone = text(pod, "metadata", "deletionTimestamp") if pod else before.pod
        if gone and before.resized in {Resized.PENDING, Resized.DONE} and before.report is None:
            came_to = replace(came_to, resized=Resized.DELETED)
        if not pod:
            return came_to
        if any(text(gate, "name") == GATE_PLACEMENT for gate in mappings(pod, "spec", "schedulingGates")):
            self._say("its pod is held by the scheduling gate; opening it")
            try:
                self._patch(pod, {"schedulingGates": [{"$patch": "delete", "name": GATE_PLACEMENT}]})
            except ApiError as error:
                words = f"its scheduling gate could not be opened: {error}"
                return replace(came_to, gated=False, waits=words[:_MOST_WORDS])
            return replace(came_to, gated=True, waits="")
        came_to = self._resized(came_to, pod)
        ended = _main_end(pod)
        if ended is not None:
            said = text(ended, "message")
            report = read_report(said)
            came_to = replace(came_to, waits="", report=report, last_words="" if report else said[-_MOST_WORDS:])
        return came_to

    def _resized(self, came_to: TryOut, pod: Json) -> TryOut:
        if not self._order.resize or not _main_runs(pod):
            return came_to
        wanted = 2 * self._order.cpu
        self._runs_since = self._runs_since or time.monotonic()
        if time.monotonic() - self._runs_since < _SETTLES_S:
            return came_to
        if not self._asked_to_resize:
            self._asked_to_resize = True
            self._say("its pod runs; resizing it in place")
            try:
                requests = {"cpu": f"{whole_milli(wanted)}m"}
                self._patch(pod, {"containers": [{"name": MAIN, "resources": {"requests": requests}}]}, "resize")
            except ApiError as error:
                return replace(came_to, resized=Resized.REFUSED, resize_words=str(error)[:_MOST_WORDS])
            return replace(came_to, resized=Resized.PENDING)
        if came_to.resized in {Resized.REFUSED, Resized.DELETED}:
            return came_to
        for condition in mappings(pod, "status", "conditions"):
            if text(condition, "type") == "PodResizePending" and text(condition, "status") == "True":
                infeasible = text(condition, "reason") == "Infeasible"
                words = text(condition, "message")[:_MOST_WORDS]
                return replace(
                    came_to, resized=Resized.INFEASIBLE if infeasible else Resized.PENDING, resize_words=words
                )
        has = quantity(_main(pod, "containerStatuses"), "resources", "requests", "cpu")
        return replace(came_to, resized=Resized.DONE) if abs(has - wanted) < wanted / 10 else came_to

    def _patch(self, pod: Json, spec: Json, subresource: str | None = None) -> None:
        """Change this very pod.

        Raises:
            ApiError: it was refused.
        """
        path = PODS.path(self._namespace, text(pod, "metadata", "name"), subresource)
        self._api.patch(path, {"metadata": {"uid": text(pod, "metadata", "uid")}, "spec": spec}, STRATEGIC)

    def _explained(self, came_to: TryOut) -> TryOut:
        """Return ``came_to`` with what Kubernetes says of a pod that never ran."""
        if not came_to.waits:
            return came_to
        events: list[Mapping[str, Any]] = []
        with suppress(ApiError):
            query = {"fieldSelector": "type=Warning", "limit": "200"}
            events = [*mappings(self._api.get(EVENTS.path(self._namespace), query), "items")]
        ours = [one for one in events if text(one, "regarding", "name").startswith(self.name)]
        newest = max(ours, key=lambda one: epoch(one, "metadata", "creationTimestamp") or 0.0, default=None)
        note = text(newest, "note")[:_MOST_WORDS]
        return (
            replace(came_to, waits=f"{came_to.waits}: {note}"[:_MOST_WORDS])
            if note and note not in came_to.waits
            else came_to
        )

    def _say(self, what: str) -> None:
        if what != self._told:
            self._told = what
            self._tell(f"try-out {self.name}: {what}")


def _reason_of(workflow: Json, pod: Json) -> str:
    """Return why Argo thinks that it failed: the workflow's reason, its nodes', and what its helper in the pod says."""
    nodes = at(workflow, "status", "nodes")
    told = [text(workflow, "status", "message")]
    told += [text(node, "message") for node in (nodes.values() if isinstance(nodes, Mapping) else ())]
    told += [
        text(status, "state", "terminated", "message")
        for status in mappings(pod, "status", "containerStatuses")
        if status.get("name") != MAIN and at(status, "state", "terminated", "exitCode")
    ]
    return "; ".join(dict.fromkeys(one[:_MOST_WORDS] for one in told if one))[: 2 * _MOST_WORDS]


def _waits_for(pod: Json) -> str:
    """Return what the pod waits for before its program runs; empty once that runs."""
    main = _main(pod, "containerStatuses")
    if at(main, "state", "running") is not None or at(main, "state", "terminated") is not None:
        return ""
    for condition in mappings(pod, "status", "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "status") != "True":
            return f"{text(condition, 'reason', most=100)}: {text(condition, 'message')}"[:_MOST_WORDS]
    for kind in ("initContainerStatuses", "containerStatuses"):
        for status in mappings(pod, "status", kind):
            waiting = at(status, "state", "waiting")
            if reason := text(waiting, "reason", most=100):
                return f"{reason}: {text(waiting, 'message')}"[:_MOST_WORDS].removesuffix(": ")
    return text(pod, "status", "phase", most=40) or "its pod has no status"


def _hopeless(waits: str) -> bool:
    """Return whether more waiting does not help the pod."""
    reason = waits.partition(":")[0]
    return reason in _HOPELESS or (
        reason == "Unschedulable" and _NOT_FOUND in waits and "persistentvolumeclaim" in waits
    )


def _main(pod: Json, kind: str) -> Mapping[str, Any]:
    return next((one for one in mappings(pod, "status", kind) if one.get("name") == MAIN), {})


def _main_runs(pod: Json) -> bool:
    return at(_main(pod, "containerStatuses"), "state", "running") is not None


def _main_end(pod: Json) -> Mapping[str, Any] | None:
    ended = at(_main(pod, "containerStatuses"), "state", "terminated")
    return ended if isinstance(ended, Mapping) else None


def _main_ended(pod: Json) -> bool:
    return _main_end(pod) is not None
