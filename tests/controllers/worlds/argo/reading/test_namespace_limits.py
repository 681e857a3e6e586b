import math
from typing import Any

import pytest

from controllers.worlds.argo.reading.namespace_limits import RangeRecord, project_quota, project_range
from tests.controllers.worlds.argo.objects_of_limits import limit_range, quota


def left(item: dict[str, Any]) -> dict[str, float] | None:
    record = project_quota(item)
    return None if record is None else dict(record.left)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (quota({"requests.cpu": "1500m"}, requests_cpu="4"), {"requests.cpu": 2.5}),
        (quota({"memory": "1Gi"}, memory="2Gi"), {"requests.memory": 2.0**30}),
        (quota({"cpu": "3", "requests.cpu": "1"}, cpu="4", requests_cpu="4"), {"requests.cpu": 1.0}),
        (quota({"requests.cpu": "5"}, requests_cpu="4"), {"requests.cpu": -1.0}),
        (quota({}, pods="3"), {"pods": 3.0}),
        (quota({}, limits_cpu="3", secrets="4"), None),
    ],
)
def test_what_a_quota_leaves(item: dict[str, Any], expected: dict[str, float] | None) -> None:
    assert left(item) == expected


def test_devices_are_counted() -> None:
    item = quota({"requests.nvidia.com/gpu": "1"})
    item["status"]["hard"] = {"requests.nvidia.com/gpu": "4"}
    assert left(item) == {"requests.nvidia.com/gpu": 3.0}


@pytest.mark.parametrize(
    ("spec", "left_of_pods"),
    [
        ({"scopes": ["NotTerminating"]}, 3.0),
        ({"scopes": ["NotBestEffort", "Terminating"]}, None),
        ({"scopes": ["BestEffort"]}, None),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}}, None),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "NotBestEffort", "operator": "Exists"}]}}, 3.0),
        ({"scopes": [["no", "text"]]}, None),
    ],
)
def test_quotas_of_other_pods_are_left_to_the_api_server(spec: dict[str, Any], left_of_pods: float | None) -> None:
    found = left({**quota({}, pods="3"), "spec": spec})
    assert (found and found["pods"]) == left_of_pods


def test_a_quota_that_kubernetes_has_not_counted_bounds_nothing_yet() -> None:
    assert left({"metadata": {"name": "q"}, "spec": {"hard": {"cpu": "1"}}}) is None


@pytest.mark.parametrize("item", [{}, {"status": {"hard": 5}}, {"status": {"hard": {"cpu": ["x"]}}}])
def test_a_quota_that_makes_no_sense_leaves_at_most_nothing(item: dict[str, Any]) -> None:
    assert left(item) in (None, {"requests.cpu": 0.0})


def test_a_limit_range_is_folded_into_the_tightest_bounds() -> None:
    record = project_range(
        limit_range(
            {"type": "Container", "min": {"cpu": "10m"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "4"}},
            {"type": "Container", "max": {"cpu": "1500m"}},
            {"type": "Pod", "max": {"cpu": "3"}, "min": {"cpu": "20m"}},
            {"type": "PersistentVolumeClaim", "max": {"cpu": "1m"}},
        )
    )
    assert record == RangeRecord("sweeps", "r", 0.01, 1.5, 4.0, 0.02, 3.0)


def test_a_limit_range_without_bounds_on_cpu_is_none() -> None:
    assert project_range(limit_range({"type": "Container", "max": {"memory": "1Gi"}, "default": {"cpu": "1"}})) is None
    assert project_range({"spec": {"limits": "none"}}) is None
    assert RangeRecord("n", "r").most == math.inf
