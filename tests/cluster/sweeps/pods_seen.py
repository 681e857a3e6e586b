"""Every pod of a namespace's trials as the API server told of it, also of those that are gone by now."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from urllib3.exceptions import HTTPError

from controllers.core import labels
from controllers.worlds.argo.calls.api import PODS, KubeApi
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.calls.untrusted import at, epoch, mappings, text

Json = dict[str, Any]


@dataclass
class SeenPod:
    """One attempt of a trial, as it was told last. Times are Unix seconds.

    ``moments`` tells when something was first seen of it (by this machine's clock), ``shares`` each CPU request that
    its main container was seen to have.
    """

    uid: str
    trial: str
    last: Json = field(default_factory=dict)
    moments: dict[str, float] = field(default_factory=dict)
    shares: list[str] = field(default_factory=list)
    deleted: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return text(self.last, "metadata", "name")

    @property
    def node(self) -> str:
        """Node that it is bound to, empty while there is none."""
        return text(self.last, "spec", "nodeName")

    @property
    def created_at(self) -> float:
        """When the API server made it, in whole seconds."""
        return epoch(at(self.last, "metadata", "creationTimestamp")) or 0.0

    @property
    def gated(self) -> bool:
        """Whether it waits for somebody to choose its node."""
        return bool(at(self.last, "spec", "schedulingGates"))

    @property
    def running(self) -> bool:
        """Whether its main container runs, as far as is known."""
        return not self.deleted and "running" in self._main_state

    @property
    def exit_code(self) -> int | None:
        """Exit code of its main container, None while it has none."""
        ended = self._main_state.get("terminated")
        return None if ended is None else int(ended["exitCode"])

    @property
    def given_up(self) -> bool:
        """Whether somebody deleted it, which Argo does not do in these sweeps: Kubernetes, with its node."""
        return "deleted" in self.moments

    @property
    def container_id(self) -> str:
        """Id of its main container, as the container runtime has it."""
        return text(self._main_status, "containerID").removeprefix("containerd://")

    @property
    def phase(self) -> str:
        """Its phase."""
        return text(self.last, "status", "phase")

    def annotation(self, name: str) -> str:
        """Return one of its annotations, empty where it has none of that name."""
        return text(self.last, "metadata", "annotations", name)

    @property
    def _main_state(self) -> Mapping[str, Any]:
        return dict(self._main_status.get("state") or {})

    @property
    def _main_status(self) -> Mapping[str, Any]:
        statuses = mappings(self.last, "status", "containerStatuses")
        return next((status for status in statuses if status.get("name") == "main"), {})

    def __str__(self) -> str:
        """Tell what became of it, and when."""
        when = ", ".join(
            f"{name} {time.strftime('%H:%M:%S', time.gmtime(seen))}" for name, seen in self.moments.items()
        )
        return f"{self.name} on {self.node or 'no node'}: {self.phase}, exit code {self.exit_code} ({when})"

    def note(self, told: Json, now: float) -> None:
        """Take in what was told at ``now``."""
        self.last = told
        if not self.gated:
            self.moments.setdefault("ungated", now)
        for name, seen in (
            ("created", True),
            ("marked", bool(self.annotation(labels.ANNOTATION_MOVE_TO))),
            ("scheduled", bool(self.node)),
            ("started", bool(self._main_state.keys() & {"running", "terminated"})),
            ("deleted", at(told, "metadata", "deletionTimestamp") is not None),
            ("ended", "terminated" in self._main_state),
        ):
            if seen:
                self.moments.setdefault(name, now)
        share = self._share
        if share and (not self.shares or self.shares[-1] != share):
            self.shares.append(share)

    @property
    def _share(self) -> str:
        return text(self._main_status, "resources", "requests", "cpu") if "running" in self._main_state else ""


class PodsSeen:
    """Watches the trials' pods of one namespace on a thread of its own, over restarts of the API server."""

    def __init__(self, api: KubeApi, namespace: str) -> None:
        self._api = api
        self._path = PODS.path(namespace)
        self._pods: dict[str, SeenPod] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pods-seen", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the watch."""
        self._stop.set()
        self._thread.join(timeout=10)

    def all(self, workflow: str) -> list[SeenPod]:
        """Return the pods of a workflow's trials in the order in which they were made."""
        with self._lock:
            found = [pod for pod in self._pods.values() if _workflow_of(pod) == workflow]
        return sorted(found, key=lambda pod: (pod.created_at, pod.moments["created"]))

    def everywhere(self) -> list[SeenPod]:
        """Return the pods of all workflows of the namespace."""
        with self._lock:
            return list(self._pods.values())

    def of(self, workflow: str, trial: str) -> list[SeenPod]:
        """Return the attempts of one trial (such as ``t000``), oldest first."""
        return [pod for pod in self.all(workflow) if pod.trial == trial]

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._watch(self._list())
            except (ApiError, HTTPError, OSError, ValueError):
                self._stop.wait(0.5)

    def _list(self) -> str:
        found = self._api.get(self._path, {"labelSelector": labels.LABEL_TRIAL})
        now = time.time()
        present = {str(pod["metadata"]["uid"]) for pod in found["items"]}
        for pod in found["items"]:
            self._take(pod, now)
        with self._lock:
            for uid, seen in self._pods.items():
                seen.deleted = seen.deleted or uid not in present
        return text(found, "metadata", "resourceVersion")

    def _watch(self, version: str) -> None:
        query = {"labelSelector": labels.LABEL_TRIAL, "resourceVersion": version, "timeoutSeconds": "20"}
        response = self._api.open_watch(self._path, query, read_s=25)
        try:
            for line in _lines(response):
                if self._stop.is_set():
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                self._take(event["object"], time.time(), deleted=event["type"] == "DELETED")
        finally:
            response.close()

    def _take(self, pod: Json, now: float, *, deleted: bool = False) -> None:
        uid, trial = str(pod["metadata"]["uid"]), str(pod["metadata"]["labels"][labels.LABEL_TRIAL])
        with self._lock:
            seen = self._pods.setdefault(uid, SeenPod(uid, trial))
            seen.note(pod, now)
            seen.deleted = deleted


def _workflow_of(pod: SeenPod) -> str:
    return text(pod.last, "metadata", "labels", "workflows.argoproj.io/workflow")


def _lines(response: Any) -> Any:  # noqa: ANN401 - urllib3's own
    left = b""
    for piece in response.stream(2**16):
        *whole, left = (left + piece).split(b"\n")
        yield from whole
