from typing import Any

import pytest

from hera_specon.doctor.checks.node_pools import check_node_pools
from hera_specon.doctor.facts import Listing, ServerFacts, Unread, Why

GKE = "cloud.google.com/gke-nodepool"


def judged(nodes: Listing) -> list[str]:
    facts = ServerFacts(
        host="https://here",
        version={},
        name="lab",
        namespace={},
        core={},
        nodes=nodes,
    )
    findings = list(check_node_pools(facts))
    assert all((one.subject, one.verdict) == ("nodes that come", "ok") for one in findings)
    return [one.found for one in findings]


def labelled(*labels: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"metadata": {"name": "n", "labels": one}} for one in labels]


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (
            labelled({"karpenter.sh/nodepool": "b"}, {"karpenter.sh/nodepool": "a"}, {}),
            "Karpenter adds some of the pools a, b",
        ),
        (labelled({GKE: "train"}, {GKE: "train"}), "adds some of the kinds train: one trial"),
        (labelled(*({GKE: f"p{number}"} for number in range(7))), "p3, p4 and 2 more"),
        (labelled({}), "adds some: one trial"),
        ([], "adds some: one trial"),
    ],
)
def test_labels_tell_of_nodes_that_can_come(nodes: list[dict[str, Any]], says: str) -> None:
    (found,) = judged(nodes)
    assert says in found


def test_nothing_is_said_where_nodes_cannot_be_listed() -> None:
    assert judged(Unread(Why.FORBIDDEN, "403")) == []
