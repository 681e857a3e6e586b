from typing import Any

import pytest

from hera_specon.doctor.checks.argo import check_argo
from hera_specon.doctor.facts import ArgoFacts, Unread, Why

FORBIDDEN = Unread(Why.FORBIDDEN, "403")
MISSING = Unread(Why.MISSING, "404")
API = {"resources": [{"name": name, "verbs": ["create"]} for name in ("workflows", "workflowtaskresults")]}


def deployment(image: str, available: int = 1) -> dict[str, Any]:
    return {
        "metadata": {"name": "workflow-controller", "namespace": "argo"},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
        "status": {"availableReplicas": available},
    }


def pod(image: str) -> dict[str, Any]:
    return {"spec": {"initContainers": [{"image": image}], "containers": []}}


NOTHING: dict[str, Any] = {
    "resources": API,
    "deployments": FORBIDDEN,
    "lease": FORBIDDEN,
    "pods": [],
    "workflows": [],
    "now": 1_767_225_630.0,
}
LEASE = {"spec": {"renewTime": "2026-01-01T00:00:20.000000Z"}}
V4 = "quay.io/argoproj/workflow-controller:v4.0.7"


@pytest.mark.parametrize(
    ("facts", "subject", "verdict", "words"),
    [
        ({}, "Argo's API", "ok", "workflowtaskresults"),
        ({"resources": MISSING}, "Argo's API", "fault", "no Argo"),
        ({"resources": FORBIDDEN}, "Argo's API", "cannot tell", "may not"),
        ({"resources": {"resources": API["resources"][:1]}}, "Argo's API", "fault", "workflowtaskresults"),
        ({}, "Argo's version", "cannot tell", "neither"),
        ({"deployments": [deployment(V4)]}, "Argo's version", "ok", "v4.0.7"),
        ({"deployments": [deployment(f"{V4}@sha256:00")]}, "Argo's version", "ok", "v4.0.7"),
        ({"deployments": [deployment("argo/workflow-controller@sha256:00")]}, "Argo's version", "cannot tell", ""),
        ({"deployments": [deployment("argo/workflow-controller:v3.5.15")]}, "Argo's version", "warning", "v3.5.15"),
        ({"pods": [pod("quay.io/argoproj/argoexec:v3.7.14")]}, "Argo's version", "ok", "v3.7.14"),
        ({"pods": [pod("argoexec:latest")]}, "Argo's version", "cannot tell", ""),
        ({}, "workflow-controller", "cannot tell", "nothing"),
        ({"deployments": [deployment(V4)]}, "workflow-controller", "ok", "argo/workflow-controller"),
        ({"deployments": [deployment(V4, 0)]}, "workflow-controller", "fault", "no pod"),
        ({"lease": LEASE}, "workflow-controller", "ok", "10 s ago"),
        ({"lease": LEASE, "now": 1_767_229_200.0}, "workflow-controller", "cannot tell", "nothing"),
        ({"workflows": [{"status": {"phase": "Running"}}]}, "workflow-controller", "ok", "took on"),
        ({"workflows": [{"status": {}}]}, "workflow-controller", "cannot tell", "nothing"),
    ],
)
def test_what_shows_of_argo(facts: dict[str, Any], subject: str, verdict: str, words: str) -> None:
    found = {one.subject: one for one in check_argo(ArgoFacts(**{**NOTHING, **facts}))}
    assert found[subject].verdict == verdict
    assert words in found[subject].found
    assert found[subject].advice or verdict == "ok"
