"""The view of the cluster that all campaigns share: watches of pods, workflows and nodes, and an index over them."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeVar

from controllers.core import labels
from controllers.core.after_sweeps import AfterSweeps
from controllers.core.labels import root_of
from controllers.core.means import NO_MEANS, Means, together
from controllers.core.stop_rules import StopRules
from controllers.worlds.argo.calls.api import LIMIT_RANGES, NODES, PODS, QUOTAS, WORKFLOWS, Json, KubeApi
from controllers.worlds.argo.calls.grants import GrantReviews, Grants, LeaveBy
from controllers.worlds.argo.calls.write_queue import WriteQueue
from controllers.worlds.argo.meaning.device_watch import DeviceWatch
from controllers.worlds.argo.meaning.leaving import LeavingNodes
from controllers.worlds.argo.meaning.node_kinds import KindsSeen
from controllers.worlds.argo.meaning.room import Claims, NodeRequests
from controllers.worlds.argo.reading.definitions import TrialDefinition, warn_once
from controllers.worlds.argo.reading.namespace_limits import QuotaRecord, RangeRecord, project_quota, project_range
from controllers.worlds.argo.reading.node_kinds import NOTHING_GIVEN, GivenKinds
from controllers.worlds.argo.reading.nodes import NodeRecord, project_node
from controllers.worlds.argo.reading.pods import LABEL_WORKFLOW, OtherPod, PodRecord, project_other, project_pod
from controllers.worlds.argo.reading.watch import Collection, Reflector, WatchTiming, since_boot
from controllers.worlds.argo.reading.workflows import WorkflowRecord, project_workflow

R = TypeVar("R")
_LOG = logging.getLogger(__name__)
_TRIAL_PODS = {"labelSelector": f"{LABEL_WORKFLOW},{labels.LABEL_SWEEP},{labels.LABEL_TRIAL}"}
_PLACED = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_OTHER_PODS = {"fieldSelector": _PLACED, "labelSelector": f"!{labels.LABEL_TRIAL}"}
_PAGE = 100
_WORKFLOWS_PAGE = 10
_MOST_POLICIES: Final = 8
_MOST_CAMPAIGNS: Final = 100
"""Policies that the sweeps of one workflow may name, and campaigns of a namespace at a time: each has a thread."""
_MOST_ROOM = 60_000
"""Kilobytes, roughly, of the workflows of a namespace, and of its pods: a step takes about one, and so does a pod."""
_MOST_LIMITS: Final = 100
"""Quotas of a namespace that are read, and LimitRanges."""
_REST = 5.0
_MOST_REST_S = 5.0
"""Without a bound, a process that waited for a core would be blind for long after a look that cost little."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """The sweeps of one workflow under one policy: what one engine steers. Whatever it says was written by others.

    ``uid`` is the workflow's, ``sweep_uid`` begins the ids of its trials. ``policy`` is a spec as people type it.
    ``created_epoch_s`` (Unix seconds) is zero on the sweep's clock. ``finished`` tells that the workflow is over; a
    retry makes it unfinished again. ``sweeps`` gives the MLflow experiment of each sweep id, as far as the workflow has
    got; ``annotations`` the workflow's annotations of ours. ``takes_unset`` tells that trials whose author named no
    policy belong here too. ``home_known`` tells that the sweep's first workflow is there, and in the same namespace:
    where it is gone, only MLflow knows whose sweep this one continues. ``weight`` and ``priority`` are the highest
    of its sweeps, ``means`` what all of them may take, ``stops`` the rules that end each early, by its name, ``after``
    what each learns from. ``several`` tells that one of them has several objectives.
    """

    namespace: str
    workflow: str
    uid: str
    sweep_uid: str
    policy: str
    created_epoch_s: float
    finished: bool
    sweeps: Mapping[str, str]
    annotations: Mapping[str, str]
    takes_unset: bool
    home_known: bool = True
    weight: float = 1.0
    priority: int = 0
    means: Means = NO_MEANS
    stops: Mapping[str, StopRules] = field(default_factory=dict)
    after: Mapping[str, AfterSweeps] = field(default_factory=dict)
    several: bool = False

    def owns(self, trial: TrialDefinition) -> bool:
        """Whether a trial of the workflow belongs to this campaign."""
        return trial.policy == self.policy or (trial.policy is None and self.takes_unset)


class ClusterView:
    """The cluster as the watches show it; a context manager that starts and ends them.

    Args:
        api: access to the API server.
        namespaces: where to look for sweeps; None for everywhere.
        timing: of the watches.
        leave_by: how trials are asked to leave.
        given: what an owner says of the nodes.
    """

    def __init__(
        self,
        api: KubeApi,
        namespaces: Sequence[str] | None = None,
        timing: WatchTiming | None = None,
        *,
        leave_by: LeaveBy = "auto",
        given: GivenKinds = NOTHING_GIVEN,
    ) -> None:
        self.api = api
        self.writes = WriteQueue()
        self._timing = timing
        self._news = threading.Event()
        self._namespaces: Sequence[str | None] = (None,) if namespaces is None else tuple(dict.fromkeys(namespaces))
        self._grants = GrantReviews(api, self._namespaces, leave_by, self._news.set)
        # Selected by labels: of a large cluster's pods, the API server then sends only those of trials.
        self._pods = [
            self._watch(Collection(PODS.path(namespace), _TRIAL_PODS, _PAGE, most=_MOST_ROOM), project_pod, _weight)
            for namespace in self._namespaces
        ]
        self._workflows = [
            self._watch(
                Collection(WORKFLOWS.path(namespace), {}, _WORKFLOWS_PAGE, most=_MOST_ROOM),
                lambda item: project_workflow(item, api.epoch()),
                _weight,
            )
            for namespace in self._namespaces
        ]
        self.kinds_seen = KindsSeen(given)
        self._nodes = self._watch(Collection(NODES.path(), {}, _PAGE), lambda item: project_node(item, given))
        # No pod is watched twice: with thousands of trials, reading their changes is most of the work.
        self._others = [
            self._watch(Collection(PODS.path(namespace), _OTHER_PODS, _PAGE), project_other)
            for namespace in self._namespaces
        ]
        self._elsewhere: Reflector[OtherPod] | None = None
        if namespaces is not None:
            outside = (f"metadata.namespace!={namespace}" for namespace in self._namespaces)
            query = {"fieldSelector": ",".join((_PLACED, *outside))}
            self._elsewhere = self._watch(Collection(PODS.path(), query, _PAGE, expendable=True), project_other)
        # Where this account may not read these, the API server says what it refuses.
        self._quotas = [
            self._watch(
                Collection(QUOTAS.path(namespace), page=_PAGE, expendable=True, most=_MOST_LIMITS), project_quota
            )
            for namespace in self._namespaces
        ]
        self._ranges = [
            self._watch(
                Collection(LIMIT_RANGES.path(namespace), page=_PAGE, expendable=True, most=_MOST_LIMITS), project_range
            )
            for namespace in self._namespaces
        ]
        self._devices = DeviceWatch(self._namespaces, self._watch)
        self._told_of_elsewhere = False
        self._by_workflow: dict[str, list[PodRecord]] = {}
        self._index_version = -1
        self._index_lock = threading.Lock()
        self._requests = NodeRequests((), (), ())
        self._claims = Claims()
        self._leaving = LeavingNodes()
        self._requests_version = -1
        self._requests_until = 0.0
        self._requests_lock = threading.Lock()

    def __enter__(self) -> Self:
        self._grants.start()
        for reflector in self._all():
            reflector.start()
        return self

    def __exit__(self, *_: object) -> None:
        # First the writes: once the watches end, nobody sees any more what they change.
        self.writes.close()
        self._grants.stop()
        for reflector in self._all():
            reflector.stop()

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        return sum(reflector.version for reflector in self._all())

    def synced(self) -> bool:
        """Whether everything that is needed has been read at least once, but for namespaces that may not be looked at.

        One namespace that takes this account's permissions away keeps no other waiting.
        """
        seen = [watches for watches in self._of_namespaces() if not _refused(watches)]
        needed = (self._nodes, *self._everywhere(), *(reflector for watches in seen for reflector in watches))
        return bool(seen) and self._grants.synced and all(reflector.synced for reflector in needed)

    def wait_synced(self, within_s: float) -> bool:
        """Wait until everything has been read, at most ``within_s``; return whether it has."""
        deadline = time.monotonic() + within_s
        while not self.synced():
            if time.monotonic() > deadline:
                return False
            self._news.wait(0.05)
            self._news.clear()
        return True

    def refusals(self) -> Sequence[str]:
        """Return why watches that are needed are not allowed, in the API server's words."""
        return [str(r.refused) for r in self._needed() if r.refused is not None]

    def age_s(self, namespace: str | None = None) -> float:
        """Return the seconds since the most silent of the watches heard from the API server.

        Args:
            namespace: whose pods and workflows count; None for all that may be looked at.
        """
        watched = dict(zip(self._namespaces, self._of_namespaces(), strict=True))
        if namespace is not None:
            of_namespaces = [watched.get(namespace) or watched[None]]
        else:
            of_namespaces = [watches for watches in watched.values() if not _refused(watches)]
        heard = (self._nodes, *self._everywhere(), *(reflector for watches in of_namespaces for reflector in watches))
        return since_boot() - min(reflector.heard_at for reflector in heard)

    def grants(self, namespace: str) -> Grants:
        """Return what this account may do to the pods of a namespace."""
        return self._grants.of(namespace)

    def wait_for_news(self, within_s: float) -> bool:
        """Wait until something has changed, at most ``within_s``; return whether it has."""
        told = self._news.wait(within_s)
        self._news.clear()
        return told

    def campaigns(self, default_policy: str) -> Sequence[Campaign]:
        """Return every campaign: one for each policy that the sweeps of a workflow name, as far as that is believed."""
        # Those of a namespace that may not be looked at any more stay: their worlds do nothing by what is too old.
        known = sorted(self.workflows(), key=lambda workflow: (workflow.created_at, workflow.uid))
        homes = {root_of(workflow.uid): workflow.namespace for workflow in known}
        here = frozenset(homes)
        for workflow in known:
            # A sweep whose first workflow is gone is at home where it was continued first, if MLflow knows no other.
            homes.setdefault(root_of(workflow.sweep_uid), workflow.namespace)
        steered: list[Campaign] = []
        of_namespace: Counter[str] = Counter()
        for workflow in known:
            if (home := homes[root_of(workflow.sweep_uid)]) != workflow.namespace:
                where = f"workflow {workflow.namespace}/{workflow.name}"
                warn_once(where, f"{where} is left alone: it wants to continue a sweep of namespace {home}")
                continue
            campaigns = _campaigns_of(workflow, default_policy, home_known=root_of(workflow.sweep_uid) in here)
            running = 0 if workflow.finished else len(campaigns)
            if len(campaigns) > _MOST_POLICIES or of_namespace[workflow.namespace] + running > _MOST_CAMPAIGNS:
                where = f"workflow {workflow.namespace}/{workflow.name}"
                warn_once(where, f"{where} is left alone: it, or its namespace, has more sweeps than one may steer")
                continue
            of_namespace[workflow.namespace] += running
            steered += campaigns
        return steered

    def nodes(self) -> Sequence[NodeRecord]:
        """Return every node."""
        return self._nodes.records()

    def workflows(self) -> Sequence[WorkflowRecord]:
        """Return every workflow that has sweeps."""
        return [record for reflector in self._workflows for record in reflector.records()]

    def workflow(self, uid: str) -> WorkflowRecord | None:
        """Return the workflow with ``uid``, None where it was deleted."""
        return next((record for record in self.workflows() if record.uid == uid), None)

    def pods_of(self, workflow: WorkflowRecord) -> Sequence[PodRecord]:
        """Return the pods that Argo made for a workflow's trials."""
        return [pod for pod in self._pods_by_workflow().get(workflow.uid, []) if workflow.made(pod)]

    def trial_pods(self) -> Sequence[PodRecord]:
        """Return the pods of all trials, of every campaign."""
        return [record for pods in self._pods_by_workflow().values() for record in pods]

    def other_pods(self) -> Sequence[OtherPod]:
        """Return all other pods on nodes, as far as they may be seen."""
        return [record for reflector in self._of_others() for record in reflector.records()]

    def requests(self) -> NodeRequests:
        """Return what all pods request of the nodes, summed up again after a change, if it is not too soon."""
        with self._requests_lock:
            counted: Sequence[Reflector[Any]] = (
                *self._pods,
                *self._of_others(),
                self._nodes,
                *self._devices.reflectors,
            )
            version = sum(reflector.version for reflector in counted)
            began = time.monotonic()
            changed = version != self._requests_version or began >= self._claims.next_end
            if changed and began >= self._requests_until:
                ours = {workflow.uid: workflow for workflow in self.workflows()}
                pods = self.trial_pods()
                made = (pod for pod in pods if (of := ours.get(pod.workflow_uid)) is not None and of.made(pod))
                believed = self._claims.believed(made, began)
                devices = self._devices.devices()
                nodes = devices.with_devices(self._nodes.records())
                self.kinds_seen.look(nodes)
                leaving = self._leaving.deadlines(nodes, self.api.epoch() or 0.0)
                others = devices.held_by_others(pods, self.other_pods())
                self._requests = NodeRequests(nodes, pods, others, believed, leaving)
                self._requests_version = version
                ended = time.monotonic()
                self._requests_until = ended + rest_s(ended - began)
            return self._requests

    def limits(self, namespace: str) -> tuple[Sequence[QuotaRecord], Sequence[RangeRecord]]:
        """Return the quotas that count trials' pods in a namespace, and its LimitRanges, as far as they may be seen."""
        quotas = (quota for reflector in self._quotas for quota in reflector.records())
        ranges = (one for reflector in self._ranges for one in reflector.records())
        return [one for one in quotas if one.namespace == namespace], [
            one for one in ranges if one.namespace == namespace
        ]

    def _needed(self) -> Sequence[Reflector[Any]]:
        return (*self._pods, *self._workflows, self._nodes, *self._others)

    def _all(self) -> Sequence[Reflector[Any]]:
        all_other = (*self._quotas, *self._ranges, *self._devices.reflectors)
        return (*self._needed(), *all_other, *(() if self._elsewhere is None else (self._elsewhere,)))

    def _of_namespaces(self) -> Sequence[Sequence[Reflector[Any]]]:
        """Return the watches of each namespace."""
        return list(zip(self._pods, self._workflows, self._others, strict=True))

    def _everywhere(self) -> Sequence[Reflector[Any]]:
        """Return the watch of all other namespaces, where there is one and it is allowed."""
        elsewhere = self._elsewhere
        if elsewhere is None:
            return ()
        if elsewhere.refused is None:
            return (elsewhere,)
        if not self._told_of_elsewhere:
            self._told_of_elsewhere = True
            _LOG.info(
                "this account sees only pods of its own namespaces: it does not count what others request of the nodes"
            )
        return ()

    def _of_others(self) -> Sequence[Reflector[OtherPod]]:
        return self._others if self._elsewhere is None else (*self._others, self._elsewhere)

    def _pods_by_workflow(self) -> Mapping[str, list[PodRecord]]:
        with self._index_lock:
            version = sum(reflector.version for reflector in self._pods) + self._devices.version
            if version != self._index_version:
                index: dict[str, list[PodRecord]] = {}
                records = [record for reflector in self._pods for record in reflector.records()]
                for record in self._devices.of_pods(records):
                    index.setdefault(record.workflow_uid, []).append(record)
                self._by_workflow, self._index_version = index, version
            return self._by_workflow

    def _watch(
        self, collection: Collection, project: Callable[[Json], R | None], weight: Callable[[R], int] = lambda _: 1
    ) -> Reflector[R]:
        return Reflector(self.api, collection, project, self._news.set, self._timing, weight)


def _weight(record: PodRecord | WorkflowRecord) -> int:
    return record.weight


def _refused(watches: Sequence[Reflector[Any]]) -> bool:
    return any(reflector.refused is not None for reflector in watches)


def rest_s(took: float) -> float:
    """Return for how many seconds a look serves that took ``took`` seconds: in a large sweep for longer."""
    return min(_MOST_REST_S, _REST * took)


def _campaigns_of(workflow: WorkflowRecord, default_policy: str, *, home_known: bool) -> list[Campaign]:
    by_policy: dict[str, list[str]] = {}
    for sweep in workflow.sweeps:
        by_policy.setdefault(sweep.policy or default_policy, []).append(sweep.id)
    sweeps = {sweep.id: sweep for sweep in workflow.sweeps}
    return [
        Campaign(
            namespace=workflow.namespace,
            workflow=workflow.name,
            uid=workflow.uid,
            sweep_uid=workflow.sweep_uid,
            policy=policy,
            created_epoch_s=workflow.created_at,
            finished=workflow.finished,
            sweeps={sweep: sweeps[sweep].experiment for sweep in ids},
            annotations=workflow.annotations,
            takes_unset=policy == default_policy,
            home_known=home_known,
            weight=max(sweeps[sweep].weight for sweep in ids),
            priority=max(sweeps[sweep].priority for sweep in ids),
            means=together(sweeps[sweep].means for sweep in ids),
            stops={sweep.removeprefix(f"{workflow.sweep_uid}."): sweeps[sweep].stops for sweep in ids},
            after={sweep.removeprefix(f"{workflow.sweep_uid}."): sweeps[sweep].after for sweep in ids},
            several=any(sweeps[sweep].several for sweep in ids),
        )
        for policy, ids in by_policy.items()
    ]
