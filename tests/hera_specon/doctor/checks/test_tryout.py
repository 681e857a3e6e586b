"""What reports of pods mean, case by case."""

from typing import Any

import pytest

from hera_specon.doctor.checks.tryout import check_tryout
from hera_specon.doctor.findings import Finding, Verdict
from hera_specon.doctor.tryout.report import Resized, TryOut

GOOD: dict[str, Any] = {
    "mlflow": {"host": "mlflow", "status": 200, "version": "3.17.0", "login": 200},
    "state": {"where": "/mnt/specon", "whole": True, "free": 2**40},
    "clock": {"ahead": 0.4},
    "self": {"user": 65532, "group": 65532, "closed": [], "python": "3.11.2", "hooks": "0.2.0"},
    "share": ["2", "4"],
}


def judged(report: dict[str, Any] | None = None, /, **facts: Any) -> dict[str, Finding]:  # noqa: ANN401 - as TryOut has it
    told: dict[str, Any] = {"phase": "Succeeded", "pod": True, "gated": True, "resized": Resized.DONE, "seconds": 9.0}
    whole = {"report": {**GOOD, **(report or {})}, **told, **facts}
    return {one.subject: one for one in check_tryout(TryOut(namespace="lab", account="default", **whole), mlflow=True)}


def test_all_is_well() -> None:
    found = judged()
    assert {one.verdict for one in found.values()} == {Verdict.OK}
    assert found["resize tried"].found == "the pod was resized in place, and its share of the CPU changed"
    assert {"try-out", "gate", "executor", "DNS", "MLflow", "checkpoints", "clock", "user", "image"} <= found.keys()


@pytest.mark.parametrize(
    ("report", "subject", "verdict", "words"),
    [
        ({"mlflow": {"host": "m", "dns": "Name or service not known"}}, "DNS", "fault", "no address of 'm'"),
        ({"mlflow": {"host": "m", "error": "timed out"}}, "MLflow", "fault", "timed out"),
        ({"mlflow": {"host": "m", "status": 200, "login": 401}}, "MLflow", "fault", "answers 401"),
        ({"mlflow": {"host": "m", "status": 404, "login": 404, "said": "no"}}, "MLflow", "fault", "answers 404"),
        (
            {"state": {"where": "/mnt/specon", "error": "Permission denied"}},
            "checkpoints",
            "fault",
            "Permission denied",
        ),
        ({"state": {"where": "/mnt/specon", "whole": False}}, "checkpoints", "fault", "not there"),
        ({"state": {"where": "/mnt/specon", "whole": True, "free": 2**20}}, "checkpoints", "warning", "GiB left"),
        ({"state": {"where": "s3://b/p", "hooks": "No module"}}, "checkpoints", "fault", "No module"),
        ({"state": {"where": "s3://b/p", "whole": True, "conditional": False}}, "checkpoints", "warning", "ignores"),
        ({"state": {"where": "s3://b/p", "whole": True, "conditional": True}}, "checkpoints", "ok", "heeds"),
        ({"clock": {"ahead": 90.0}}, "clock", "warning", "90 s behind"),
        ({"clock": {"ahead": -90}}, "clock", "warning", "90 s ahead of"),
        ({"clock": {"error": "refused"}}, "clock", "cannot tell", "refused"),
        ({"clock": {"ahead": "soon"}}, "clock", "cannot tell", "not told"),
        ({"self": {"user": 1, "group": 1, "closed": ["/tmp"]}}, "user", "warning", "/tmp"),  # noqa: S108 - a name only
        ({"self": {"user": 1, "group": 1, "closed": 7}}, "image", "warning", "without the hooks"),
        ({"self": 7}, "user", "ok", "None"),
    ],
)
def test_what_a_pod_reports(report: dict[str, Any], subject: str, verdict: str, words: str) -> None:
    finding = judged(report)[subject]
    assert finding.verdict == verdict
    assert words in finding.found
    assert finding.advice or verdict == "ok"


@pytest.mark.parametrize(("status", "verdict"), [(200, "ok"), (503, "fault")])
def test_checkpoints_in_mlflow_need_artifacts_that_it_passes_on(status: int, verdict: str) -> None:
    mlflow = {**GOOD["mlflow"], "artifacts": status}
    assert judged({"state": {"where": "mlflow"}, "mlflow": mlflow})["checkpoints"].verdict == verdict


@pytest.mark.parametrize(
    ("facts", "subject", "verdict", "words"),
    [
        ({"resized": Resized.DELETED}, "resize tried", "warning", "deleted"),
        ({"resized": Resized.DELETED, "report": None, "phase": "Error"}, "resize tried", "warning", "deleted"),
        ({"resized": Resized.INFEASIBLE, "resize_words": "static"}, "resize tried", "warning", "static"),
        ({"resized": Resized.PENDING}, "resize tried", "cannot tell", "not done in time"),
        ({"resized": Resized.NOT_TRIED}, "resize tried", "cannot tell", "not tried"),
        ({"report": None, "refused": "namespaces 'lab' not found"}, "try-out", "fault", "not found"),
        ({"report": None, "last_words": "python3: not found"}, "try-out", "cannot tell", "python3: not found"),
        ({"report": None, "phase": "Running", "waits": "Unschedulable: no room"}, "try-out", "fault", "no room"),
        ({"report": None, "phase": "Error", "pod": False, "message": "quota"}, "try-out", "fault", "quota"),
        ({"report": None, "phase": "", "pod": False}, "try-out", "fault", "took no notice"),
        ({"phase": "Error", "message": "workflowtaskresults is forbidden"}, "service account", "fault", "forbidden"),
        ({"phase": "Running"}, "service account", "fault", "Running"),
        ({"left": "workflow specon-doctor-1: 403"}, "clean-up", "warning", "403"),
    ],
)
def test_how_a_try_out_ends(facts: dict[str, Any], subject: str, verdict: str, words: str) -> None:
    finding = judged(**facts)[subject]
    assert finding.verdict == verdict
    assert words in finding.found
    assert finding.advice
