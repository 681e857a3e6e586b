"""Our controller: whether it is there, steers this namespace, and may act in it."""

from collections.abc import Iterator, Sequence
from typing import Final

from controllers.worlds.argo.calls.untrusted import text, whole
from hera_specon.doctor.checks.permissions import ARGO
from hera_specon.doctor.facts import Allowed, ControllerFacts, Permission, Unread
from hera_specon.doctor.findings import Finding, fault, ok, unknown, warning

_SETTING: Final = "SPECON_CONTROLLER_"
_GUIDE: Final = "docs/how-to/deploy-the-controller.md"
_FIND: Final = "kubectl get deployments -A -l app.kubernetes.io/name=specon-controller"
_TRUE: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
_DEEDS: Final = {
    "place and move trials": (
        Permission("get", "pods"),
        Permission("patch", "pods"),
        Permission("patch", "workflows", ARGO),
    ),
    "change shares": (Permission("patch", "pods/resize"),),
    "keep its state": tuple(Permission(verb, "configmaps") for verb in ("get", "create", "update")),
}
_ASK: Final = Permission("create", "pods/exec")
_FREE: Final = Permission("create", "pods/eviction")
ACTS: Final = (*(need for needs in _DEEDS.values() for need in needs), _ASK, _FREE)
"""What is asked of the controller's permissions."""


def check_controller(facts: ControllerFacts, waits: Sequence[str]) -> Iterator[Finding]:
    """Yield what the controller can do for sweeps in the namespace; the trials of ``waits`` start only under one."""
    subject = "controller"
    if isinstance(facts.deployments, Unread) or not facts.deployments:
        yield _not_seen(facts, waits)
        return
    deployment = facts.deployments[0]
    name, namespace = (text(deployment, "metadata", field, most=253) for field in ("name", "namespace"))
    told = f"Deployment {namespace}/{name}"
    if not whole(deployment, "status", "readyReplicas"):
        judge = fault if waits else warning
        advice = "Trials run where the scheduler puts them until it is; see why its pods are not ready."
        yield judge(
            subject, f"{told} has no pod that is ready", advice, f"kubectl logs deployment/{name} -n {namespace}"
        )
        return
    yield _check_settings(facts, told, namespace)
    yield _check_allowed(facts, told)


def _not_seen(facts: ControllerFacts, waits: Sequence[str]) -> Finding:
    subject = "controller"
    if facts.adopted:
        return ok(subject, f"one steers workflow {facts.adopted[0]}")
    if not facts.everywhere:
        advice = "Ask the platform team whether one steers this namespace."
        return unknown(subject, f"none in {facts.name} and you may not look elsewhere", advice, _FIND)
    if waits:
        advice = f"The trials of {', '.join(waits)} wait for one; install it ({_GUIDE})."
        return fault(subject, "there is none", advice, "kubectl apply -k manifests/overlays/namespaced")
    advice = f"Trials run where the scheduler puts them, and none moves or is resized; install it ({_GUIDE})."
    return warning(subject, "there is none", advice, "kubectl apply -k manifests/overlays/namespaced")


def _check_settings(facts: ControllerFacts, told: str, own: str) -> Finding:
    subject = "controller"
    if isinstance(facts.settings, Unread):
        advice = "Ask the platform team which namespaces it steers, and whether it only recommends."
        return unknown(subject, f"{told} is ready; its settings: {facts.settings.told}", advice)

    def setting(name: str) -> str:
        return facts.settings.get(_SETTING + name, "") if not isinstance(facts.settings, Unread) else ""

    named = [part.strip() for part in setting("NAMESPACE").split(",") if part.strip()] or [own]
    everywhere = setting("ALL_NAMESPACES").lower() in _TRUE
    if not everywhere and facts.name not in named:
        what = f"{told} steers {', '.join(named)}, and not {facts.name}"
        advice = f"Submit to one of these, or ask the platform team to let it steer {facts.name} ({_GUIDE})."
        return warning(subject, what, advice, f"kubectl apply -n {facts.name} -k manifests/steered-namespace")
    if setting("RECOMMEND").lower() in _TRUE:
        advice = "It moves and resizes nothing; ask the platform team to let it act."
        return warning(subject, f"{told} is ready, but only recommends", advice)
    return ok(subject, f"{told} is ready, acts, and its policy is {setting('POLICY') or 'ahead'}")


def _check_allowed(facts: ControllerFacts, told: str) -> Finding:
    subject, allowed = "controller's role", facts.allowed
    if all(may is None for may in allowed.values()):
        advice = "You may not ask what it may do here; the platform team may."
        return unknown(subject, told, advice, f"kubectl get rolebindings -n {facts.name} -o wide")
    cannot = [deed for deed, needs in _DEEDS.items() if any(allowed.get(need) is False for need in needs)]
    if cannot:
        advice = f"Ask the platform team to bind its roles in {facts.name} (docs/reference/permissions.md)."
        command = f"kubectl apply -n {facts.name} -k manifests/steered-namespace"
        return warning(subject, f"it may not {', not '.join(cannot)} here", advice, command)
    return ok(subject, f"it may {', '.join(_DEEDS)}{_ways(allowed)}")


def _ways(allowed: Allowed) -> str:
    """Return how it moves trials and frees lost ones; None of both is needed."""
    asks, frees = allowed.get(_ASK), allowed.get(_FREE)
    told = ["asking them to leave by exec" if asks else "asking them to leave by an annotation"]
    told += [] if frees else ["without evicting pods"]
    return f", {' and '.join(told)}"
