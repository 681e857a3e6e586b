"""Whole devices in the simulated world: a trial that holds one keeps it to its attempt's end, and no other has it."""

from dataclasses import replace

import pytest

from controllers.core.actions import Migrate, Place
from controllers.core.devices import NO_DEVICES, Devices
from controllers.core.model import NodeName, Phase, TrialId
from controllers.lab.simulation.run import simulate
from controllers.policies import Default
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeSpec, TrialSpec, Workload
from controllers.worlds.simulated.world import SimulatedWorld
from tests.controllers.worlds.simulated.workloads import trial

GPU = "example.com/gpu"
A, B = TrialId("a"), TrialId("b")
N1, N2 = NodeName("n1"), NodeName("n2")


def gpus(count: int) -> Devices:
    return Devices.of({GPU: count})


def scenario(*trials: TrialSpec, devices: tuple[int, ...] = (1, 0), costs: Costs | None = None) -> Scenario:
    """Return nodes of eight cores with so many devices each."""
    nodes = tuple(NodeSpec(NodeName(f"n{n}"), 8.0, devices=gpus(count)) for n, count in enumerate(devices, start=1))
    return Scenario(Workload(trials, nodes), costs or Costs.free())


def one(name: str, work_s: float = 100.0, count: int = 1) -> TrialSpec:
    return trial(name, work_s, devices=gpus(count))


def test_the_default_scheduler_lets_a_trial_wait_for_a_device_and_not_the_ones_behind_it() -> None:
    found = simulate(scenario(one("a"), one("b"), trial("c")), Default()).result.trials
    assert {result.id: result.completed_s for result in found} == {"a": 100.0, "b": 200.0, "c": 100.0}
    assert {result.node for result in found if result.id != "c"} == {"n1"}


def test_a_place_without_a_free_device_is_refused_with_what_there_is_and_done_once_one_is_free() -> None:
    world = SimulatedWorld(scenario(one("a"), one("b")), gated=True)
    world.advance(0.0)
    assert (
        world.apply(Place(A, (N2,))).detail
        == f"n2 cannot give 1 {GPU}: it has no devices, and no devices are requested"
    )
    assert world.apply(Place(A, (N1,))).done
    assert world.apply(Place(B, (N1,))).detail == f"n1 cannot give 1 {GPU}: it has 1 {GPU}, and 1 {GPU} are requested"
    world.advance(101.0)
    assert world.apply(Place(B, (N1,))).done


def test_an_attempt_that_has_yet_to_run_is_told_to_hold_its_device() -> None:
    world = SimulatedWorld(scenario(one("a"), costs=Costs(start_s=5.0)), gated=True)
    world.advance(0.0)
    world.apply(Place(A, (N1,)))
    told = [(node.devices, node.devices_starting) for node in world.nodes()]
    assert told == [(gpus(1), gpus(1)), (NO_DEVICES, NO_DEVICES)]
    world.advance(6.0)
    shown = world.trial(A)
    assert shown is not None
    assert (shown.phase, shown.devices) == (Phase.RUNNING, gpus(1))
    assert [node.devices_starting for node in world.nodes()] == [NO_DEVICES, NO_DEVICES]


def test_a_move_holds_a_device_at_both_ends_until_the_attempt_has_left() -> None:
    world = SimulatedWorld(scenario(one("a"), one("b"), devices=(1, 1), costs=Costs(leave_s=10.0)), gated=True)
    world.advance(0.0)
    world.apply(Place(A, (N1,)))
    world.advance(1.0)
    assert world.apply(Migrate(A, (N2,))).done
    assert [world.apply(Place(B, (node,))).done for node in (N1, N2)] == [False, False]
    world.advance(12.0)
    assert world.apply(Place(B, (N1,))).done


def test_a_trial_that_asks_for_more_than_any_node_has_is_refused_with_what_it_asks_for() -> None:
    with pytest.raises(WorkloadError, match=rf"trial a requests .* and 3 {GPU}: no node has as much"):
        SimulatedWorld(scenario(one("a", count=3), devices=(2, 2)), gated=False)


def test_fewer_devices_than_none_are_refused() -> None:
    less = Devices(((GPU, -1),))
    with pytest.raises(WorkloadError, match=r"trial a: .* not -1"):
        replace(one("a"), devices=less)
    with pytest.raises(WorkloadError, match=r"node n: .* not -1"):
        NodeSpec(NodeName("n"), 1.0, devices=less)


def test_a_trial_goes_to_no_node_but_those_it_may_use() -> None:
    choosy = replace(one("a", count=0), may_use=frozenset({N2}))
    found = simulate(scenario(choosy, one("b", count=0)), Default()).result.trials
    assert [result.node for result in found if result.id == "a"] == ["n2"]
    world = SimulatedWorld(scenario(choosy), gated=True)
    world.advance(0.0)
    assert world.apply(Place(A, (N1,))).detail == "node n1 is none that the trial may use"
    assert world.apply(Place(A, (N2,))).done
