"""A small API server: real HTTP for the real client, objects in memory, and faults on demand."""

import copy
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes import client

from controllers.worlds.argo.calls.api import KubeApi

Json = dict[str, Any]
COLLECTIONS = ("pods", "nodes", "workflows", "configmaps", "events", "resourcequotas", "limitranges")
CLAIMED = ("resourceslices", "deviceclasses", "resourceclaims")


@dataclass(frozen=True)
class Change:
    version: int
    collection: str
    before: Json | None
    after: Json | None


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    body: Any


class Store:
    """Objects by collection and ``namespace/name``, and every change since the last compaction."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Json]] = {name: {} for name in (*COLLECTIONS, *CLAIMED)}
        self.changes: list[Change] = []
        self.version = 1
        self.compacted = 0
        self.news = threading.Condition()

    def put(self, collection: str, item: Json) -> Json:
        with self.news:
            self.version += 1
            item = copy.deepcopy(item)
            meta = item.setdefault("metadata", {})
            meta.setdefault("uid", f"uid-{self.version}")
            meta["resourceVersion"] = str(self.version)
            key = f"{meta.get('namespace', '')}/{meta['name']}"
            before = self.objects[collection].get(key)
            self.objects[collection][key] = item
            self.changes.append(Change(self.version, collection, before, item))
            self.news.notify_all()
            return item

    def drop(self, collection: str, key: str) -> None:
        with self.news:
            self.version += 1
            self.changes.append(Change(self.version, collection, self.objects[collection].pop(key), None))
            self.news.notify_all()

    def compact(self) -> None:
        """Forget all changes: a watch from an older version is gone."""
        with self.news:
            self.version += 1
            self.changes.clear()
            self.compacted = self.version


class FakeApi:
    """The server. ``fault`` may answer a call in its place with (status, message); ``calls`` holds all that came.

    ``date`` is its clock, in Unix seconds. ``denied`` are the subresources of pods that the account may not use, and
    ``reviewed`` the namespaces that it asked about. ``budget`` is why no pod that runs may be evicted, if there is one.
    """

    def __init__(self) -> None:
        self.store = Store()
        self.calls: list[Call] = []
        self.date: Callable[[], float] = time.time
        self.fault: Callable[[Call], tuple[int, str] | None] = lambda _call: None
        self.denied: set[str] = set()
        self.reviewed: list[str | None] = []
        self.no_reviews: tuple[int, str] | None = None
        self.budget = ""
        self.cut_watches = threading.Event()
        self.closing = threading.Event()
        self._start(0)

    def _start(self, port: int) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def client(self) -> KubeApi:
        configuration = client.Configuration()
        configuration.host = f"http://127.0.0.1:{self.port}"
        return KubeApi(configuration)

    def restart(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Go away with every connection, and come back on the same port."""
        port = self.port
        self.cut_watches.set()
        self._server.shutdown()
        self._server.server_close()
        meanwhile()
        self.cut_watches.clear()
        self._start(port)

    def close(self) -> None:
        self.closing.set()
        with self.store.news:
            self.store.news.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def of(self, method: str, part: str) -> list[Call]:
        return [call for call in self.calls if call.method == method and part in call.path]


def _handler(api: FakeApi) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - one method per verb
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            del format, args

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(api.date() if timestamp is None else timestamp)

        def do_GET(self) -> None:
            self._serve("GET")

        def do_POST(self) -> None:
            self._serve("POST")

        def do_PUT(self) -> None:
            self._serve("PUT")

        def do_PATCH(self) -> None:
            self._serve("PATCH")

        def do_DELETE(self) -> None:
            self._serve("DELETE")

        def _serve(self, method: str) -> None:
            length = int(self.headers.get("content-length") or 0)
            body: Any = json.loads(self.rfile.read(length)) if length else None
            url = urlsplit(self.path)
            if url.path.endswith("/selfsubjectaccessreviews"):
                self._review(body["spec"]["resourceAttributes"])
                return
            query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
            call = Call(method, url.path + ("?watch" if "watch" in query else ""), body)
            api.calls.append(call)
            fault = api.fault(call)
            if fault is not None:
                self._answer(fault[0], {"kind": "Status", "message": fault[1]})
            elif api.budget and url.path.endswith("/eviction") and self._runs(url.path):
                cause = {"reason": "DisruptionBudget", "message": api.budget}
                self._answer(429, {"kind": "Status", "message": "it would violate", "details": {"causes": [cause]}})
            elif "watch" in query:
                self._watch(url.path, query)
            else:
                self._answer(*answered(api.store, method, url.path, query, body))

        def _runs(self, path: str) -> bool:
            """Return whether budgets count for a pod: Kubernetes asks none about one that is pending or deleted."""
            _, namespace, name, _ = parts_of(path)
            pod = api.store.objects["pods"].get(f"{namespace}/{name}")
            return pod is not None and pod["status"]["phase"] == "Running" and not _is_deleted(pod)

        def _review(self, asked: Json) -> None:
            if api.no_reviews is not None:
                self._answer(api.no_reviews[0], {"kind": "Status", "message": api.no_reviews[1]})
                return
            api.reviewed.append(asked.get("namespace"))
            self._answer(201, {"status": {"allowed": asked["subresource"] not in api.denied}})

        def _answer(self, status: int, answer: Json) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            if api.budget and status == 429:
                self.send_header("retry-after", "10")
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _watch(self, path: str, query: Mapping[str, str]) -> None:
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            try:
                for event in _events(api, path, query):
                    line = json.dumps(event).encode() + b"\n"
                    self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                    self.wfile.flush()
                if not api.cut_watches.is_set():
                    self.wfile.write(b"0\r\n\r\n")
            except OSError:
                pass
            self.close_connection = True

    return Handler


def _is_deleted(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _events(api: FakeApi, path: str, query: Mapping[str, str]) -> Iterator[Json]:
    collection, namespace, _, _ = parts_of(path)
    store, since = api.store, int(query.get("resourceVersion") or 0)
    if since < store.compacted:
        yield {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
        return
    waited, most = 0.0, float(query["timeoutSeconds"])
    while waited < most and not api.cut_watches.is_set() and not api.closing.is_set():
        with store.news:
            fresh = [c for c in store.changes if c.version > since]
            if not fresh:
                store.news.wait(0.02)
                waited += 0.02
        for change in fresh:
            since = change.version
            if change.collection == collection and (event := event_of(change, namespace, query)):
                yield event
    yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(max(since, 1))}}}


def event_of(change: Change, namespace: str | None, query: Mapping[str, str]) -> Json | None:
    before, after = (o if o and _selected(o, namespace, query) else None for o in (change.before, change.after))
    if after is not None:
        return {"type": "ADDED" if before is None else "MODIFIED", "object": after}
    if before is None:
        return None
    gone = {**before, "metadata": {**before["metadata"], "resourceVersion": str(change.version)}}
    return {"type": "DELETED", "object": gone}


def _selected(item: Json, namespace: str | None, query: Mapping[str, str]) -> bool:
    labels = item["metadata"].get("labels") or {}
    wanted = [name for name in query.get("labelSelector", "").split(",") if name]
    for clause in (clause for clause in query.get("fieldSelector", "").split(",") if clause):
        path, _, value = clause.partition("!=")
        found: Any = item
        for name in path.split("."):
            found = (found or {}).get(name)
        if (found or "") == value:
            return False
    return all((name[1:] not in labels) if name[0] == "!" else name in labels for name in wanted) and namespace in {
        None,
        item["metadata"].get("namespace"),
    }


def parts_of(path: str) -> tuple[str, str | None, str | None, str | None]:
    """Split a path into collection, namespace, name and subresource."""
    words = path.strip("/").split("/")
    words = words[2:] if words[0] == "api" else words[3:]
    namespace = None
    if words[0] == "namespaces" and len(words) > 2:
        namespace, words = words[1], words[2:]
    padded: list[str | None] = [*words, None, None]
    return words[0], namespace, padded[1], padded[2]


def answered(store: Store, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Json]:  # noqa: ANN401
    collection, namespace, name, subresource = parts_of(path)
    key = f"{namespace or ''}/{name or (body or {}).get('metadata', {}).get('name')}"
    there = store.objects[collection].get(key)
    if method == "GET" and name is None:
        return _listed(store, collection, namespace, query)
    if subresource == "eviction" and there is not None:
        return _changed(store, "DELETE", collection, key, there, body["deleteOptions"])
    if method == "POST" and subresource is None:
        if there is not None:
            return 409, {"message": f"{key} already exists"}
        body["metadata"]["namespace"] = namespace or ""
        return 201, store.put(collection, body)
    if there is None:
        return 404, {"message": f"{collection} {key!r} not found"}
    if method == "GET":
        return 200, there
    return _changed(store, method, collection, key, there, body)


def _changed(store: Store, method: str, collection: str, key: str, there: Json, body: Json) -> tuple[int, Json]:
    meta = there["metadata"]
    if method == "DELETE":
        if (body or {}).get("preconditions", {}).get("uid") != meta["uid"]:
            return 409, {"message": "the UID in the precondition does not match"}
        store.drop(collection, key)
        return 200, {}
    given = body.get("metadata", {})
    if given.get("uid", meta["uid"]) != meta["uid"]:
        return 422, {"message": "metadata.uid: field is immutable"}
    if given.get("resourceVersion", meta["resourceVersion"]) != meta["resourceVersion"]:
        return 409, {"message": "the object has been modified"}
    if method == "PUT":
        return 200, store.put(collection, {**body, "metadata": {**body["metadata"], "uid": meta["uid"]}})
    return 200, store.put(collection, merged(there, body))


def _listed(store: Store, collection: str, namespace: str | None, query: Mapping[str, str]) -> tuple[int, Json]:
    with store.news:
        found = [o for o in store.objects[collection].values() if _selected(o, namespace, query)]
        version = str(store.version)
    begin, limit = int(query.get("continue") or 0), int(query.get("limit") or 0) or len(found)
    more = str(begin + limit) if begin + limit < len(found) else ""
    page = found[begin : begin + limit]
    return 200, {"items": page, "metadata": {"resourceVersion": version, "continue": more}}


def merged(item: Any, patch: Any) -> Any:  # noqa: ANN401 - JSON
    """Apply a patch as Kubernetes does: null takes away, lists of named things are merged by name."""
    if isinstance(patch, dict) and isinstance(item, dict):
        changed = {name: merged(item.get(name), value) for name, value in patch.items() if value is not None}
        return {name: value for name, value in {**item, **changed}.items() if patch.get(name, 1) is not None}
    if isinstance(patch, list) and isinstance(item, list) and all("name" in entry for entry in patch):
        return _merged_lists(item, patch)
    return copy.deepcopy(patch)


def _merged_lists(item: list[Json], patch: list[Json]) -> list[Json]:
    by_name = {entry["name"]: entry for entry in item}
    for entry in patch:
        if entry.get("$patch") == "delete":
            by_name.pop(entry["name"], None)
        else:
            by_name[entry["name"]] = merged(by_name.get(entry["name"], {}), entry)
    return list(by_name.values())
