"""The API server, the namespace, and what both offer to pods that are placed and resized."""

import re
from collections.abc import Iterator
from typing import Final

from controllers.worlds.argo.calls.untrusted import mappings, text
from hera_specon.doctor.facts import Answer, ServerFacts, Unread, Why
from hera_specon.doctor.findings import Finding, fault, ok, unknown, warning

Version = tuple[int, int]
LEAST: Final[Version] = (1, 33)
_STABLE: Final[Version] = (1, 35)
_GATES: Final[Version] = (1, 27)
_LACKS: Final = {
    (1, 33): (
        "beside 1.35 it lacks priorities among resizes that wait, memory limits that fall without a restart, and a "
        "resize in place that is stable (it is beta, and on unless it was switched off)"
    ),
    (1, 34): "beside 1.35 it lacks a resize in place that is stable (it is beta, and on unless it was switched off)",
}
_NUMBERS: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})")
_MOST_NAMED: Final = 5


def check_server(facts: ServerFacts) -> Iterator[Finding]:
    """Yield whether the API server answers, is new enough, and has the namespace."""
    if isinstance(facts.version, Unread):
        what = f"{facts.host} does not tell its version: {facts.version.words}"
        if facts.version.why is Why.FORBIDDEN:
            yield fault(
                "API server",
                what,
                "Log in again, or choose another --context: it does not take this login.",
                "kubectl auth whoami",
            )
        else:
            yield fault("API server", what, "See whether kubectl reaches it from here.", "kubectl cluster-info")
        return
    yield _check_version(facts.host, version_of(facts.version), text(facts.version, "gitVersion", most=100))
    yield _check_namespace(facts.name, facts.namespace)


def _check_version(host: str, version: Version | None, told: str) -> Finding:
    if version is None:
        advice = "Kubernetes 1.33 and newer is supported; see what it says of itself."
        return unknown("Kubernetes", f"{host} says its version is {told!r}", advice, "kubectl version")
    if version < LEAST:
        return fault(
            "Kubernetes",
            f"{told} at {host}, which cannot resize pods in place",
            "Ask the platform team for Kubernetes 1.33 or newer.",
        )
    lacks = next((words for least, words in reversed(_LACKS.items()) if least <= version < _STABLE), "")
    return ok("Kubernetes", f"{told} at {host}" + (f"; {lacks}" if lacks else ""))


def _check_namespace(name: str, answer: Answer) -> Finding:
    if not isinstance(answer, Unread):
        if text(answer, "status", "phase") == "Terminating":
            return fault("namespace", f"{name} is being deleted", "Choose another with -n, or wait and make it again.")
        return ok("namespace", f"{name} is there")
    if answer.why is Why.MISSING:
        advice = "Make it, or choose another with -n."
        return fault("namespace", f"there is none called {name}", advice, f"kubectl create namespace {name}")
    advice = "The try-out pod shows whether it is there; or list what you can see."
    return unknown("namespace", f"{name}: {answer.told}", advice, f"kubectl get pods -n {name}")


def check_resizing(facts: ServerFacts) -> Iterator[Finding]:
    """Yield whether shares can change in place, and trials can be held until a node is chosen."""
    if isinstance(facts.version, Unread):
        return
    version = version_of(facts.version)
    yield _check_subresource(facts.core)
    if version is not None and version < _GATES:
        advice = "Ask the platform team for Kubernetes 1.33 or newer: policies that move trials need gates."
        yield fault("scheduling gates", "this API server has none", advice)
    elif version is not None:
        yield ok("scheduling gates", "this API server has them")
    yield _check_kubelets(facts, version)


def _check_subresource(core: Answer) -> Finding:
    subject = "resize in place"
    if isinstance(core, Unread):
        advice = "The try-out pod shows it; or see whether pods/resize is listed."
        return unknown(subject, core.told, advice, "kubectl get --raw /api/v1")
    if serves(core, "pods/resize", "patch"):
        return ok(subject, "this API server offers it (pods/resize)")
    return warning(
        subject,
        "this API server does not offer pods/resize",
        "Trials run and move, but no share changes; ask the platform team to switch on the feature gate "
        "InPlacePodVerticalScaling, or choose a policy that only moves trials.",
        "specon policies",
    )


def serves(resources: Answer, name: str, verb: str) -> bool:
    """Return whether a discovery document lists a resource with a verb."""
    listed = mappings(resources, "resources") if not isinstance(resources, Unread) else iter(())
    return any(item.get("name") == name and verb in (item.get("verbs") or ()) for item in listed)


def _check_kubelets(facts: ServerFacts, server: Version | None) -> Finding:
    subject = "nodes"
    if isinstance(facts.nodes, Unread):
        advice = (
            "Nothing needs it of you: the controller lists nodes itself. Whether they are as new as the API server is "
        )
        advice += "for the platform team to say."
        return unknown(subject, facts.nodes.told, advice, "kubectl get nodes")
    kubelets = {
        text(node, "metadata", "name", most=253): text(node, "status", "nodeInfo", "kubeletVersion", most=100)
        for node in facts.nodes
    }
    if not kubelets:
        advice = "Pods wait until there is one; an autoscaler adds nodes once a pod waits."
        return warning(subject, "there are none at present", advice, "kubectl get nodes")
    of_version = {name: _numbers(told) for name, told in kubelets.items()}
    old = [name for name, version in of_version.items() if version is not None and version < LEAST]
    newer = [name for name, version in of_version.items() if server and version is not None and version > server]
    if old:
        what = f"{_named(old)}: the kubelet is older than 1.33, so no share changes there"
        return warning(subject, what, "Ask the platform team to update these nodes.", "kubectl get nodes")
    if newer:
        what = f"{_named(newer)}: the kubelet is newer than the API server, which Kubernetes does not support"
        return warning(subject, what, "Ask the platform team to update the control plane.", "kubectl get nodes")
    return ok(subject, f"{len(kubelets)}, with kubelet {', '.join(sorted(set(kubelets.values()))[:_MOST_NAMED])}")


def version_of(answer: Answer) -> Version | None:
    """Return the major and minor version of an API server."""
    if isinstance(answer, Unread):
        return None
    return _numbers(f"{text(answer, 'major', most=8)}.{text(answer, 'minor', most=8)}") or _numbers(
        text(answer, "gitVersion", most=100)
    )


def _numbers(told: str) -> Version | None:
    found = _NUMBERS.match(told)
    return (int(found[1]), int(found[2])) if found else None


def _named(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
