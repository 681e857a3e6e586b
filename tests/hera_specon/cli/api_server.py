"""A server that answers as an API server and as Argo Server do, out of a dictionary; it notes what it was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Cluster:
    """``objects`` by path, lists among them; ``refusals`` answers a method and path with a code instead.

    ``status`` is that of every workflow created here, ``posts`` are answers to other POSTs by path. A list that is
    asked for by ``metadata.name`` holds that object alone.
    """

    url: str = ""
    objects: dict[str, Json] = field(default_factory=dict)
    refusals: dict[tuple[str, str], int] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    status: Json = field(default_factory=dict)
    posts: dict[str, Json] = field(default_factory=dict)

    def answer(self, asked: Asked) -> tuple[int, Json]:
        self.asked.append(asked)
        if code := self.refusals.get((asked.method, asked.path)):
            return code, {"message": f"refused with {code}"}
        if asked.path in self.posts:
            return 200, self.posts[asked.path]
        if asked.method == "POST":
            return 200, self.create(asked)
        if asked.path not in self.objects:
            return 404, {"message": f"{asked.path} not found"}
        if asked.method == "PATCH":
            self.objects[asked.path] = {**self.objects[asked.path], "patched": asked.body}
        return 200, self.chosen(asked)

    def chosen(self, asked: Asked) -> Json:
        found = self.objects[asked.path]
        name = asked.query.get("fieldSelector", "").removeprefix("metadata.name=")
        return {**found, "items": [i for i in found["items"] if i["metadata"]["name"] == name]} if name else found

    def create(self, asked: Asked) -> Json:
        given = asked.body.get("workflow", asked.body)
        metadata = given["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}x1"
        made: Json = {**given, "metadata": {**metadata, "name": name, "uid": "uid-1"}, "status": self.status}
        self.objects[f"{asked.path}/{name}"] = made
        return made

    def created(self) -> Json:
        """The one workflow that was sent, as it was sent."""
        (sent,) = [asked.body for asked in self.asked if asked.method == "POST"]
        found: Json = sent.get("workflow", sent)
        return found


@contextmanager
def running() -> Iterator[Cluster]:
    with serving(Cluster()) as cluster:
        yield cluster


AnyCluster = TypeVar("AnyCluster", bound=Cluster)


@contextmanager
def serving(cluster: AnyCluster) -> Iterator[AnyCluster]:
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            code, found = cluster.answer(Asked(self.command, parts.path, query, headers, body))
            text = json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815 - http.server's own names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    cluster.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield cluster
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_kubeconfig(folder: Path, url: str, namespace: str | None = "lab") -> Path:
    context = {"cluster": "c", "user": "u", **({"namespace": namespace} if namespace else {})}
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "kube-token"}}],
        "contexts": [{"name": "here", "context": context}],
    }
    path.write_text(json.dumps(config))
    return path
