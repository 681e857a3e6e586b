"""The permissions of the manifests, on a real API server: enough together, and not one too many."""

import contextlib
import copy
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from controllers.cluster.election import Create, Lease, LeaseUnavailableError, Read, Replace
from controllers.cluster.leadership import LEASES, KubernetesLease
from controllers.core.actions import Migrate, Resize
from controllers.core.model import Phase
from controllers.worlds.argo.calls.api import (
    CONFIG_MAPS,
    DEVICE_CLASSES,
    EVENTS,
    LIMIT_RANGES,
    NODES,
    PODS,
    QUOTAS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    WORKFLOWS,
    Json,
    KubeApi,
    Resource,
)
from controllers.worlds.argo.calls.errors import ApiError, BudgetError, ConflictError, ForbiddenError, NotFoundError
from controllers.worlds.argo.calls.grants import GrantReviews, Grants
from controllers.worlds.argo.calls.untrusted import at
from controllers.worlds.argo.reading.pods import PodRecord
from controllers.worlds.argo.writing import pod_changes
from controllers.worlds.argo.writing.events import EventWriter
from controllers.worlds.argo.writing.state_store import ConfigMapStore
from tests.cluster.any_cluster import AnyCluster
from tests.cluster.deleting import delete
from tests.cluster.versions import SHELL_IMAGE
from tests.contract.argo_bench import ArgoBench
from tests.contract.bench import Behaviour
from tests.manifests.kustomize import MANIFESTS, kubectl, of_kind, render
from tests.manifests.permission_table import Permission, documented, left_out

pytestmark = [
    pytest.mark.cluster,
    # A watch that is cut off leaves its socket to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(kubectl() is None, reason="neither kubectl nor the test cluster's binary is here"),
]
RBAC = "apis/rbac.authorization.k8s.io/v1"
KINDS = {
    "Role": Resource(RBAC, "roles"),
    "RoleBinding": Resource(RBAC, "rolebindings"),
    "ClusterRole": Resource(RBAC, "clusterroles"),
    "ClusterRoleBinding": Resource(RBAC, "clusterrolebindings"),
}
ACCOUNTS = Resource("api/v1", "serviceaccounts")
NAMESPACES = Resource("api/v1", "namespaces")
RESULTS = Resource("apis/argoproj.io/v1alpha1", "workflowtaskresults")
BUDGETS = Resource("apis/policy/v1", "poddisruptionbudgets")
ROWS = sorted(documented())
NOWHERE = "not-there"


@dataclass
class Office:
    """A namespace, and accounts in it that hold the manifests' permissions, all or all but one."""

    admin: KubeApi
    namespace: str
    cluster_wide: list[tuple[Resource, str]] = field(default_factory=list)
    accounts: list[KubeApi] = field(default_factory=list)

    @classmethod
    def open(cls, admin: KubeApi) -> "Office":
        namespace = f"permissions-{secrets.token_hex(4)}"
        admin.create(NAMESPACES.path(), {"metadata": {"name": namespace}})
        return cls(admin, namespace)

    def account(self, *but: Permission) -> KubeApi:
        """Return access as a new account that may do all that the manifests grant ``but`` some things."""
        name = f"account-{secrets.token_hex(4)}"
        self.admin.create(ACCOUNTS.path(self.namespace), {"metadata": {"name": name}})
        for one in of_kind(render(MANIFESTS / "overlays" / "namespaced"), *KINDS):
            self._grant(copy.deepcopy(one), name, but)
        return self._access(name)

    def close(self) -> None:
        """Take back what was granted outside the namespace, and leave no connection open."""
        for resource, name in self.cluster_wide:
            delete(self.admin, resource.path(None, name))
        for account in self.accounts:
            account.close()

    def _grant(self, one: Json, account: str, but: Sequence[Permission]) -> None:
        kind, own = one["kind"], f"{one['metadata']['name']}-{account}"
        inside = None if kind.startswith("Cluster") else self.namespace
        one["metadata"] = {"name": own}
        if "rules" in one:
            one["rules"] = [rule for given in one["rules"] if (rule := _without(given, *but))["verbs"]]
        else:
            one["roleRef"]["name"] += f"-{account}"
            one["subjects"] = [{"kind": "ServiceAccount", "name": account, "namespace": self.namespace}]
        self.admin.create(KINDS[kind].path(inside), one)
        if inside is None:
            self.cluster_wide.append((KINDS[kind], own))

    def _access(self, account: str) -> KubeApi:
        wanted = {"spec": {"expirationSeconds": 3600}}
        answer = self.admin.create(ACCOUNTS.path(self.namespace, account, "token"), wanted)
        configuration = client.Configuration()
        configuration.host = self.admin.host
        configuration.ssl_ca_cert = self.admin.configuration.ssl_ca_cert
        configuration.verify_ssl = self.admin.configuration.verify_ssl
        configuration.api_key = {"authorization": f"Bearer {answer['status']['token']}"}
        self.accounts.append(KubeApi(configuration))
        return self.accounts[-1]


def _without(rule: Mapping[str, Any], *but: Permission) -> dict[str, Any]:
    hit = {one.verb for one in but if one.group in rule["apiGroups"] and one.resource in rule["resources"]}
    return {**rule, "verbs": [verb for verb in rule["verbs"] if verb not in hit]}


@pytest.fixture(scope="module")
def admin(cluster: AnyCluster) -> Iterator[KubeApi]:
    api = KubeApi.load(str(cluster.kubeconfig), None)
    yield api
    api.close()


@pytest.fixture(scope="module")
def office(admin: KubeApi) -> Iterator[Office]:
    opened = Office.open(admin)
    yield opened
    opened.close()
    delete(admin, NAMESPACES.path(None, opened.namespace))


@pytest.fixture(scope="module")
def full(office: Office) -> KubeApi:
    return office.account()


Deed = Callable[[KubeApi, str], object]


def _list(resource: Resource) -> Deed:
    return lambda api, namespace: api.get(_where(resource, namespace), {"limit": "1"})


def _watch(resource: Resource) -> Deed:
    def watch(api: KubeApi, namespace: str) -> None:
        api.open_watch(_where(resource, namespace), {"timeoutSeconds": "1"}, 5.0).close()

    return watch


def _where(resource: Resource, namespace: str) -> str:
    return resource.path() if resource in {NODES, RESOURCE_SLICES, DEVICE_CLASSES} else resource.path(namespace)


def _object(name: str) -> Json:
    return {"metadata": {"name": name}}


def _event(api: KubeApi, namespace: str) -> None:
    event = {
        "metadata": {"name": f"test-{secrets.token_hex(4)}"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "hera-specon.io/controller",
        "reportingInstance": "test",
        "action": "Test",
        "reason": "Test",
        "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": namespace, "name": NOWHERE},
    }
    api.create(EVENTS.path(namespace), event)


def _lease(request: Read | Create | Replace) -> Deed:
    return lambda api, namespace: KubernetesLease(api, namespace, "specon-controller").carry_out(request)


def _nobody(namespace: str) -> PodRecord:
    """Return the record of a pod that is not there: a call about it is allowed or forbidden all the same."""
    pod = PodRecord.__new__(PodRecord)
    known = {"namespace": namespace, "name": NOWHERE, "uid": "0", "definition": None, "why_no_signal": None}
    for name, value in known.items():
        object.__setattr__(pod, name, value)
    return pod


def _exec(api: KubeApi, namespace: str) -> None:
    pod_changes.ask_to_leave(api, _nobody(namespace), signals=True)


DEEDS: Mapping[tuple[str, str], Deed] = {
    ("pods", "list"): _list(PODS),
    ("pods", "watch"): _watch(PODS),
    ("workflows", "list"): _list(WORKFLOWS),
    ("workflows", "watch"): _watch(WORKFLOWS),
    ("resourcequotas", "list"): _list(QUOTAS),
    ("resourcequotas", "watch"): _watch(QUOTAS),
    ("limitranges", "list"): _list(LIMIT_RANGES),
    ("limitranges", "watch"): _watch(LIMIT_RANGES),
    ("resourceclaims", "list"): _list(RESOURCE_CLAIMS),
    ("resourceclaims", "watch"): _watch(RESOURCE_CLAIMS),
    ("resourceslices", "list"): _list(RESOURCE_SLICES),
    ("resourceslices", "watch"): _watch(RESOURCE_SLICES),
    ("deviceclasses", "list"): _list(DEVICE_CLASSES),
    ("deviceclasses", "watch"): _watch(DEVICE_CLASSES),
    ("nodes", "list"): _list(NODES),
    ("nodes", "watch"): _watch(NODES),
    ("pods", "get"): lambda api, namespace: pod_changes.check_same_pod(api, _nobody(namespace)),
    ("pods", "patch"): lambda api, namespace: pod_changes.open_gate(api, _nobody(namespace), None, {}),
    ("pods/eviction", "create"): lambda api, namespace: pod_changes.evict(api, _nobody(namespace), waits=False),
    ("pods/resize", "patch"): lambda api, namespace: pod_changes.set_request(api, _nobody(namespace), 0.1),
    ("pods/exec", "create"): _exec,
    ("pods/exec", "get"): _exec,
    ("configmaps", "get"): lambda api, namespace: api.get(CONFIG_MAPS.path(namespace, NOWHERE)),
    ("configmaps", "create"): lambda api, namespace: api.create(
        CONFIG_MAPS.path(namespace), _object(f"test-{secrets.token_hex(4)}")
    ),
    ("configmaps", "update"): lambda api, namespace: api.replace(
        CONFIG_MAPS.path(namespace, NOWHERE), _object(NOWHERE)
    ),
    ("workflows", "patch"): lambda api, namespace: api.patch(WORKFLOWS.path(namespace, NOWHERE), {"metadata": {}}),
    ("events", "create"): _event,
    ("events", "patch"): lambda api, namespace: api.patch(EVENTS.path(namespace, NOWHERE), {"metadata": {}}),
    ("leases", "create"): _lease(Create(Lease("test", 15.0))),
    ("leases", "get"): _lease(Read()),
    ("leases", "update"): _lease(Replace(Lease("test", 15.0, 0, "1"))),
}


def refused(deed: Deed, api: KubeApi, namespace: str) -> str:
    """Return why the API server refuses the deed to this account; nothing where it lets it."""
    try:
        deed(api, namespace)
    except ForbiddenError as error:
        return str(error)
    except LeaseUnavailableError as error:
        return str(error) if isinstance(error.__cause__, ForbiddenError) else ""
    except ApiError as error:
        return str(error) if "403" in str(error) else ""  # a WebSocket tells no more
    return ""


def until(condition: Callable[[], object]) -> bool:
    """Wait for what the API server's authorizer learns within a second or so."""
    for _ in range(100):
        if condition():
            return True
        time.sleep(0.1)
    return False


def test_there_is_a_deed_for_each_permission_of_the_controller() -> None:
    assert set(DEEDS) == {(row.resource, row.verb) for row in ROWS if row.role != "executor"}


@pytest.mark.parametrize("deed", sorted(DEEDS), ids=" ".join)
def test_with_all_permissions_each_deed_is_allowed(office: Office, full: KubeApi, deed: tuple[str, str]) -> None:
    assert until(lambda: not refused(DEEDS[deed], full, office.namespace)), refused(DEEDS[deed], full, office.namespace)


@pytest.mark.parametrize(
    "missing", [row for row in ROWS if row.role != "executor"], ids=lambda row: f"{row.verb} {row.resource}"
)
def test_without_a_permission_its_deed_is_refused_and_the_others_are_not(office: Office, missing: Permission) -> None:
    api = office.account(missing)
    others = [deed for name, deed in DEEDS.items() if name[0] != missing.resource]
    assert until(lambda: not any(refused(deed, api, office.namespace) for deed in others))
    deed = DEEDS[missing.resource, missing.verb]
    assert until(lambda: refused(deed, api, office.namespace))
    assert not until_allowed_shortly(deed, api, office.namespace)


def until_allowed_shortly(deed: Deed, api: KubeApi, namespace: str) -> bool:
    time.sleep(0.5)
    return not refused(deed, api, namespace)


@pytest.mark.parametrize("verb", ["create", "patch"])
def test_the_executor_may_report_with_its_role_and_not_without(office: Office, verb: str) -> None:
    name = f"account-{secrets.token_hex(4)}"
    office.admin.create(ACCOUNTS.path(office.namespace), _object(name))
    api = office._access(name)

    def report(api: KubeApi, namespace: str) -> None:
        if verb == "create":
            api.create(RESULTS.path(namespace), _object(f"test-{secrets.token_hex(4)}"))
        else:
            api.patch(RESULTS.path(namespace, NOWHERE), {"metadata": {}})

    assert refused(report, api, office.namespace)
    for one in of_kind(render(MANIFESTS / "sweep-namespace"), "Role", "RoleBinding"):
        office._grant(copy.deepcopy(one), name, ())
    assert until(lambda: not refused(report, api, office.namespace))


def test_a_sweep_with_a_resize_and_a_move_passes_with_these_permissions_alone(
    admin: KubeApi, cluster: AnyCluster, tmp_path: Path
) -> None:
    cluster.show_folder(tmp_path)
    bench = ArgoBench(str(cluster.kubeconfig), tmp_path)
    office = Office(admin, bench._namespace)
    try:
        bench.submit(a=Behaviour(steps=300))
        _take_over(bench, office.account())
        bench.until_running("a")
        here = bench.trial("a")
        assert bench.world.apply(Resize(here.id, 0.15)).done
        bench.until(lambda: bench.trial("a").cpu == 0.15)
        there = next(node for node in bench.nodes if node != here.node)
        bench.until(lambda: bench.world.apply(Migrate(here.id, (there,))).done)
        bench.until(lambda: bench.trial("a").phase is Phase.RUNNING and bench.trial("a").node == there)
        _save_state(bench)
        bench.until(lambda: bench.trial("a").phase is Phase.SUCCEEDED)
        assert bench.steps("a") == list(range(300))
        assert bench.trial("a").moves == 1
        until(lambda: {"Moving", "Resized"} <= _reasons(admin, bench._namespace))
        assert {"Moving", "Resized"} <= _reasons(admin, bench._namespace)
    finally:
        bench._api = admin
        bench.close()
        office.close()


def _take_over(bench: ArgoBench, account: KubeApi) -> None:
    """Let the account drive the bench's world from here on, as a controller that starts again."""
    assert until(lambda: not any(refused(deed, account, bench._namespace) for deed in DEEDS.values()))
    before, bench._api = bench._api, account
    bench._events.close()
    bench._events = EventWriter(account)
    bench.restart_controller()
    before.close()


def _save_state(bench: ArgoBench) -> None:
    assert bench._view is not None
    campaign = bench._view.campaigns("default")[0]
    for number in range(2):
        store = ConfigMapStore(bench._api, campaign, time.monotonic)
        store.load()
        store.save(partial(json.dumps, {"number": number}), urgent=True)
    assert ConfigMapStore(bench._api, campaign, time.monotonic).load() == '{"number": 1}'


def _reasons(admin: KubeApi, namespace: str) -> set[str]:
    return {str(event["reason"]) for event in admin.get(EVENTS.path(namespace))["items"]}


@pytest.mark.parametrize("component", sorted(left_out()))
def test_the_controller_finds_out_what_a_component_leaves_out(office: Office, full: KubeApi, component: str) -> None:
    api = office.account(*(row for row in ROWS if row not in set(documented(component))))
    lacking = {"without-exec": Grants(signals=False), "without-eviction": Grants(evicts=False)}[component]
    assert until(lambda: _granted(full, office.namespace) == Grants())
    assert until(lambda: _granted(api, office.namespace) == lacking)


def _granted(api: KubeApi, namespace: str) -> Grants:
    reviews = GrantReviews(api, [namespace], "auto", lambda: None)
    reviews.start()
    assert until(lambda: reviews.synced)
    reviews.stop()
    return reviews.of(namespace)


def test_a_budget_keeps_a_pod_that_runs_and_none_that_is_on_its_way_out(admin: KubeApi, office: Office) -> None:
    pod = admin.create(PODS.path(office.namespace), _sleeper())
    path = PODS.path(office.namespace, pod["metadata"]["name"])
    budget = {"selector": {"matchLabels": {"app": "sleeper"}}, "minAvailable": 1}
    admin.create(BUDGETS.path(office.namespace), {**_object("one"), "spec": budget})
    record = _nobody(office.namespace)
    for name, value in {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}.items():
        object.__setattr__(record, name, value)
    assert until(lambda: at(admin.get(path), "status", "phase") == "Running")
    assert until(lambda: _is_kept(admin, record))
    admin._json("DELETE", path, body={"gracePeriodSeconds": 600})
    pod_changes.evict(admin, record, waits=False)
    with pytest.raises(NotFoundError):
        admin.get(path)


def _is_kept(api: KubeApi, pod: PodRecord) -> bool:
    try:
        pod_changes.evict(api, pod, waits=False)
    except BudgetError:
        return True
    pytest.fail("the pod was evicted in spite of its budget")


def _sleeper() -> Json:
    script = "trap '' TERM; while true; do sleep 1; done"
    container = {"name": "main", "image": SHELL_IMAGE, "command": ["sh", "-c", script]}
    metadata = {"name": "sleeper", "labels": {"app": "sleeper"}}
    return {"metadata": metadata, "spec": {"containers": [container], "terminationGracePeriodSeconds": 600}}


def test_the_lease_of_another_name_is_not_for_the_controller(office: Office, full: KubeApi) -> None:
    with contextlib.suppress(ConflictError):
        office.admin.create(LEASES.path(office.namespace), _object("another"))
    with pytest.raises(LeaseUnavailableError, match="403"):
        KubernetesLease(full, office.namespace, "another").carry_out(Read())
