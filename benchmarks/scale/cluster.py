"""Filling a cluster: nodes, what runs on them, workflows, and a pod for every trial, all of them running in the end."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rich.progress import Progress

from benchmarks.scale import objects
from benchmarks.scale.argo import Attempt, pod_of, status_nodes, status_of
from benchmarks.scale.manifest import SWEEP, Json, SweepManifest, sweep_manifest
from benchmarks.scale.size import NAMESPACE, Size
from benchmarks.scale.tracking import TrackedTrial, new_run
from controllers.worlds.argo.calls.api import NODES, PODS, WORKFLOWS, KubeApi
from controllers.worlds.argo.calls.errors import UnavailableError

_THREADS: Final = 6
_STUCK_S: Final = 300.0


class NotRunningError(Exception):
    """Pods do not come to run. The message says how many do."""


@dataclass(frozen=True, slots=True)
class RunningSweep:
    """A workflow that was created, and the first attempts of its trials; ``began`` in Unix seconds."""

    manifest: SweepManifest
    uid: str
    attempts: tuple[Attempt, ...]
    began: float


class Filler:
    """Creates objects with a few connections, and shows how far it has come."""

    def __init__(self, api: KubeApi, size: Size, progress: Progress) -> None:
        self._api = api
        self._size = size
        self._progress = progress

    def prepare(self, kubelet_port: int) -> None:
        """Create the nodes and what runs on each."""
        self._api.create(objects.CRDS, objects.workflow_kind())
        self._api.create("/api/v1/namespaces", objects.namespace())
        for where in ("default", NAMESPACE):
            self._api.create(f"/api/v1/namespaces/{where}/serviceaccounts", objects.service_account(where))
        nodes = objects.nodes(self._size.nodes, kubelet_port, time.time())
        self._create("nodes", NODES.path(), nodes, self._size.nodes)
        self._create("pods beside", PODS.path("default"), objects.daemon_pods(self._size.nodes), self._size.nodes)

    def sweeps(self, tracking_uri: str) -> list[RunningSweep]:
        """Create the workflows and their trials' pods, each bound to its node."""
        sweeps = [self._sweep(number, tracking_uri) for number in range(self._size.sweeps)]
        pods = (pod_of(attempt) for sweep in sweeps for attempt in sweep.attempts)
        self._create("trials", PODS.path(NAMESPACE), pods, self._size.trials)
        return sweeps

    def wait_running(self, tend: Callable[[], None]) -> None:
        """Wait until every trial's pod runs; ``tend`` keeps alive what makes them.

        Raises:
            NotRunningError: for five minutes no more of them did.
        """
        bar = self._progress.add_task("running", total=self._size.trials)
        left, fewest, since = self._size.trials, self._size.trials + 1, time.monotonic()
        while left > 0:
            tend()
            self._progress.update(bar, completed=self._size.trials - left)
            if left < fewest:
                fewest, since = left, time.monotonic()
            if time.monotonic() - since > _STUCK_S:
                message = f"{left} of {self._size.trials} pods do not run; see kwok.log"
                raise NotRunningError(message)
            time.sleep(1)
            with suppress(UnavailableError):  # a busy server is asked again
                left = self._pending()
        self._progress.update(bar, completed=self._size.trials)

    def _pending(self) -> int:
        query = {"fieldSelector": "status.phase=Pending", "limit": "1"}
        page = self._api.get(PODS.path(NAMESPACE), query)
        more = (page.get("metadata") or {}).get("remainingItemCount") or 0
        # The API server does not count the rest of a list that is selected by a field.
        if page["items"] and (page["metadata"].get("continue") or more):
            return len(self._api.get(PODS.path(NAMESPACE), {"fieldSelector": "status.phase=Pending"})["items"])
        return len(page["items"])

    def _sweep(self, number: int, tracking_uri: str) -> RunningSweep:
        size = self._size
        manifest = sweep_manifest(number, size.trials_per_sweep, size.policy, tracking_uri)
        made = self._api.create(WORKFLOWS.path(NAMESPACE), manifest.body)
        uid, began = str(made["metadata"]["uid"]), time.time()
        offset = number * size.trials_per_sweep
        attempts = tuple(
            Attempt(manifest, uid, trial, node=size.node_of(offset + index))
            for index, trial in enumerate(manifest.trials)
        )
        sweep = RunningSweep(manifest, uid, attempts, began)
        write_status(self._api, sweep, status_nodes(manifest, attempts, began))
        return sweep

    def _create(self, what: str, path: str, bodies: Iterable[Json], total: int) -> None:
        bar = self._progress.add_task(what, total=total)
        create: Callable[[Json], Json] = lambda body: self._api.create(path, body)  # noqa: E731
        with ThreadPoolExecutor(_THREADS) as pool:
            for _ in pool.map(create, bodies):
                self._progress.advance(bar)


def write_status(api: KubeApi, sweep: RunningSweep, nodes: Mapping[str, Json]) -> None:
    """Write a workflow's status as the workflow-controller does: whole, and packed where it is large."""
    spec_bytes = 200 * len(sweep.attempts)
    status = status_of(dict(nodes), sweep.began, spec_bytes)
    api.patch(WORKFLOWS.path(NAMESPACE, sweep.manifest.name), {"status": status})


def tracked(sweeps: Sequence[RunningSweep]) -> list[TrackedTrial]:
    """Return every trial of the sweeps as its run in MLflow knows it."""
    attempts = [attempt for sweep in sweeps for attempt in sweep.attempts]
    return [
        new_run(f"{a.uid}.{SWEEP}.{a.trial.number}", a.sweep.experiment, a.trial.learning_rate, number)
        for number, a in enumerate(attempts)
    ]
