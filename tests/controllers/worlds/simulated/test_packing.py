"""How many nodes waiting pods need: an autoscaler's bin-packing."""

from controllers.core.devices import Devices
from controllers.core.model import NodeName
from controllers.worlds.simulated.packing import FreeRoom, nodes_needed
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec, TrialSpec
from tests.controllers.worlds.simulated.workloads import trial

GPU = Devices.of({"nvidia.com/gpu": 1})


def group(name: str, cpu: float, price: float | None = None, devices: Devices | None = None) -> NodeGroup:
    return NodeGroup(NodeSpec(NodeName(name), cpu, price=price, devices=devices or Devices()), 10)


def needed(
    pods: list[TrialSpec], *groups: NodeGroup, most: int = 10, coming: tuple[FreeRoom, ...] = ()
) -> dict[str, int]:
    return nodes_needed(pods, coming, groups, dict.fromkeys((one.name for one in groups), most))


def test_large_pods_go_first_so_that_small_ones_fill_the_gaps() -> None:
    pods = [trial(str(number), cpu=cpu) for number, cpu in enumerate((1.0, 1.0, 3.0, 3.0))]
    assert needed(pods, group("g", 4.0)) == {"g": 2}


def test_a_new_node_is_of_the_cheapest_group_that_holds_all_its_pods() -> None:
    pods = [trial(str(number)) for number in range(4)]
    assert needed(pods, group("large", 4.0, 5.0), group("small", 1.0, 1.0)) == {"large": 1}
    assert needed(pods[:1], group("large", 4.0, 5.0), group("small", 1.0, 1.0)) == {"small": 1}


def test_a_group_without_a_price_is_the_last_choice() -> None:
    assert needed([trial("a")], group("a", 1.0), group("b", 1.0, 7.0)) == {"b": 1}


def test_devices_bring_nodes_that_have_them() -> None:
    pods = [trial("a", devices=GPU), trial("b")]
    assert needed(pods, group("cpu", 1.0, 0.1), group("gpu", 1.0, 1.0, GPU)) == {"cpu": 1, "gpu": 1}


def test_what_is_coming_is_filled_first() -> None:
    room = FreeRoom.of(group("g", 2.0).node)
    assert needed([trial("a"), trial("b"), trial("c")], group("g", 2.0), coming=(room,)) == {"g": 1}


def test_no_more_are_asked_for_than_there_may_be() -> None:
    pods = [trial(str(number)) for number in range(5)]
    assert needed(pods, group("a", 1.0, 1.0), group("b", 1.0, 2.0), most=1) == {"a": 1}
    assert needed(pods, group("g", 1.0), most=3) == {"g": 3}


def test_a_pod_that_no_group_holds_asks_for_nothing() -> None:
    assert needed([trial("a", cpu=9.0)], group("g", 2.0)) == {}
