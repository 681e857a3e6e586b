from typing import Any

import pytest

from hera_specon.doctor.checks.permissions import CREATE, EXECUTOR, OPEN_GATES, USER, check_permissions
from hera_specon.doctor.facts import Allowed, PermissionFacts, Unread, Why
from hera_specon.doctor.findings import Finding


def judged(user: Allowed | None = None, executor: Allowed | None = None, **facts: Any) -> dict[str, Finding]:  # noqa: ANN401 - as PermissionFacts has it
    given = {
        "name": "lab",
        "account": "trains",
        "account_object": {"metadata": {"name": "trains"}},
        "user": {**dict.fromkeys(USER, True), **(user or {})},
        "executor": {**dict.fromkeys(EXECUTOR, True), **(executor or {})},
        **facts,
    }
    return {one.subject: one for one in check_permissions(PermissionFacts(**given))}


def test_all_that_the_commands_call_is_asked() -> None:
    asked = {f"{need.verb} {need.whole_name}" for need in USER}
    workflows = {f"{verb} workflows.argoproj.io" for verb in ("create", "get", "list", "patch")}
    assert asked == workflows | {"list pods", "patch pods", "patch pods/resize"}


def test_who_may_everything_is_told_so() -> None:
    found = judged()
    assert {one.verdict for one in found.values()} == {"ok"}
    assert "you: specon submit" in found
    assert "lab/trains may create/patch workflowtaskresults" in found["service account"].found


@pytest.mark.parametrize(
    ("facts", "subject", "verdict", "command"),
    [
        (
            {"user": {CREATE: False}},
            "you: specon submit",
            "fault",
            "kubectl create role specon-submit-workflows -n lab --verb=create --resource=workflows.argoproj.io",
        ),
        (
            {"user": {OPEN_GATES: False}},
            "you: specon release",
            "warning",
            "kubectl create role specon-release-pods -n lab --verb=patch --resource=pods",
        ),
        ({"user": {CREATE: None}}, "you: specon submit", "cannot tell", "kubectl auth can-i --list -n lab"),
        (
            {"executor": {EXECUTOR[1]: False}},
            "service account",
            "fault",
            (
                "kubectl create role specon-sweep-executor -n lab --verb=create,patch "
                "--resource=workflowtaskresults.argoproj.io && kubectl create rolebinding specon-sweep-executor -n lab "
                "--role=specon-sweep-executor --serviceaccount=lab:trains"
            ),
        ),
        (
            {"executor": {EXECUTOR[0]: None}},
            "service account",
            "cannot tell",
            "kubectl get rolebindings -n lab -o wide",
        ),
        (
            {"account_object": Unread(Why.MISSING, "404")},
            "service account",
            "fault",
            "kubectl create serviceaccount trains -n lab",
        ),
    ],
)
def test_what_is_lacking_comes_with_the_command_that_grants_it(
    facts: dict[str, Any], subject: str, verdict: str, command: str
) -> None:
    finding = judged(**facts)[subject]
    assert finding.verdict == verdict
    assert finding.command == command
    assert finding.advice


def test_an_account_that_may_not_be_read_is_judged_by_what_it_may_do() -> None:
    assert judged(account_object=Unread(Why.FORBIDDEN, "403"))["service account"].verdict == "ok"
