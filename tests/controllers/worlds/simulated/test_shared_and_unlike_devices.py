"""Devices of unlike speed, and devices that trials share, in the simulated world."""

import pytest

from controllers.core.devices import Devices
from controllers.core.model import NodeName
from controllers.lab.simulation.bounds import makespan_bound
from controllers.lab.simulation.run import simulate
from controllers.policies import Default
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeSpec, TrialSpec, Workload
from tests.controllers.worlds.simulated.workloads import trial

GPU = "nvidia.com/gpu"


def one(name: str, work_s: float = 100.0, use: float = 1.0) -> TrialSpec:
    return trial(name, work_s, devices=Devices.of({GPU: 1}), device_use=use)


def node(advertised: int, speed: float = 1.0, replicas: int = 1) -> NodeSpec:
    devices = Devices.of({GPU: advertised})
    return NodeSpec(NodeName("n"), 8.0, devices=devices, device_speed=speed, replicas=replicas)


def ends(given: NodeSpec, *trials: TrialSpec) -> dict[str, float]:
    found = simulate(Scenario(Workload(trials, (given,)), Costs.free()), Default()).result.trials
    return {result.id: round(result.completed_s, 6) for result in found}


def test_a_trial_trains_as_many_times_as_fast_as_its_device_is_and_one_without_a_device_does_not() -> None:
    assert ends(node(1, speed=2.5), one("a"), trial("b", 100.0)) == {"a": 40.0, "b": 100.0}


def test_trials_that_each_want_all_of_a_device_take_turns_on_it() -> None:
    # Both at half speed until the short one has ended.
    assert ends(node(2, replicas=2), one("a", 50.0), one("b", 100.0)) == {"a": 100.0, "b": 150.0}


def test_trials_that_together_want_less_than_all_of_a_device_do_not_slow_each_other() -> None:
    light = (one(name, use=0.3) for name in "abc")
    assert ends(node(4, replicas=4), *light) == dict.fromkeys("abc", 100.0)


def test_a_trial_with_little_use_for_a_device_gets_it_all_and_the_others_share_the_rest() -> None:
    # b gets its 0.2, and a and c 0.4 each until b has ended; then a half each.
    assert ends(node(3, replicas=3), one("a"), one("b", use=0.2), one("c")) == {"a": 220.0, "b": 100.0, "c": 220.0}


def test_trials_come_to_the_device_with_the_fewest_others() -> None:
    assert ends(node(4, replicas=2), one("a"), one("b")) == {"a": 100.0, "b": 100.0}


def test_the_bound_counts_each_device_once_and_by_its_speed() -> None:
    trials = tuple(one(name) for name in "abcd")
    assert makespan_bound(Workload(trials, (node(4, replicas=4),))) == pytest.approx(400.0)
    assert makespan_bound(Workload(trials, (node(2, speed=2.5),))) == pytest.approx(80.0)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"device_speed": 0.0}, "node n: device_speed must be greater than 0, not 0.0"),
        ({"device_speed": float("inf")}, "node n: device_speed must be finite, not inf"),
        ({"replicas": 0}, "node n: replicas must be at least 1, not 0"),
        ({"replicas": 3}, "node n: 4 of nvidia.com/gpu cannot be 3 replicas of each device"),
    ],
)
def test_devices_that_cannot_be_are_refused_with_the_value(changes: dict[str, float], told: str) -> None:
    with pytest.raises(WorkloadError, match=told):
        NodeSpec(NodeName("n"), 8.0, devices=Devices.of({GPU: 4}), **changes)  # type: ignore[arg-type]


def test_a_trial_cannot_want_more_than_all_of_a_device() -> None:
    with pytest.raises(WorkloadError, match=r"device_use must be above 0 and at most 1, not 1\.5"):
        one("a", use=1.5)
