"""No schedule beats a bound: each run of each policy on random workloads must stay above both."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.devices import Devices
from controllers.core.model import NodeName, TrialId
from controllers.core.policy import Policy
from controllers.lab.simulation.bounds import makespan_bound, mean_completion_bound, unusable_seconds
from controllers.lab.simulation.run import simulate
from controllers.policies import FairShare, Fifo, FlowCon, Gandiva, ShortestRemaining, SpeCon
from controllers.policies.comparison.clairvoyant import inform
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import CurvePoint, NodeSpec, Speedup, TrialSpec, Workload
from tests.property_examples import examples

ROUNDING = 1 - 1e-9
POLICIES: list[Policy[Any]] = [
    SpeCon(alpha=0.2, interval=5),
    FlowCon(interval=5),
    Fifo(),
    FairShare(),
    ShortestRemaining(),
    Gandiva(quantum=7),
]


GPU = "example.com/gpu"


def gpus(count: int) -> Devices:
    return Devices.of({GPU: count})


def trial(
    number: int, at: float, work_s: float, speedup: Speedup, limit: float = float("inf"), devices: int = 0
) -> TrialSpec:
    reports = tuple(CurvePoint(work_s * part / 10, 1 / part) for part in range(1, 11))
    name, asked = TrialId(f"t{number}"), gpus(devices)
    return TrialSpec(name, at, work_s, reports, 0.5, speedup, limit=limit, devices=asked)


def workload(trials: list[TrialSpec], *nodes: NodeSpec) -> Workload:
    return Workload(tuple(trials), nodes)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    cores = st.floats(0.5, 6)
    speedups = st.one_of(
        st.builds(Speedup.linear, cores),
        st.builds(lambda c: Speedup(((c, 0.7), (3 * c, 1.0))), cores),
        st.builds(lambda c: Speedup(((c, 0.2), (2 * c, 1.0))), cores),
    )
    trials = [
        trial(
            number,
            draw(st.floats(0, 60)),
            draw(st.floats(1, 80)),
            draw(speedups),
            draw(st.sampled_from([float("inf"), 0.8])),
            draw(st.integers(0, 2)),
        )
        for number in range(draw(st.integers(1, 7)))
    ]
    nodes = [
        NodeSpec(
            NodeName(f"n{number}"),
            draw(st.floats(4, 8)),
            speed=draw(st.sampled_from([1.0, 1.5])),
            devices=gpus(draw(st.integers(0, 2)) if number else 2),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    return workload(trials, *nodes)


@settings(max_examples=examples(60))
@given(workloads(), st.sampled_from(POLICIES))
def test_no_simulated_run_beats_a_bound(given_workload: Workload, policy: Policy[Any]) -> None:
    told = inform(policy, {spec.id: spec.work_s for spec in given_workload.trials})
    result = simulate(Scenario(given_workload, Costs.free()), told).result
    assert result.makespan_s >= makespan_bound(given_workload) * ROUNDING
    assert result.mean_completion_s >= mean_completion_bound(given_workload) * ROUNDING


@settings(max_examples=examples(60))
@given(workloads(), st.sampled_from(POLICIES))
def test_no_simulated_run_uses_what_counts_as_unusable(given_workload: Workload, policy: Policy[Any]) -> None:
    told = inform(policy, {spec.id: spec.work_s for spec in given_workload.trials})
    result = simulate(Scenario(given_workload, Costs.free()), told).result
    ends = {TrialId(trial.id): trial.completed_s for trial in result.trials}
    cores = sum(node.cpu * node.speed for node in given_workload.nodes)
    # No trial needs less than its work on one core of speed 1 where it is the most efficient.
    needed = sum(
        spec.work_s / max(speed / used for used, speed in spec.speedup.points) for spec in given_workload.trials
    )
    first = min(spec.submitted_at for spec in given_workload.trials)
    assert needed / cores <= (max(ends.values()) - first - unusable_seconds(given_workload, ends)) / ROUNDING


def test_what_the_last_trial_of_each_node_cannot_use_counts_as_unusable() -> None:
    nodes = [NodeSpec(NodeName(name), 4.0) for name in ("n", "m")]
    three = Speedup.linear(3.0)
    two, more = ([trial(number, 0.0, 20.0, three) for number in range(count)] for count in (2, 3))
    all_end = {TrialId(f"t{number}"): 20.0 for number in range(3)}
    assert unusable_seconds(workload(two, *nodes), all_end) == 0.0, "no more than six cores could be used in any case"
    # Three trials could use all eight cores of one big node; on two nodes, one trial is alone, so one core is idle.
    assert unusable_seconds(workload(more, *nodes), all_end) == pytest.approx(20.0 / 8)


NODE = NodeSpec(NodeName("n"), 4.0)
WIDE, NARROW = Speedup.linear(4.0), Speedup.linear(1.0)


def test_one_trial_takes_its_own_time() -> None:
    alone = workload([trial(0, 30.0, 50.0, NARROW)], NODE)
    assert makespan_bound(alone) == 50.0
    assert mean_completion_bound(alone) == 50.0


def test_trials_that_fill_the_node_follow_one_another() -> None:
    both = workload([trial(0, 0.0, 10.0, WIDE), trial(1, 0.0, 30.0, WIDE)], NODE)
    assert makespan_bound(both) == 40.0
    assert mean_completion_bound(both) == (10 + 40) / 2


def test_narrow_trials_leave_work_for_later_that_the_bound_counts() -> None:
    # Until 10 s the first uses one core of four; then 3 x 10 s of wide work follow: 30 s and what is left of the first.
    trials = [trial(0, 0.0, 12.0, NARROW), *(trial(n, 10.0, 10.0, WIDE) for n in (1, 2, 3))]
    assert makespan_bound(workload(trials, NODE)) == pytest.approx(10 + 30 + 2 / 4)


def test_a_crowd_of_equal_trials_on_two_nodes_can_not_all_be_first() -> None:
    # On one machine of twice the speed they would end at 5, 10, ... 40 s; each needs 10 s of its own, in the mean of
    # its times at least 5 s before its end.
    trials = [trial(n, 0.0, 10.0, WIDE) for n in range(8)]
    two = workload(trials, NODE, NodeSpec(NodeName("m"), 4.0))
    assert mean_completion_bound(two) == pytest.approx(sum(2.5 + 5 * n for n in range(8)) / 8 + 5)


def test_with_as_many_devices_so_many_trials_train_at_once() -> None:
    # Four cores would train all six at once in 10 s; two devices train them in three pairs, done at 10, 20 and 30 s.
    six = [trial(n, 0.0, 10.0, Speedup.linear(0.5), devices=1) for n in range(6)]
    held = workload(six, NodeSpec(NodeName("n"), 4.0, devices=gpus(2)))
    assert makespan_bound(held) == 30.0
    assert mean_completion_bound(held) == 20.0


def test_a_trial_with_two_devices_keeps_as_many_others_waiting_and_those_without_wait_for_nobody() -> None:
    asked = [
        trial(0, 0.0, 10.0, NARROW, devices=2),
        trial(1, 0.0, 10.0, NARROW, devices=1),
        trial(2, 0.0, 10.0, NARROW),
    ]
    held = workload(asked, NodeSpec(NodeName("n"), 4.0, devices=gpus(2)))
    assert makespan_bound(held) == 15.0
    # Of those with devices, the device seconds are given at 2.5 s and 10 s in the mean, 5 s before the end at least.
    assert mean_completion_bound(held) == pytest.approx(((2.5 + 5) + (10 + 5) + 10) / 3)


def test_only_nodes_with_the_device_count_for_how_fast_a_trial_is() -> None:
    slow, fast = NodeSpec(NodeName("n"), 4.0, devices=gpus(1)), NodeSpec(NodeName("m"), 4.0, speed=2.0)
    assert makespan_bound(workload([trial(0, 0.0, 10.0, NARROW, devices=1)], slow, fast)) == 10.0
    assert makespan_bound(workload([trial(0, 0.0, 10.0, NARROW)], slow, fast)) == 5.0


def test_faster_nodes_lower_the_bounds_and_limits_raise_them() -> None:
    spec = trial(0, 0.0, 12.0, WIDE)
    assert makespan_bound(workload([spec], NodeSpec(NodeName("n"), 4.0, speed=1.5))) == pytest.approx(8.0)
    assert makespan_bound(workload([trial(0, 0.0, 12.0, WIDE, limit=1.0)], NODE)) == pytest.approx(48.0)


def test_trials_that_contend_for_a_node_slow_one_another_and_the_bounds_hold() -> None:
    both = [trial(0, 0.0, 10.0, Speedup.linear(2.0)), trial(1, 0.0, 10.0, Speedup.linear(2.0))]
    contended = workload(both, NodeSpec(NodeName("n"), 4.0, contention=0.5))
    result = simulate(Scenario(contended, Costs.free()), FairShare()).result
    assert [one.completion_s for one in result.trials] == pytest.approx([15.0, 15.0])
    assert makespan_bound(contended) == 10.0
