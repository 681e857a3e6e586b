from typing import Any

import pytest

from hera_specon.doctor.checks.server import check_resizing, check_server
from hera_specon.doctor.facts import ServerFacts, Unread, Why
from hera_specon.doctor.findings import Finding

FORBIDDEN = Unread(Why.FORBIDDEN, "403")
MISSING = Unread(Why.MISSING, "404")
RESIZE = {"resources": [{"name": "pods/resize", "verbs": ["get", "patch"]}]}


def version(minor: str) -> dict[str, str]:
    return {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.0"}


def node(kubelet: str) -> dict[str, Any]:
    return {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"kubeletVersion": kubelet}}}


def judged(**facts: Any) -> dict[str, Finding]:  # noqa: ANN401 - as ServerFacts has it
    given = {
        "host": "https://here",
        "version": version("36"),
        "name": "lab",
        "namespace": {"status": {"phase": "Active"}},
        "core": RESIZE,
        "nodes": [node("v1.36.2")],
        **facts,
    }
    whole = ServerFacts(**given)
    return {one.subject: one for one in (*check_server(whole), *check_resizing(whole))}


@pytest.mark.parametrize(
    ("facts", "subject", "verdict", "words"),
    [
        ({}, "Kubernetes", "ok", "v1.36.0"),
        ({"version": version("35")}, "Kubernetes", "ok", "v1.35.0 at https://here"),
        ({"version": version("34+")}, "Kubernetes", "ok", "beside 1.35"),
        ({"version": version("33")}, "Kubernetes", "ok", "memory limits that fall"),
        ({"version": version("32")}, "Kubernetes", "fault", "cannot resize"),
        ({"version": version("26")}, "scheduling gates", "fault", "none"),
        ({"version": {"gitVersion": "v1.37.0-rc.1"}}, "Kubernetes", "ok", "v1.37.0-rc.1"),
        ({"version": {"major": 1}}, "Kubernetes", "cannot tell", "''"),
        ({"version": FORBIDDEN}, "API server", "fault", "403"),
        ({"version": Unread(Why.UNANSWERED, "refused")}, "API server", "fault", "refused"),
        ({"namespace": MISSING}, "namespace", "fault", "none called lab"),
        ({"namespace": FORBIDDEN}, "namespace", "cannot tell", "you may not read it"),
        ({"namespace": {"status": {"phase": "Terminating"}}}, "namespace", "fault", "being deleted"),
        ({"core": {"resources": [{"name": "pods/resize"}]}}, "resize in place", "warning", "does not offer"),
        ({"core": FORBIDDEN}, "resize in place", "cannot tell", "may not"),
        ({"nodes": FORBIDDEN}, "nodes", "cannot tell", "may not"),
        ({"nodes": []}, "nodes", "warning", "none at present"),
        ({"nodes": [node("v1.32.1")]}, "nodes", "warning", "n1"),
        ({"nodes": [node("v1.37.0")]}, "nodes", "warning", "newer than the API server"),
        ({"nodes": [node("")]}, "nodes", "ok", "1, with"),
    ],
)
def test_what_a_server_says(facts: dict[str, Any], subject: str, verdict: str, words: str) -> None:
    finding = judged(**facts)[subject]
    assert finding.verdict == verdict
    assert words in finding.found
    assert finding.advice or verdict == "ok"


def test_after_a_server_that_does_not_answer_nothing_is_judged() -> None:
    assert list(judged(version=FORBIDDEN)) == ["API server"]
