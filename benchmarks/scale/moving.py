"""The workflow-controller's and the scheduler's part in a move: the next attempt's pod, gated, and its binding."""

import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Self

from benchmarks.scale.argo import Attempt, attempt_nodes, pod_of, status_nodes, timestamp
from benchmarks.scale.cluster import RunningSweep, write_status
from benchmarks.scale.manifest import Json
from benchmarks.scale.size import NAMESPACE, Size, node_name
from controllers.worlds.argo.calls.api import MERGE, PODS, KubeApi
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.calls.untrusted import at, text
from controllers.worlds.argo.reading.demands import HOSTNAME
from controllers.worlds.argo.reading.pods import MAIN
from controllers.worlds.argo.reading.watch import Collection, Reflector
from mlflow_hooks.contract import EXIT_MIGRATE

_LOG = logging.getLogger(__name__)
_WRITERS: Final = 2
_STATUS_EVERY_S: Final = 2.0
_LATER: Final = "scale.hera-specon.io/later-attempt"
"""Label of the pods that wait to be bound here; the first attempts are made with their node."""


@dataclass(frozen=True, slots=True)
class _Unbound:
    name: str
    node: str


class Movers:
    """A context manager: inside it, a trainer that is asked to leave (``left``) does, and its trial goes on."""

    def __init__(self, api: KubeApi, size: Size, sweeps: Sequence[RunningSweep]) -> None:
        self._api = api
        self._size = size
        self._sweeps = {sweep.manifest.name: sweep for sweep in sweeps}
        self._history = {a.pod_name: [a] for sweep in sweeps for a in sweep.attempts}
        self._nodes = {s.manifest.name: status_nodes(s.manifest, s.attempts, s.began) for s in sweeps}
        self._changed: set[str] = set()
        self._lock = threading.Lock()
        self._leaving: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._any_node = itertools.cycle(range(size.nodes))
        self._bound: set[str] = set()
        self._unbound = Reflector(api, Collection(PODS.path(NAMESPACE), {"labelSelector": _LATER}), _unbound, _nothing)
        targets = [self._end, *[self._end] * (_WRITERS - 1), self._bind, self._write]
        self._threads = [threading.Thread(target=self._loop, args=(target,), daemon=True) for target in targets]
        self.moves = 0

    def __enter__(self) -> Self:
        self._unbound.start()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._unbound.stop()
        for thread in self._threads:
            thread.join(timeout=10)

    def left(self, pod: str) -> None:
        """Let the trainer in ``pod`` save and leave; returns at once."""
        self._leaving.put(pod)

    def _loop(self, step: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                step()
            except ApiError as error:
                _LOG.warning("a move is held up: %s", error)

    def _end(self) -> None:
        """End one attempt with the code of a move, and make the next one's pod."""
        try:
            name = self._leaving.get(timeout=0.2)
        except queue.Empty:
            return
        with self._lock:
            history = self._history.pop(name, None)
        if history is None:
            return  # asked twice
        self._api.patch(PODS.path(NAMESPACE, name, "status"), {"status": _ended()}, MERGE)
        following = history[-1].next()
        pod = pod_of(following)
        pod["metadata"]["labels"][_LATER] = "yes"
        self._api.create(PODS.path(NAMESPACE), pod)
        self._take([*history, following])

    def _bind(self) -> None:
        """Do the scheduler's work for the pods whose gate is open."""
        for pod in self._unbound.records():
            if pod.name in self._bound:
                continue
            node = pod.node or node_name(next(self._any_node))
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name}, "target": target}
            self._api.create(PODS.path(NAMESPACE, pod.name, "binding"), body)
            self._bound.add(pod.name)
            with self._lock:
                history = self._history[pod.name]
            self._take([*history[:-1], replace(history[-1], node=node)])
            self.moves += 1
        self._stop.wait(0.2)

    def _write(self) -> None:
        """Write the status of every workflow in which something changed, as the workflow-controller does."""
        self._stop.wait(_STATUS_EVERY_S)
        with self._lock:
            changed, self._changed = self._changed, set()
            states = {name: dict(self._nodes[name]) for name in changed}
        for name, nodes in states.items():
            write_status(self._api, self._sweeps[name], nodes)

    def _take(self, history: list[Attempt]) -> None:
        name = history[-1].sweep.name
        nodes = attempt_nodes(history, timestamp(self._sweeps[name].began))
        with self._lock:
            self._history[history[-1].pod_name] = history
            self._nodes[name].update(nodes)
            self._changed.add(name)


def _ended() -> Json:
    now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    over = {"exitCode": EXIT_MIGRATE, "reason": "Error", "startedAt": now, "finishedAt": now}
    codes = {MAIN: over, "wait": {**over, "exitCode": 0, "reason": "Completed"}}
    statuses = [
        {"name": name, "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": {"terminated": state}}
        for name, state in codes.items()
    ]
    return {"phase": "Failed", "containerStatuses": statuses}


def _unbound(pod: Json) -> _Unbound | None:
    if at(pod, "spec", "schedulingGates") or text(pod, "spec", "nodeName"):
        return None
    return _Unbound(text(pod, "metadata", "name"), text(pod, "spec", "nodeSelector", HOSTNAME))


def _nothing() -> None:
    """Nobody waits for these."""
