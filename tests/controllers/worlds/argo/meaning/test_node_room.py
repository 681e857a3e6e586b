"""What all pods request, summed up once for all campaigns, and what of it one campaign sees."""

import pytest

from controllers.core.model import NodeName
from controllers.worlds.argo.meaning.room import NodeRequests, NodeRoom
from controllers.worlds.argo.reading.nodes import NodeRecord, project_node
from controllers.worlds.argo.reading.pods import OtherPod, PodRecord, Resources, project_pod
from tests.controllers.worlds.argo.conftest import Bench
from tests.controllers.worlds.argo.objects import Json, node, pod, stamp

N1, N2 = NodeName("n1"), NodeName("n2")


def record(item: Json) -> PodRecord:
    found = project_pod(item)
    assert found is not None
    return found


def nodes(*names: str) -> list[NodeRecord]:
    return [found for name in names if (found := project_node(node(name))) is not None]


def other(on: str, cpu: float) -> OtherPod:
    return OtherPod(f"other-{on}", on, Resources(cpu, 0.0))


def test_a_campaign_sees_nodes_less_what_all_others_request() -> None:
    own, foreign = record(pod("a", on="n1", uid="1")), record(pod("b", on="n1", cpu="200m", uid="2"))
    requests = NodeRequests(nodes("n1", "n2"), [own, foreign], [other("n2", 0.25)])
    seen = requests.nodes_for([own])
    assert (seen[N1].cpu, seen[N2].cpu) == (0.8, 0.75)
    assert requests.nodes_for([])[N1].cpu == pytest.approx(0.7)


def test_a_share_that_grew_since_the_sums_were_made_makes_no_room() -> None:
    before, after = record(pod("a", on="n1", uid="1")), record(pod("a", on="n1", cpu="500m", has="500m", uid="1"))
    requests = NodeRequests(nodes("n1"), [before], [])
    assert requests.nodes_for([after])[N1].cpu == 1.0


def test_a_pod_that_came_since_the_sums_were_made_makes_no_room() -> None:
    requests = NodeRequests(nodes("n1"), [], [other("n1", 0.4)])
    assert requests.nodes_for([record(pod("a", on="n1", uid="1"))])[N1].cpu == 0.6


def test_promises_of_one_campaign_are_not_those_of_another() -> None:
    requests = NodeRequests(nodes("n1"), [], [])
    one, two = NodeRoom(requests), NodeRoom(requests)
    one.reserve("n1", Resources(0.8, 0.0), "t")
    assert one.why_unfit(["n1"], Resources(0.3, 0.0))
    assert one.lacks("n1", 0.3)
    assert not two.why_unfit(["n1"], Resources(0.3, 0.0))


def test_a_pod_counts_where_it_was_placed_before_it_is_there() -> None:
    placed = record(pod("a", uid="1", notes={"hera-specon.io/placed-on": "n1"}))
    over = record(pod("b", on="n1", uid="2", phase="Failed"))
    room = NodeRoom(NodeRequests(nodes("n1"), [placed, over], [], {"1"}))
    assert not room.why_unfit(["n1"], Resources(0.9, 0.0))
    assert room.why_unfit(["n1"], Resources(0.95, 0.0))


def test_pods_of_other_namespaces_count_and_no_trial_counts_twice(bench: Bench) -> None:
    elsewhere = pod("x", on="n1", cpu="300m")
    elsewhere["metadata"] |= {"namespace": "elsewhere", "labels": {}}
    beside = pod("y", on="n1", cpu="150m")
    beside["metadata"] |= {"name": "beside", "labels": {}, "creationTimestamp": stamp(0.0)}
    for item in (elsewhere, beside, pod("a", on="n1")):
        bench.put("pods", item)
    world = bench.begin()
    (n1,) = (one for one in world.nodes() if one.name == N1)
    assert n1.cpu == pytest.approx(1 - 0.3 - 0.15)
