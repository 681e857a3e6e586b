"""Kubernetes Events on pods that the controller acts upon, where ``kubectl describe pod`` shows them."""

import logging
import os
import queue
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol
from uuid import uuid4

from controllers.worlds.argo.calls.api import EVENTS, Json, KubeApi
from controllers.worlds.argo.calls.errors import ApiError, NotFoundError
from controllers.worlds.argo.reading.pods import PodRecord

_LOG = logging.getLogger(__name__)
_CONTROLLER: Final = "hera-specon.io/controller"
_MOST_NOTE = 1000
_WAITING = 1000
_SAME_FOR_S = 600.0
_MOST_SERIES = 4096


class EventSink(Protocol):
    """Tells people what was done to a pod."""

    def tell(self, pod: PodRecord, reason: str, note: str, *, warning: bool = False) -> None:
        """Tell, in one CamelCase word and a sentence, what was done to ``pod``. Never waits, never raises."""
        ...


@dataclass
class _Series:
    name: str
    count: int
    last_at: float


class EventWriter:
    """Writes Events (events.k8s.io/v1) on a thread of its own; repeated ones are counted, too many are dropped."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._queue: queue.Queue[tuple[PodRecord, str, str, bool] | None] = queue.Queue(_WAITING)
        self._series: dict[tuple[str, str, str], _Series] = {}
        self._complained = False
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def tell(self, pod: PodRecord, reason: str, note: str, *, warning: bool = False) -> None:
        """Queue an Event; dropped where a thousand are waiting."""
        try:
            self._queue.put_nowait((pod, reason, note[:_MOST_NOTE], warning))
        except queue.Full:
            self._complain("too many are waiting")

    def close(self) -> None:
        """Write what is waiting, for five seconds at most."""
        self._queue.put(None)
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while (told := self._queue.get()) is not None:
            try:
                self._write(*told)
            except ApiError as error:
                self._complain(str(error))

    def _complain(self, why: str) -> None:
        if not self._complained:
            self._complained = True
            _LOG.warning("events are not written: %s", why)

    def _write(self, pod: PodRecord, reason: str, note: str, warning: bool) -> None:  # noqa: FBT001 - off the queue
        key = (pod.uid, reason, note)
        series = self._series.get(key)
        if series is not None and time.monotonic() - series.last_at < _SAME_FOR_S and self._repeat(pod, series):
            return
        if len(self._series) >= _MOST_SERIES:
            self._series.clear()  # costs an Event too many here and there, and keeps the memory bounded
        event = _event(pod, reason, note, "Warning" if warning else "Normal")
        self._api.create(EVENTS.path(pod.namespace), event)
        self._series[key] = _Series(event["metadata"]["name"], 1, time.monotonic())

    def _repeat(self, pod: PodRecord, series: _Series) -> bool:
        series.count += 1
        series.last_at = time.monotonic()
        body = {"series": {"count": series.count, "lastObservedTime": _now()}}
        try:
            self._api.patch(EVENTS.path(pod.namespace, series.name), body)
        except NotFoundError:
            return False
        return True


def _event(pod: PodRecord, reason: str, note: str, kind: str) -> Json:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{pod.name[:200]}.{uuid4().hex[:16]}", "namespace": pod.namespace},
        "eventTime": _now(),
        "reportingController": _CONTROLLER,
        "reportingInstance": os.uname().nodename[:128],
        "action": reason,
        "reason": reason,
        "type": kind,
        "note": note,
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        },
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
