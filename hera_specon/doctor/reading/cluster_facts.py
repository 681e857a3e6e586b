"""The facts of a cluster, each from the few calls that it takes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from controllers.core import labels
from controllers.core.errors import SpeconError
from controllers.worlds.argo.calls.api import CONFIG_MAPS, NODES, PODS, WORKFLOWS, Resource
from controllers.worlds.argo.calls.errors import ApiError
from controllers.worlds.argo.calls.untrusted import at, mappings, strings, text
from controllers.worlds.argo.reading.pods import LABEL_WORKFLOW
from hera_specon.cluster.access import Access, claim_warnings, device_warnings, gang_warnings
from hera_specon.cluster.claimed_devices import claimed_device_warnings
from hera_specon.doctor.checks.controller import ACTS
from hera_specon.doctor.checks.permissions import EXECUTOR, USER
from hera_specon.doctor.facts import (
    ArgoFacts,
    ControllerFacts,
    LimitFacts,
    Listing,
    PermissionFacts,
    QueueFacts,
    ServerFacts,
    Unread,
    VolumeFacts,
)
from hera_specon.doctor.reading.look import ask, look, look_at_all, may_account, may_i
from hera_specon.doctor.sweep_needs import SweepNeeds
from hera_specon.submission.checks import asked_claims, asked_devices, asked_gangs, state_claims

NAMESPACES: Final = Resource("api/v1", "namespaces")
ACCOUNTS: Final = Resource("api/v1", "serviceaccounts")
QUOTAS: Final = Resource("api/v1", "resourcequotas")
RANGES: Final = Resource("api/v1", "limitranges")
DEPLOYMENTS: Final = Resource("apis/apps/v1", "deployments")
LEASES: Final = Resource("apis/coordination.k8s.io/v1", "leases")
ARGO_GROUP: Final = "/" + WORKFLOWS.group
KUEUE_GROUP: Final = "/apis/kueue.x-k8s.io"
_ARGOS: Final = "argo"
"""The namespace that Argo's own manifests are for."""
_OURS: Final = "hera-specon"
_WORKFLOW_CONTROLLER: Final = "workflow-controller"
_FEW: Final = {"limit": "20"}


def read_server(access: Access) -> ServerFacts:
    """Read what the API server is and offers."""
    api, name = access.api, access.namespace
    return ServerFacts(
        host=api.host,
        version=look(api, "/version"),
        name=name,
        namespace=look(api, NAMESPACES.path(None, name)),
        core=look(api, "/api/v1"),
        nodes=look_at_all(api, NODES.path()),
    )


def read_argo(access: Access) -> ArgoFacts:
    """Read what shows of Argo: to many users, only what its workflows left in their own namespace."""
    api = access.api
    deployments, _ = _deployments(access, _ARGOS, {})
    if not isinstance(deployments, Unread):
        deployments = [one for one in deployments if _runs(one, _WORKFLOW_CONTROLLER)]
    return ArgoFacts(
        resources=look(api, ARGO_GROUP),
        deployments=deployments,
        lease=look(api, LEASES.path(_ARGOS, _WORKFLOW_CONTROLLER)),
        pods=_first(access, PODS, {"labelSelector": LABEL_WORKFLOW}),
        workflows=_first(access, WORKFLOWS, {}),
        now=api.epoch(),
    )


def _first(access: Access, resource: Resource, query: Mapping[str, str]) -> Listing:
    """Return some objects of a kind in the namespace: one says as much as thousands."""
    answer = ask(lambda: access.api.get(resource.path(access.namespace), {**query, **_FEW}))
    return answer if isinstance(answer, Unread) else list(mappings(answer, "items"))


def _deployments(access: Access, home: str, query: Mapping[str, str]) -> tuple[Listing, bool]:
    """Return the Deployments of all namespaces, or else of ours and of ``home``; and whether it were all."""
    found = look_at_all(access.api, DEPLOYMENTS.path(), query)
    if not isinstance(found, Unread):
        return found, True
    some = [look_at_all(access.api, DEPLOYMENTS.path(name), query) for name in (access.namespace, home)]
    read = [one for listing in some if not isinstance(listing, Unread) for one in listing]
    return (found if all(isinstance(listing, Unread) for listing in some) else read), False


def _runs(deployment: Mapping[str, Any], image: str) -> bool:
    containers = mappings(deployment, "spec", "template", "spec", "containers")
    return any(image in text(container, "image", most=500) for container in containers)


def read_permissions(access: Access, account: str) -> PermissionFacts:
    """Read what the user may do, and what ``account``, by which the executor of a sweep's pods reports."""
    api, namespace = access.api, access.namespace
    return PermissionFacts(
        name=namespace,
        user=may_i(api, namespace, USER),
        account=account,
        account_object=look(api, ACCOUNTS.path(namespace, account)),
        executor=may_account(api, namespace, (namespace, account), EXECUTOR),
    )


def read_controller(access: Access) -> ControllerFacts:
    """Read what shows of our controller."""
    deployments, everywhere = _deployments(access, _OURS, {"labelSelector": "app.kubernetes.io/name=specon-controller"})
    first = None if isinstance(deployments, Unread) or not deployments else deployments[0]
    home = text(first, "metadata", "namespace", most=253)
    account = text(first, "spec", "template", "spec", "serviceAccountName", most=253)
    workflows = _first(access, WORKFLOWS, {})
    return ControllerFacts(
        name=access.namespace,
        deployments=deployments,
        everywhere=everywhere,
        settings={} if first is None else _settings(access, first, home),
        allowed=may_account(access.api, access.namespace, (home, account), ACTS) if account else dict.fromkeys(ACTS),
        adopted=[] if isinstance(workflows, Unread) else [*filter(None, map(_adopted, workflows))],
    )


def _adopted(workflow: Mapping[str, Any]) -> str:
    uid = text(workflow, "metadata", "uid")
    marked = uid and text(workflow, "metadata", "annotations", labels.ANNOTATION_ADOPTED) == uid
    return text(workflow, "metadata", "name") if marked and not text(workflow, "status", "finishedAt") else ""


def _settings(access: Access, deployment: Mapping[str, Any], home: str) -> Mapping[str, str] | Unread:
    """Return the controller's settings: those of its ConfigMaps, and over them those of its own environment."""
    found: dict[str, str] = {}
    for container in mappings(deployment, "spec", "template", "spec", "containers"):
        for source in mappings(container, "envFrom"):
            if name := text(source, "configMapRef", "name", most=253):
                answer = look(access.api, CONFIG_MAPS.path(home, name))
                if isinstance(answer, Unread):
                    return answer
                found |= strings(answer, "data")
        found |= {text(entry, "name"): text(entry, "value") for entry in mappings(container, "env")}
        arguments = at(container, "args")
        if isinstance(arguments, list) and "--recommend" in arguments:
            found["SPECON_CONTROLLER_RECOMMEND"] = "true"
    return found


def read_limits(access: Access) -> LimitFacts:
    """Read what bounds pods of the namespace."""
    quotas, ranges = (look_at_all(access.api, kind.path(access.namespace)) for kind in (QUOTAS, RANGES))
    return LimitFacts(name=access.namespace, quotas=quotas, ranges=ranges)


def read_queues(access: Access) -> QueueFacts:
    """Read the queues that Kueue has in the namespace."""
    group = look(access.api, KUEUE_GROUP)
    if isinstance(group, Unread):
        return QueueFacts(name=access.namespace, queues=group)
    version = text(group, "preferredVersion", "version", most=63)
    queues = Resource(f"{KUEUE_GROUP.removeprefix('/')}/{version}", "localqueues")
    return QueueFacts(name=access.namespace, queues=look_at_all(access.api, queues.path(access.namespace)))


def read_volumes(access: Access, needs: SweepNeeds) -> VolumeFacts:
    """Read whether the claims of a sweep are there, and whether nodes are large enough for its trials."""
    claims = {claim: _claim(access, claim) for claim in sorted(state_claims(needs.manifest))}
    try:
        too_large = [
            *device_warnings(access, asked_devices(needs.manifest)),
            *gang_warnings(access, asked_gangs(needs.manifest)),
        ]
    except ApiError:
        too_large = []  # what stands against listing nodes is told of nodes
    try:
        claimed = [*claimed_device_warnings(access, asked_claims(needs.manifest))]
    except ApiError:
        claimed = []  # likewise
    return VolumeFacts(name=access.namespace, claims=claims, too_large=too_large, claimed=claimed)


def _claim(access: Access, claim: str) -> tuple[str, Sequence[str]]:
    try:
        return "", list(claim_warnings(access, {claim}))
    except SpeconError as error:
        return str(error), ()
