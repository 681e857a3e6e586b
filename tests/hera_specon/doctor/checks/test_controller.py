from typing import Any

import pytest

from hera_specon.doctor.checks.controller import ACTS, check_controller
from hera_specon.doctor.facts import ControllerFacts, Permission, Unread, Why
from hera_specon.doctor.findings import Finding

FORBIDDEN = Unread(Why.FORBIDDEN, "403")


def deployment(ready: int = 2) -> dict[str, Any]:
    return {"metadata": {"name": "specon-controller", "namespace": "hera-specon"}, "status": {"readyReplicas": ready}}


def setting(**settings: str) -> dict[str, str]:
    return {f"SPECON_CONTROLLER_{name}": value for name, value in settings.items()}


def judged(*waits: str, **facts: Any) -> dict[str, Finding]:  # noqa: ANN401 - as ControllerFacts has it
    given = {
        "name": "lab",
        "deployments": [deployment()],
        "everywhere": True,
        "settings": setting(NAMESPACE="lab"),
        "allowed": dict.fromkeys(ACTS, True),
        "adopted": [],
        **facts,
    }
    return {one.subject: one for one in check_controller(ControllerFacts(**given), waits)}


@pytest.mark.parametrize(
    ("facts", "verdict", "words"),
    [
        ({}, "ok", "ready, acts"),
        ({"settings": setting(ALL_NAMESPACES="true")}, "ok", "acts"),
        ({"settings": {}}, "warning", "steers hera-specon, and not lab"),
        ({"settings": setting(NAMESPACE="lab", RECOMMEND="True")}, "warning", "only recommends"),
        ({"settings": FORBIDDEN}, "cannot tell", "may not"),
        ({"deployments": [deployment(0)]}, "warning", "no pod that is ready"),
        ({"deployments": []}, "warning", "there is none"),
        ({"deployments": FORBIDDEN, "everywhere": False}, "cannot tell", "may not look elsewhere"),
        ({"deployments": FORBIDDEN, "everywhere": False, "adopted": ["vae-1"]}, "ok", "vae-1"),
    ],
)
def test_what_shows_of_the_controller(facts: dict[str, Any], verdict: str, words: str) -> None:
    finding = judged(**facts)["controller"]
    assert finding.verdict == verdict
    assert words in finding.found
    assert finding.advice or verdict == "ok"


@pytest.mark.parametrize("facts", [{"deployments": []}, {"deployments": [deployment(0)]}])
def test_trials_that_wait_for_a_controller_need_one(facts: dict[str, Any]) -> None:
    assert judged("vae", **facts)["controller"].verdict == "fault"


def test_what_it_may_not_do_here_is_told() -> None:
    allowed = {**dict.fromkeys(ACTS, True), Permission("patch", "pods/resize"): False}
    finding = judged(allowed=allowed)["controller's role"]
    assert finding.verdict == "warning"
    assert finding.found == "it may not change shares here"


def test_a_controller_without_exec_and_evictions_is_no_fault() -> None:
    without = {need: need.resource not in {"pods/exec", "pods/eviction"} for need in ACTS}
    finding = judged(allowed=without)["controller's role"]
    assert finding.verdict == "ok"
    assert finding.found.endswith("asking them to leave by an annotation and without evicting pods")


def test_where_nobody_may_ask_that_is_told() -> None:
    assert judged(allowed=dict.fromkeys(ACTS))["controller's role"].verdict == "cannot tell"
