"""An API server with Argo and one kubelet behind it, which really runs the program of a try-out, on this machine."""

import copy
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from controllers.core.labels import GATE_PLACEMENT
from tests.hera_specon.cli.api_server import Asked, Cluster

Json = dict[str, Any]
NAMESPACE = "lab"
WORKFLOWS = "/apis/argoproj.io/v1alpha1/namespaces/lab/workflows"
PODS = "/api/v1/namespaces/lab/pods"
REVIEWS = "/apis/authorization.k8s.io/v1"
SELF_REVIEWS = f"{REVIEWS}/selfsubjectaccessreviews"
ACCOUNT_REVIEWS = f"{REVIEWS}/namespaces/lab/localsubjectaccessreviews"
ROOT = "/mnt/specon"
_FINISHED = frozenset({"Succeeded", "Failed", "Error"})


def listed(*items: Json) -> Json:
    return {"items": list(items), "metadata": {"resourceVersion": "1"}}


def node(name: str = "n1", kubelet: str = "v1.36.2") -> Json:
    status = {"nodeInfo": {"kubeletVersion": kubelet}, "allocatable": {"cpu": "8", "memory": "32Gi"}}
    return {"metadata": {"name": name}, "status": {**status, "conditions": [{"type": "Ready", "status": "True"}]}}


def deployment(name: str, namespace: str, image: str, **more: Any) -> Json:  # noqa: ANN401 - any JSON
    container = {"name": name, "image": image, **more}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/name": name}},
        "spec": {"template": {"spec": {"serviceAccountName": name, "containers": [container]}}},
        "status": {"availableReplicas": 1, "readyReplicas": 1},
    }


ARGO = deployment("workflow-controller", "argo", "quay.io/argoproj/workflow-controller:v4.0.7")
CONTROLLER = deployment(
    "specon-controller",
    "hera-specon",
    "hera-specon/controller:0.2.0",
    envFrom=[{"configMapRef": {"name": "settings"}}],
)
SETTINGS = "/api/v1/namespaces/hera-specon/configmaps/settings"
DEPLOYMENTS = "/apis/apps/v1/deployments"


def healthy() -> dict[str, Json]:
    """The objects of a cluster where nothing is wrong."""
    resources = [{"name": name, "verbs": ["create", "get", "patch"]} for name in ("pods", "pods/resize", "pods/exec")]
    argos = [{"name": name, "verbs": ["create", "patch"]} for name in ("workflows", "workflowtaskresults")]
    return {
        "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.2"},
        "/api/v1": {"resources": resources},
        "/api/v1/namespaces/lab": {"metadata": {"name": "lab"}, "status": {"phase": "Active"}},
        "/api/v1/nodes": listed(node()),
        "/apis/argoproj.io/v1alpha1": {"resources": argos},
        DEPLOYMENTS: listed(*copy.deepcopy((ARGO, CONTROLLER))),
        SETTINGS: {"data": {"SPECON_CONTROLLER_NAMESPACE": "lab,other", "SPECON_CONTROLLER_POLICY": "ahead"}},
        "/api/v1/namespaces/lab/serviceaccounts/default": {"metadata": {"name": "default"}},
        "/api/v1/namespaces/lab/resourcequotas": listed(),
        "/api/v1/namespaces/lab/limitranges": listed(),
        "/apis/events.k8s.io/v1/namespaces/lab/events": listed(),
        "/api/v1/namespaces/lab/persistentvolumeclaims/specon-state": {"spec": {"accessModes": ["ReadWriteMany"]}},
        WORKFLOWS: listed(),
        PODS: listed(),
    }


@dataclass
class DoctoredCluster(Cluster):
    """``folder`` stands for the volume and the pod's disk; the rest says what is broken.

    ``denied`` are the verbs and resources that reviews deny the user, ``account_denied`` the account; ``words`` are the
    pod's last ones instead of its report; ``waits`` is what the pod waits for, and ``argo`` whether that lives.
    """

    folder: Path = Path()
    objects: dict[str, Json] = field(default_factory=healthy)
    denied: set[str] = field(default_factory=set)
    account_denied: set[str] = field(default_factory=set)
    words: str | None = None
    waits: Json | None = None
    argo: bool = True
    deletes_resized: bool = False
    workflow: Json | None = None
    gated: bool = False
    cpu: str = "50m"
    program: "subprocess.Popen[bytes] | None" = None
    removed: list[str] = field(default_factory=list)

    def answer(self, asked: Asked) -> tuple[int, Json]:
        if asked.path in {SELF_REVIEWS, ACCOUNT_REVIEWS} and (asked.method, asked.path) not in self.refusals:
            self.asked.append(asked)
            return 201, self.review(asked)
        if asked.method == "DELETE":
            self.asked.append(asked)
            if code := self.refusals.get(("DELETE", "any")):
                return code, {"message": f"refused with {code}"}
            self.removed.append(asked.path)
            self.workflow = None
            return 200, {}
        if asked.path.startswith(f"{WORKFLOWS}/specon-doctor-") and asked.method == "GET":
            return (200, self.seen_workflow()) if self.workflow else (404, {"message": "gone"})
        if asked.path.startswith(f"{PODS}/specon-doctor-"):
            self.asked.append(asked)
            return self.patch_pod(asked)
        if asked.path == PODS and "specon-doctor-" in asked.query.get("labelSelector", ""):
            return 200, listed(*self.pods())
        code, found = super().answer(asked)
        if asked.path == DEPLOYMENTS and code == 200 and "labelSelector" in asked.query:
            wanted = asked.query["labelSelector"].partition("=")[2]
            return code, listed(*(one for one in found["items"] if one["metadata"]["name"] == wanted))
        return code, found

    def review(self, asked: Asked) -> Json:
        named = asked.body["spec"]["resourceAttributes"]
        whole = "/".join(filter(None, (named["resource"], named.get("subresource"))))
        denied = self.denied if asked.path == SELF_REVIEWS else self.account_denied
        return {"status": {"allowed": f"{named['verb']} {whole}" not in denied}}

    def create(self, asked: Asked) -> Json:
        made = super().create(asked)
        self.workflow = {**made, "status": {}}
        patch = json.loads(made["spec"]["templates"][0]["podSpecPatch"])
        self.gated = patch.get("schedulingGates") == [{"name": GATE_PLACEMENT}]
        self.objects.pop(f"{asked.path}/{made['metadata']['name']}")
        return made

    def run(self) -> None:
        assert self.workflow is not None
        container = self.workflow["spec"]["templates"][0]["container"]
        order = json.loads(container["args"][0]) | {"report": str(self.report), "hold_s": 1, "within_s": 10}
        given = {entry["name"]: entry.get("value", "") for entry in container["env"]}
        given = {name: value.replace(ROOT, str(self.folder / "volume")) for name, value in given.items()}
        command = [sys.executable, *container["command"][1:], json.dumps(order)]
        environment = {"PATH": os.environ["PATH"], "KUBERNETES_SERVICE_HOST": "127.0.0.1", **given}
        self.program = subprocess.Popen(command, env=environment, cwd=self.folder)

    @property
    def report(self) -> Path:
        return self.folder / "termination-log"

    def patch_pod(self, asked: Asked) -> tuple[int, Json]:
        if code := self.refusals.get((asked.method, "resize" if asked.path.endswith("/resize") else "pod")):
            return code, {"message": f"refused with {code}"}
        if asked.path.endswith("/resize"):
            (container,) = asked.body["spec"]["containers"]
            self.cpu = container["resources"]["requests"]["cpu"]
        elif "schedulingGates" in asked.body["spec"]:
            self.gated = False
        return 200, {}

    def pods(self) -> list[Json]:
        if self.workflow is None or not self.argo or (self.deletes_resized and self.cpu != "50m"):
            return []
        if self.program is None and not self.gated and self.waits is None:
            self.run()
        name = self.workflow["metadata"]["name"]
        owner = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "name": name,
            "uid": "uid-1",
            "controller": True,
        }
        return [
            {
                "metadata": {
                    "name": name,
                    "namespace": "lab",
                    "uid": "pod-1",
                    "labels": {"workflows.argoproj.io/workflow": name},
                    "ownerReferences": [owner],
                },
                "spec": {
                    "schedulingGates": [{"name": GATE_PLACEMENT}] if self.gated else [],
                    "containers": [{"name": "main", "resources": {"requests": {"cpu": self.cpu}}}],
                },
                "status": self.pod_status(),
            }
        ]

    def pod_status(self) -> Json:
        if self.gated:
            return {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            }
        if self.waits is not None:
            return {"phase": "Pending", **self.waits}
        state: Json = {"running": {}}
        if self.program is not None and self.program.poll() is not None:
            said = self.report.read_text() if self.words is None else self.words
            state = {"terminated": {"exitCode": 0, "message": said}}
        return {
            "phase": "Running",
            "containerStatuses": [{"name": "main", "state": state, "resources": {"requests": {"cpu": self.cpu}}}],
        }

    def seen_workflow(self) -> Json:
        assert self.workflow is not None
        status = dict(self.status)
        if not self.argo:
            status = {}
        elif not self.gated and self.program is not None and self.program.poll() is not None:
            status = {"phase": "Succeeded", **status}
        elif status.get("phase") not in _FINISHED or self.waits is None:
            status["phase"] = "Running"
        return {**self.workflow, "status": status}


@contextmanager
def mlflow(answers: int = 200) -> Iterator[str]:
    """A server that says it is MLflow, and answers a search for experiments with this status."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            version = self.path == "/version"
            self.send_response(200 if version else answers)
            said = b"3.17.0" if version else b"{}"
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = handle_any  # noqa: N815 - http.server's own names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
