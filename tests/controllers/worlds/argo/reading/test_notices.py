"""What says that a node goes, and by when: each with the object that shows it."""

from typing import Any

import pytest

from controllers.worlds.argo.meaning.leaving import LeavingNodes
from controllers.worlds.argo.reading.nodes import NodeRecord, project_node
from controllers.worlds.argo.reading.notices import MOST_NOTICES
from tests.controllers.worlds.argo.objects import BEGAN, Json, node, stamp

NOW = BEGAN + 1000.0


def taint(key: str, value: str = "", **more: Any) -> Json:  # noqa: ANN401 - JSON
    return {"key": key, "value": value, "effect": "NoSchedule", **more}


def tainted(*taints: Json) -> Json:
    return node("n1", taints=list(taints))


def with_condition(kind: str, message: str = "", status: str = "True", since: float = NOW) -> Json:
    made = node("n1", ready=kind != "Ready")
    made["status"]["conditions"] = [] if kind == "Ready" else made["status"]["conditions"]
    made["status"]["conditions"].append(
        {"type": kind, "status": status, "message": message, "lastTransitionTime": stamp(since)}
    )
    return made


def deleted() -> Json:
    made = node("n1")
    made["metadata"]["deletionTimestamp"] = stamp(NOW)
    return made


def record(made: Json) -> NodeRecord:
    found = project_node(made)
    assert found is not None
    return found


def left(made: Json, seen_at: float = NOW) -> float | None:
    """Return the seconds that pods of a node have when it is first seen; None where it stays."""
    deadline = LeavingNodes().deadlines([record(made)], seen_at).get("n1")
    return None if deadline is None else deadline - seen_at


PREEMPTED = "Preempt Scheduled: Mon, 02 Mar 2026 19:01:45 GMT"
AT = 1_772_478_105.0


@pytest.mark.parametrize(
    ("made", "seconds"),
    [
        (tainted(taint("karpenter.sh/disrupted")), 30.0),
        (tainted(taint("karpenter.sh/disruption", "disrupting")), 30.0),
        (tainted(taint("ToBeDeletedByClusterAutoscaler", f"{NOW - 10:.0f}")), 20.0),
        (tainted(taint("aws-node-termination-handler/spot-itn", "spot-itn-1234")), 120.0),
        (tainted(taint("aws-node-termination-handler/spot-itn", timeAdded=stamp(NOW - 20))), 100.0),
        (tainted(taint("aws-node-termination-handler/scheduled-maintenance")), 30.0),
        (tainted(taint("aws-node-termination-handler/asg-lifecycle-termination")), 30.0),
        (tainted(taint("cloud.google.com/impending-node-termination")), 15.0),
        (tainted(taint("remediator.kubernetes.azure.com/unschedulable")), 30.0),
        (tainted(taint("node.kubernetes.io/out-of-service", effect="NoExecute")), 0.0),
        (tainted(taint("node.cloudprovider.kubernetes.io/shutdown")), 0.0),
        (tainted(taint("karpenter.sh/disrupted"), taint("cloud.google.com/impending-node-termination")), 15.0),
        (with_condition("VMEventScheduled", "Redeploy Scheduled"), 30.0),
        (with_condition("PreemptionScheduled", since=NOW - 10), 20.0),
        (with_condition("Ready", "node is shutting down", "False"), 15.0),
        (deleted(), 30.0),
    ],
)
def test_a_node_that_goes_tells_how_long_its_pods_have(made: Json, seconds: float) -> None:
    assert left(made) == pytest.approx(seconds)
    assert not record(made).fit


@pytest.mark.parametrize(
    "made",
    [
        node("n1"),
        node("n1", unschedulable=True),
        tainted(taint("node.kubernetes.io/unschedulable")),
        tainted(taint("DeletionCandidateOfClusterAutoscaler", f"{NOW:.0f}", effect="PreferNoSchedule")),
        tainted(taint("aws-node-termination-handler/rebalance-recommendation")),
        tainted(taint("kubernetes.azure.com/scalesetpriority", "spot")),
        with_condition("VMEventScheduled", "Freeze Scheduled"),
        with_condition("VMEventScheduled", "VM has no scheduled event", "False"),
        with_condition("Ready", "container runtime is down", "False"),
    ],
)
def test_no_cordon_candidate_or_kind_of_machine_says_that_a_node_goes(made: Json) -> None:
    assert left(made) is None


def test_a_deadline_that_a_notice_tells_itself_counts() -> None:
    made = with_condition("VMEventScheduled", PREEMPTED, since=AT - 25)
    assert left(made, AT - 20) == pytest.approx(20.0)


@pytest.mark.parametrize(
    "value", ["", "0", "-1", "1e999", "soon", f"{NOW + 3600:.0f}", f"{NOW - 86_400:.0f}", "9" * 40]
)
def test_a_time_that_makes_no_sense_counts_as_that_when_the_notice_was_seen(value: str) -> None:
    assert left(tainted(taint("ToBeDeletedByClusterAutoscaler", value))) == 30.0


@pytest.mark.parametrize("date", ["Mon, 99 Mar 2026 19:01:45 GMT", "Mon, 02 Xxx 2026 19:01:45 GMT", "never"])
def test_a_deadline_that_makes_no_sense_counts_as_none(date: str) -> None:
    assert left(with_condition("VMEventScheduled", f"Preempt Scheduled: {date}")) == 30.0
    late = with_condition("VMEventScheduled", PREEMPTED.replace("2026", "2036"))
    assert left(late) == 30.0


def test_a_notice_counts_from_when_it_was_first_seen_until_it_is_taken_back() -> None:
    leaving, goes, stays = LeavingNodes(), record(tainted(taint("karpenter.sh/disrupted"))), record(node("n1"))
    assert leaving.deadlines([goes], NOW) == {"n1": NOW + 30}
    assert leaving.deadlines([goes], NOW + 20) == {"n1": NOW + 30}
    assert leaving.deadlines([stays], NOW + 25) == {}
    assert leaving.deadlines([goes], NOW + 40) == {"n1": NOW + 70}


def test_a_node_full_of_notices_is_not_read_to_its_end() -> None:
    assert len(record(tainted(*[taint("karpenter.sh/disrupted")] * 1000)).notices) == MOST_NOTICES
