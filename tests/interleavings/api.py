"""Access to an API server that pauses before and after each call; the objects are those of the fake server."""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import cast

import urllib3
from kubernetes import client

from controllers.worlds.argo.calls.api import _KINDS, Json, KubeApi
from controllers.worlds.argo.calls.errors import ApiError, GoneError, UnavailableError
from controllers.worlds.argo.calls.untrusted import at
from controllers.worlds.argo.reading.pods import PodRecord
from tests.controllers.worlds.argo.fake_api import Store, answered, event_of, parts_of
from tests.interleavings.checks import Checks
from tests.interleavings.perils import Perils
from tests.interleavings.training import Training


class SteppedApi(KubeApi):
    """Calls the fake server's store, step by step.

    Args:
        training: the cluster, in whose pods commands are run.
        perils: what may go wrong.
        checks: are shown each change.
    """

    def __init__(self, training: Training, perils: Perils, checks: Checks) -> None:
        super().__init__(client.Configuration())
        self._training = training
        self._store = training.store
        self._perils = perils
        self._checks = checks

    def open_watch(self, path: str, query: Mapping[str, str], read_s: float) -> urllib3.BaseHTTPResponse:
        """Open a watch; now and then the version is too old."""
        del read_s
        self._perils.read(f"opens a watch of {path}", GoneError)
        return cast("urllib3.BaseHTTPResponse", SteppedWatch(self._store, self._perils, path, query))

    def ask(self, path: str, body: Json) -> Json:
        """Answer what this account may do: all, or neither exec nor evict."""
        del body
        self._perils.read(f"asks {path}", UnavailableError)
        return {"status": {"allowed": self._training.grants_all}}

    def execute(self, _: KubeApi, pod: PodRecord, command: tuple[str, ...]) -> None:
        """Run a command in a pod, in place of ``pod_changes.execute``."""
        self.check_may_write()
        what, kills = f"exec of {command[0]} in {pod.name}", command[0] == "/bin/sh"
        with self._checks.changing(pod.uid, what):
            # Twice in vain, and the controller would rightly remove a pod that runs.
            self._perils.write(what, UnavailableError, sure=kills)
            self._training.signal(pod, kills=kills)
            self._perils.write(f"{what}, done", UnavailableError)

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: Json | None = None,
        kind: str = "application/json",
        changes: bool = True,
    ) -> Json:
        del kind, changes
        call = partial(self._answer, method, path, dict(query or {}), body)
        if method == "GET":
            self._perils.read(f"GET {path}", UnavailableError)
            return call()
        self.check_may_write()
        collection, _, _, _ = parts_of(path)
        named = at(body, "metadata", "uid") or at(body, "deleteOptions", "preconditions", "uid")
        what = f"{method} {path}"
        with self._checks.changing(str(named) if collection == "pods" else "", what):
            self._perils.write(what, UnavailableError)
            before = len(self._store.changes)
            answer = call()
            for change in self._store.changes[before:]:
                self._checks.wrote(change)
            self._perils.write(f"{what}, done", UnavailableError)
        return answer

    def _answer(self, method: str, path: str, query: Mapping[str, str], body: Json | None) -> Json:
        sent = None if body is None else json.loads(json.dumps(body))
        status, answer = answered(self._store, method, path, query, sent)
        if status >= 300:
            failure: type[ApiError] = _KINDS.get(status, UnavailableError)
            message = f"{method} {path}: {status}: {answer.get('message')}"
            raise failure(message)
        found: Json = json.loads(json.dumps(answer))
        return found


class SteppedWatch:
    """The response of a watch: one event in a step, until its time is over or it breaks."""

    def __init__(self, store: Store, perils: Perils, path: str, query: Mapping[str, str]) -> None:
        self._store = store
        self._perils = perils
        self._collection, self._namespace, _, _ = parts_of(path)
        self._query = query
        since = int(query["resourceVersion"] or 0)
        self._next = next((n for n, change in enumerate(store.changes) if change.version > since), len(store.changes))
        self._until = perils.steps.now + float(query["timeoutSeconds"])
        self._closed = False

    def stream(self, _: int) -> Iterator[bytes]:
        """Yield the events as lines.

        Raises:
            OSError: the connection broke.
        """
        steps = self._perils.steps
        while True:
            steps.pause(f"watches {self._collection}", self._has_news, self._until)
            if not self._has_news():
                break
            if self._closed:
                return
            self._perils.read(f"takes an event of {self._collection}", OSError)
            change = self._store.changes[self._next]
            self._next += 1
            yield self._line(event_of(change, self._namespace, self._query))
        bookmark = {"metadata": {"resourceVersion": str(self._store.version)}}
        yield self._line({"type": "BOOKMARK", "object": bookmark})

    def close(self) -> None:
        """Let go of the connection."""
        self._closed = True

    def shutdown(self) -> None:
        """Wake the reader."""
        self._closed = True

    def _has_news(self) -> bool:
        """Return whether there is an event to take, or no more will come; skips what this watch does not see."""
        changes = self._store.changes
        while self._next < len(changes) and not self._sees(self._next):
            self._next += 1
        return self._closed or self._next < len(changes)

    def _sees(self, number: int) -> bool:
        change = self._store.changes[number]
        return change.collection == self._collection and bool(event_of(change, self._namespace, self._query))

    @staticmethod
    def _line(event: Json | None) -> bytes:
        return json.dumps(event).encode() + b"\n"
