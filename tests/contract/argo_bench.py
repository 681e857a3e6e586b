"""The Argo world behind the bench: the same workflow in a real cluster.

Its pods mount this machine's ``/usr`` for Python and a folder for their state, so its nodes must see this machine's
file system, as those of ``tests/cluster`` do.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from controllers.core.expressions import gates, main_container
from controllers.core.model import NodeName, TrialId
from controllers.driving.clock import SweepClock
from controllers.worlds.argo.calls.api import NODES, PODS, WORKFLOWS, KubeApi, Resource
from controllers.worlds.argo.calls.errors import ConflictError
from controllers.worlds.argo.deciding.planner import Timeouts
from controllers.worlds.argo.meaning.view import ClusterView
from controllers.worlds.argo.reading.demands import HOSTNAME
from controllers.worlds.argo.reading.pods import project_other
from controllers.worlds.argo.world import ArgoWorld
from controllers.worlds.argo.writing.events import EventWriter
from controllers.worlds.argo.writing.pod_changes import execute
from mlflow_hooks import contract
from tests.cluster.deleting import delete
from tests.cluster.devices import advertise
from tests.contract.bench import DEVICE, PROGRAM, Behaviour, DeviceBench, trial_template, workflow

_IMAGE = os.environ.get("SPECON_TEST_IMAGE", "hera-specon.io/shell:1")
_NAMESPACES = Resource("api/v1", "namespaces")
_ROLES = Resource("apis/rbac.authorization.k8s.io/v1", "roles")
_BINDINGS = Resource("apis/rbac.authorization.k8s.io/v1", "rolebindings")
_HOST_FOLDERS = ("/usr", "/lib", "/lib64")


class ArgoBench(DeviceBench):
    """Two nodes of a cluster, and a namespace of its own."""

    world: ArgoWorld

    def __init__(self, kubeconfig: str, folder: Path) -> None:
        self._folder = folder
        self._program = Path(shutil.copy(PROGRAM, folder))
        self._api = KubeApi.load(kubeconfig, None)
        self._events = EventWriter(self._api)
        self._namespace = f"contract-{uuid4().hex[:8]}"
        self._nodes = _emptiest(self._api)
        self._view: ClusterView | None = None
        self._gate = gates("sweep")
        self._with_devices = False
        self._prepare()

    @property
    def nodes(self) -> Sequence[NodeName]:
        """The two nodes."""
        return [NodeName(name) for name in self._nodes]

    @property
    def state_folder(self) -> Path:
        """Folder that holds a folder for each trial."""
        return self._folder / "state"

    @property
    def patience_s(self) -> float:
        """Seconds within which anything should have come about: pods take their time."""
        return 120.0

    def give_devices(self, *counts: int) -> None:
        """Let each node have so many devices, as an administrator advertises them where no device plugin does."""
        self._with_devices = True
        for node, count in zip(self._nodes, counts, strict=True):
            advertise(self._api, node, DEVICE, count)

    def submit(self, *, gated: bool = False, **behaviours: Behaviour) -> None:
        """Submit a workflow of these trials and start driving it."""
        searched = any(behaviour.search for behaviour in behaviours.values())
        self._gate = gates("sweep", first=gated, every=searched)
        self._workflow = self._api.create(WORKFLOWS.path(self._namespace), self._manifest(behaviours))
        self._build()

    def drive(self) -> bool:
        """Let the world do what is due, then wait for news."""
        changed = self.world.advance(self._clock.now())
        if self._view is not None:
            self._view.wait_for_news(0.2)
        return changed

    def kill_attempt(self, name: str) -> None:
        """SIGKILL the trial's present attempt, by its pid in its container."""
        pid = self.attempts(name)[-1][0]
        attempt = self.world.attempt(TrialId(self.trial(name).id))
        assert attempt is not None
        execute(self._api, attempt.lead, ("/bin/sh", "-c", f"kill -9 {pid}"))

    def restart_controller(self) -> None:
        """Forget everything, as a killed controller does, and begin again from what the cluster shows."""
        self._stop()
        self._build()

    def close(self) -> None:
        """End everything; the namespace goes by itself."""
        self._stop()
        if self._with_devices:
            for node in self._nodes:
                advertise(self._api, node, DEVICE, None)
        self._events.close()
        path = _NAMESPACES.path(None, self._namespace)
        delete(self._api, path)
        self._api.close()

    def _stop(self) -> None:
        if self._view is not None:
            self._view.__exit__(None, None, None)
            self._view = None

    def _build(self) -> None:
        self._view = ClusterView(self._api, [self._namespace]).__enter__()
        assert self._view.wait_synced(30), self._view.refusals()
        deadline = time.monotonic() + 30
        while not (campaigns := self._view.campaigns("default")):
            assert time.monotonic() < deadline, "the workflow does not show"
            self._view.wait_for_news(0.2)
        self._clock = SweepClock(time.time() - campaigns[0].created_epoch_s)
        self.world = ArgoWorld(self._view, campaigns[0], events=self._events, timeouts=Timeouts(kill_every=4.0))

    def _prepare(self) -> None:
        self.state_folder.mkdir()
        rules = [
            {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]},
        ]
        group = "rbac.authorization.k8s.io"
        account = {"kind": "ServiceAccount", "name": "default", "namespace": self._namespace}
        role = {"apiGroup": group, "kind": "Role", "name": "executor"}
        for resource, item in (
            (_NAMESPACES, {"metadata": {"name": self._namespace}}),
            (_ROLES, {"metadata": {"name": "executor"}, "rules": rules}),
            (_BINDINGS, {"metadata": {"name": "executor"}, "roleRef": role, "subjects": [account]}),
        ):
            place = None if resource is _NAMESPACES else self._namespace
            with contextlib.suppress(ConflictError):
                self._api.create(resource.path(place), item)

    def _manifest(self, behaviours: Mapping[str, Behaviour]) -> dict[str, Any]:
        return workflow(behaviours, self._template)

    def _template(self, name: str, behaviour: Behaviour) -> dict[str, Any]:
        made = trial_template(name, behaviour, self._program, step_ms=100)
        main = main_container("sweep")
        patches = f'"containers": [{main}], "schedulingGates": {self._gate}'
        made["podSpecPatch"] = f'{{"terminationGracePeriodSeconds": 2, {patches}}}'
        made["affinity"] = _only_on(self._nodes)
        folders = {f"host{n}": folder for n, folder in enumerate((*_HOST_FOLDERS, str(self._folder)))}
        made["volumes"] = [{"name": n, "hostPath": {"path": path}} for n, path in folders.items()]
        container = made["container"]
        container["image"], container["imagePullPolicy"] = _IMAGE, "IfNotPresent"
        container["command"] = ["/usr/bin/python3"]
        container["volumeMounts"] = [{"name": n, "mountPath": path} for n, path in folders.items()]
        container["env"] += [
            {"name": contract.ENV_STATE_ROOT, "value": str(self.state_folder)},
            {"name": contract.ENV_NODE, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ]
        return made


def _emptiest(api: KubeApi) -> Sequence[str]:
    """Return the two nodes where other pods request least."""
    requested = {item["metadata"]["labels"][HOSTNAME]: 0.0 for item in api.get(NODES.path())["items"]}
    others = [pod for item in api.get(PODS.path())["items"] if (pod := project_other(item)) is not None]
    for pod in others:
        requested[pod.node] += pod.requests.cpu
    return sorted(sorted(requested, key=lambda node: (requested[node], node))[:2])


def _only_on(nodes: Sequence[str]) -> Mapping[str, Any]:
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": list(nodes)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
