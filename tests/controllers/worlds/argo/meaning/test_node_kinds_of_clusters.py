"""Kinds of nodes that can come to a cluster: by labels of three clouds, by what came, and by what an owner says."""

from typing import Any

import pytest

from controllers.core.devices import Devices
from controllers.core.model import NodeKind
from controllers.worlds.argo.meaning.node_kinds import UNKNOWN, KindsSeen, kinds_that_come
from controllers.worlds.argo.meaning.room import NodeRequests
from controllers.worlds.argo.reading.demands import Demands, Taint, demands_of
from controllers.worlds.argo.reading.node_kinds import GivenKind, GivenKinds, GivenPrice
from controllers.worlds.argo.reading.nodes import NodeRecord, project_node
from controllers.worlds.argo.reading.pods import NO_RESOURCES, project_other
from tests.controllers.worlds.argo.objects import BEGAN, Json, node, stamp

POOL = "cloud.google.com/gke-nodepool"
NOW = BEGAN + 1000
GIVEN = GivenKinds(
    (GivenKind("train", {POOL: "train"}, 7.5, 2.0**30, most=3, boots_s=60.0, price=0.4, spot=True),),
    (GivenPrice({"node.kubernetes.io/instance-type": "m5.large"}, 0.096),),
)


def made(
    name: str,
    *,
    at: float = BEGAN - 100,
    ready: bool = True,
    given: GivenKinds = GIVEN,
    **labels: str,
) -> NodeRecord:
    item: Json = node(name, "4", ready=ready)
    item["metadata"]["creationTimestamp"] = stamp(at)
    item["metadata"]["labels"] |= {name.replace("__", "/"): value for name, value in labels.items()}
    found = project_node(item, given)
    assert found is not None
    return found


def labelled(labels: dict[str, Any], name: str = "n", **changes: Any) -> NodeRecord:  # noqa: ANN401 - as made takes
    return made(name, **changes, **labels)


def kinds(*nodes: NodeRecord, given: GivenKinds = GIVEN, others: tuple[Json, ...] = ()) -> dict[str, NodeKind]:
    seen = KindsSeen(given)
    seen.look(nodes)
    pods = [found for one in others if (found := project_other(one)) is not None]
    return {kind.name: kind for kind in kinds_that_come(NodeRequests(nodes, [], pods), seen, BEGAN, NOW)}


@pytest.mark.parametrize(
    ("labels", "name", "spot"),
    [
        (
            {
                "karpenter.sh/nodepool": "default",
                "node.kubernetes.io/instance-type": "m5.large",
                "karpenter.sh/capacity-type": "spot",
            },
            "default/m5.large/spot",
            True,
        ),
        ({"eks.amazonaws.com/nodegroup": "g", "eks.amazonaws.com/capacityType": "ON_DEMAND"}, "g", False),
        ({"eks.amazonaws.com/nodegroup": "g", "eks.amazonaws.com/capacityType": "SPOT"}, "g/spot", True),
        ({POOL: "pool-1", "cloud.google.com/gke-spot": "true"}, "pool-1/spot", True),
        ({"kubernetes.azure.com/agentpool": "np", "kubernetes.azure.com/scalesetpriority": "spot"}, "np/spot", True),
        ({"agentpool": "old"}, "old", False),
        ({"node.kubernetes.io/instance-type": "bare"}, "bare", False),
        ({}, "", False),
        ({POOL: "train"}, "train", True),
    ],
)
def test_labels_name_the_kind_of_a_node(labels: dict[str, str], name: str, *, spot: bool) -> None:
    record = labelled(labels)
    assert (record.kind.name, record.kind.spot) == (name, spot)
    assert record.without(NO_RESOURCES).kind == name


def test_a_price_is_that_of_the_kind_else_that_of_the_first_row_with_its_labels() -> None:
    assert labelled({POOL: "train"}).kind.price == 0.4
    assert labelled({"node.kubernetes.io/instance-type": "m5.large"}).kind.price == 0.096
    assert labelled({"node.kubernetes.io/instance-type": "m6.large"}).kind.price is None


def test_on_nodes_that_were_there_before_nothing_but_the_unknown_is_believed_to_come() -> None:
    assert kinds(labelled({POOL: "fixed"}), given=GivenKinds()) == {"": UNKNOWN}


@pytest.mark.parametrize("labels", [{POOL: "p"}, {"karpenter.sh/nodepool": "p"}])
def test_a_node_that_came_since_the_sweep_began_and_any_of_karpenters_tells_that_others_can(labels: Any) -> None:  # noqa: ANN401
    found = kinds(labelled(labels, at=BEGAN + 10), labelled(labels, "m", at=BEGAN - 500), given=GivenKinds())["p"]
    assert (found.cpu, found.memory, found.more) == (4.0, 2.0**30, 2.0)
    assert ("p" in kinds(labelled(labels), given=GivenKinds())) is ("karpenter.sh/nodepool" in labels)


def test_what_runs_on_every_node_is_no_trials() -> None:
    def pod(uid: str, owner: str) -> Json:
        return {
            "metadata": {"uid": uid, "ownerReferences": [{"kind": owner, "controller": True}]},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]},
            "status": {"phase": "Running"},
        }

    others = (pod("1", "DaemonSet"), pod("2", "ReplicaSet"))
    assert kinds(labelled({POOL: "p"}, at=BEGAN + 10), others=others)["p"].cpu == 3.5


def test_a_node_that_is_not_ready_is_coming_as_long_as_it_is_young() -> None:
    young = labelled({POOL: "p"}, "young", at=NOW - 60, ready=False)
    broken = labelled({POOL: "p"}, "broken", at=NOW - 901, ready=False)
    assert kinds(young, broken)["p"].coming == 1


def test_what_an_owner_says_goes_first_and_counts_what_is_there() -> None:
    told = kinds()["train"]
    assert told == NodeKind("train", 7.5, 2.0**30, boots_s=60.0, more=3.0, price=0.4, spot=True)
    assert kinds(labelled({POOL: "train"}))["train"].more == 2.0
    assert kinds(*(labelled({POOL: "train"}, f"n{number}") for number in range(5)))["train"].more == 0.0


def test_a_pod_may_ask_for_the_kinds_that_it_selects_and_whose_taints_it_tolerates() -> None:
    gpus = GivenKind(
        "gpus",
        {"pool": "gpus"},
        8.0,
        1.0,
        Devices.of({"nvidia.com/gpu": 1}),
        (Taint("nvidia.com/gpu", "", "NoSchedule"), Taint("team", "a", "NoSchedule")),
    )
    seen = KindsSeen(GivenKinds((gpus, GIVEN.kinds[0])))
    seen.look([labelled({"agentpool": "old"})])
    assert gpus.only_for == {"nvidia.com/gpu"}
    assert seen.for_pods(demands({})) == frozenset({"train", "old"})
    assert seen.for_pods(demands({"nodeSelector": {"agentpool": "old"}})) == frozenset({"old"})
    tolerant = {"tolerations": [{"key": "team", "operator": "Equal", "value": "a"}]}
    assert seen.for_pods(demands(tolerant)) is None
    seen.look([])
    assert seen.for_pods(demands({"nodeSelector": {"agentpool": "old"}})) == frozenset({"old"}), (
        "a kind that went is remembered"
    )


def demands(spec: Json) -> Demands:
    return demands_of({"spec": spec}, bound=False)
