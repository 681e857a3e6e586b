from typing import Any

import pytest
from hera.workflows import Resources, Workflow

from hera_specon.doctor.checks.limits import check_limits
from hera_specon.doctor.facts import LimitFacts, Unread, Why
from hera_specon.doctor.findings import Finding
from hera_specon.doctor.sweep_needs import SweepNeeds, sweep_needs
from tests.hera_specon.built_sweeps import sweep

FORBIDDEN = Unread(Why.FORBIDDEN, "403")


def needs(**resources: Any) -> SweepNeeds:  # noqa: ANN401 - as Resources has it
    with Workflow(generate_name="vae-", entrypoint="vae") as w:
        sweep(resources=Resources(**resources))
    return sweep_needs(w.to_dict())


SMALL = needs(cpu_request="490m", memory_request="992Mi")
"""Three pods of half a core and a GiB, with Argo's helper."""
SILENT = needs(cpu_request="490m")


def quota(used: dict[str, str] | None = None, **hard: str) -> dict[str, Any]:
    names = {name.replace("_", "."): amount for name, amount in hard.items()}
    return {"metadata": {"name": "q"}, "status": {"hard": names, "used": used or {}}}


def limit_range(kind: str = "Container", **bounds: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "l"}, "spec": {"limits": [{"type": kind, **bounds}]}}


def judged(sweeps: SweepNeeds | None = SMALL, quotas: Any = (), ranges: Any = ()) -> list[Finding]:  # noqa: ANN401 - any JSON
    return list(check_limits(LimitFacts(name="lab", quotas=quotas, ranges=ranges), sweeps))


@pytest.mark.parametrize(
    ("found", "sweeps", "verdict", "words"),
    [
        (quota(requests_cpu="4"), None, "ok", "4 requests.cpu left"),
        (quota(requests_cpu="4"), SMALL, "ok", "all 3 pods"),
        (quota({"requests.cpu": "3"}, requests_cpu="4"), SMALL, "warning", "2 of 3 pods of vae"),
        (quota({"requests.cpu": "3900m"}, requests_cpu="4"), SMALL, "fault", "0 of 3 pods"),
        (quota(cpu="1"), SMALL, "warning", "2 of 3"),
        (quota(memory="2Gi"), SMALL, "warning", "2 of 3 pods of vae fit at once (2.0 GiB memory left)"),
        (quota(pods="1"), SMALL, "warning", "1 of 3"),
        (quota(limits_cpu="4"), SMALL, "fault", "nothing of limits.cpu"),
        (quota(requests_memory="4Gi"), SILENT, "fault", "nothing of requests.memory"),
        (quota({"requests.cpu": "9"}, requests_cpu="4"), SMALL, "fault", "0 of 3"),
        (quota(secrets="4"), SMALL, "ok", "all 3"),
        ({**quota(cpu="1"), "spec": {"scopes": ["BestEffort"]}}, SMALL, "cannot tell", "scopes"),
    ],
)
def test_what_a_quota_leaves(found: dict[str, Any], sweeps: SweepNeeds | None, verdict: str, words: str) -> None:
    finding = judged(sweeps, [found])[0]
    assert finding.verdict == verdict
    assert words in finding.found
    assert finding.advice or verdict == "ok"


def test_what_a_limit_range_fills_in_needs_not_be_said() -> None:
    given = limit_range(default={"cpu": "1", "memory": "1Gi"})
    assert judged(SILENT, [quota(limits_cpu="4", requests_memory="4Gi")], [given])[0].verdict == "ok"


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        (limit_range(max={"cpu": "4"}), "warning", "no share grows above 4 cores"),
        (limit_range(default={"cpu": "2"}), "warning", "no share grows above 2 cores"),
        (limit_range("Pod", max={"cpu": "400m"}), "fault", "more than 0.4 cores"),
        (limit_range(max={"cpu": "400m"}), "fault", "trials of vae"),
        (limit_range(min={"cpu": "50m"}), "fault", "0.05 cores at least"),
        (limit_range(min={"cpu": "5m"}), "warning", "none falls below"),
        (limit_range(maxLimitRequestRatio={"cpu": "4"}), "warning", "4th part"),
        (limit_range(max={"memory": "4Gi"}), "ok", "bounds no share"),
        (limit_range("PersistentVolumeClaim", max={"storage": "1Gi"}), "ok", "none for containers"),
    ],
)
def test_what_a_limit_range_does_to_shares(found: dict[str, Any], verdict: str, words: str) -> None:
    finding = judged(ranges=[found])[-1]
    assert finding.verdict == verdict
    assert words in finding.found
    assert finding.advice or verdict == "ok"


def test_what_may_not_be_read_is_told() -> None:
    assert [one.verdict for one in judged(quotas=FORBIDDEN, ranges=FORBIDDEN)] == ["cannot tell"] * 2


def test_a_namespace_without_bounds_is_ok() -> None:
    assert [one.verdict for one in judged()] == ["ok", "ok"]
