"""Argo Workflows: its API, its version, and whether its controller lives."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from controllers.worlds.argo.calls.untrusted import epoch, mappings, text
from hera_specon.doctor.checks.server import serves
from hera_specon.doctor.facts import ArgoFacts, Unread, Why
from hera_specon.doctor.findings import Finding, fault, ok, unknown, warning
from hera_specon.formatting import seconds

_LEAST: Final = (3, 6)
_INSTALL: Final = (
    "kubectl create namespace argo && kubectl apply --server-side -n argo "
    "-f https://github.com/argoproj/argo-workflows/releases/download/v4.0.7/install.yaml"
)
_CONTROLLER: Final = re.compile(r"workflow-controller:v?(\d{1,4})\.(\d{1,4})(\.[\w.-]{1,40})?$")
_EXECUTOR: Final = re.compile(r"argoexec:v?(\d{1,4})\.(\d{1,4})(\.[\w.-]{1,40})?$")
_LEASE_OLD_S: Final = 60.0


def check_argo(facts: ArgoFacts) -> Iterator[Finding]:
    """Yield whether Argo is installed, is new enough, and acts on workflows."""
    subject = "Argo's API"
    if isinstance(facts.resources, Unread):
        if facts.resources.why is Why.MISSING:
            advice = "Ask the platform team to install Argo Workflows 3.6 or newer."
            yield fault("Argo's API", "this API server knows no Argo workflows", advice, _INSTALL)
            return
        advice = "See whether workflows and workflowtaskresults are listed."
        yield unknown(subject, facts.resources.told, advice, "kubectl api-resources --api-group=argoproj.io")
    else:
        lacks = [name for name in ("workflows", "workflowtaskresults") if not serves(facts.resources, name, "create")]
        if lacks:
            yield fault(
                subject, f"it lacks {' and '.join(lacks)}", "Install all of Argo's custom resources again.", _INSTALL
            )
        else:
            yield ok(subject, "workflows and workflowtaskresults are there")
    yield _check_version(facts)
    yield _check_alive(facts)


def _check_version(facts: ArgoFacts) -> Finding:
    subject = "Argo's version"
    deployed = [] if isinstance(facts.deployments, Unread) else [*facts.deployments]
    ran = [] if isinstance(facts.pods, Unread) else [*facts.pods]
    found = _newest(deployed, _CONTROLLER, ("spec", "template", "spec")) or _newest(ran, _EXECUTOR, ("spec",))
    if found is None:
        advice = "Argo 3.6 and newer is supported; its controller's image names the version."
        command = "kubectl get deployments -A -o wide | grep workflow-controller"
        return unknown(
            subject, "neither its Deployment nor a workflow's pod could be seen with a version", advice, command
        )
    version, told = found
    if version < _LEAST:
        advice = "Ask the platform team for Argo 3.6 or newer: what is older was never tried."
        return warning(subject, told, advice, _INSTALL)
    return ok(subject, told)


def _newest(
    things: list[Mapping[str, Any]], image: re.Pattern[str], spec: tuple[str, ...]
) -> tuple[tuple[int, int], str] | None:
    found = []
    for thing in things:
        for kind in ("containers", "initContainers"):
            for container in mappings(thing, *spec, kind):
                name = text(container, "image", most=500).partition("@")[0]
                if matched := image.search(name):
                    found.append(((int(matched[1]), int(matched[2])), name))
    return max(found, default=None)


def _check_alive(facts: ArgoFacts) -> Finding:
    subject = "workflow-controller"
    if not isinstance(facts.deployments, Unread) and facts.deployments:
        name = f"{text(facts.deployments[0], 'metadata', 'namespace')}/{text(facts.deployments[0], 'metadata', 'name')}"
        if any(_available(one) for one in facts.deployments):
            return ok(subject, f"Deployment {name} is available")
        namespace, _, plain = name.partition("/")
        advice = "No workflow goes on until it runs; see why it does not."
        return fault(
            subject,
            f"Deployment {name} has no pod that is available",
            advice,
            f"kubectl describe deployment {plain} -n {namespace}",
        )
    renewed = None if isinstance(facts.lease, Unread) else epoch(facts.lease, "spec", "renewTime")
    if renewed is not None and facts.now is not None and facts.now - renewed < _LEASE_OLD_S:
        return ok(subject, f"it renewed its lease {seconds(max(0.0, facts.now - renewed))} ago")
    taken = () if isinstance(facts.workflows, Unread) else facts.workflows
    if any(text(workflow, "status", "phase") for workflow in taken):
        return ok(subject, "it took on workflows of this namespace")
    advice = "The try-out shows whether it lives; or submit Argo's own hello-world."
    return unknown(
        subject, "nothing of it can be seen from here", advice, "kubectl get deployments -A | grep workflow-controller"
    )


def _available(deployment: Mapping[str, Any]) -> bool:
    status = deployment.get("status")
    count = status.get("availableReplicas") if isinstance(status, Mapping) else None
    return isinstance(count, int) and count > 0
