import math
from dataclasses import replace

import pytest

from controllers.core.model import Direction, NodeName, TrialId
from controllers.lab.simulation.past_sweeps.cpu_use import cores_used, count_use
from controllers.lab.simulation.past_sweeps.past_sweep import Logged, MoveTimes, PastSweep, PastSweepError, PastTrial
from controllers.lab.simulation.past_sweeps.recording import Recording, TargetCluster, record
from controllers.lab.simulation.past_sweeps.supply import with_measured_supply
from controllers.lab.simulation.run import simulate
from controllers.policies import Default, GangFifo
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeSpec
from tests.controllers.lab.simulation.past_sweeps.past import COSTS, NODES, START_CPU_S, past_sweep, trials


def completions(recording: Recording) -> dict[str, float]:
    scenario = Scenario(recording.workload, recording.costs, 0, recording.first_nodes)
    return {of.id: of.completed_s for of in simulate(scenario, Default()).result.trials}


def of_past(sweep: PastSweep) -> dict[str, float]:
    return {trial.id: trial.completed_at for trial in sweep.trials}


def trial_of(cpu: list[float], *, attempts: int = 1, seconds_per_step: float = 1.0) -> PastTrial:
    at = [seconds_per_step * n for n in range(len(cpu))]
    return PastTrial(
        id=TrialId("t"),
        submitted_at=0.0,
        completed_at=at[-1] + 1,
        objective=tuple(Logged(n, 1.0, t) for n, t in enumerate(at)),
        cpu_seconds=tuple(Logged(n, value, t) for n, (value, t) in enumerate(zip(cpu, at, strict=True))),
        attempts=attempts,
    )


def test_a_sweep_with_cpu_seconds_is_simulated_as_it_was() -> None:
    sweep = past_sweep(trials())
    recording = record(sweep, TargetCluster(sweep.nodes, Costs.free()))
    assert recording.costs.start_cpu_s == pytest.approx(START_CPU_S, rel=0.01)
    assert completions(recording) == pytest.approx(of_past(sweep), rel=0.01)
    assert [report.work_s for report in recording.workload.trials[0].reports] == pytest.approx(
        [report.work_s for report in trials()[0].reports], rel=0.01
    )


def test_a_trial_of_several_workers_is_simulated_with_as_many_as_it_was_seen_to_have() -> None:
    # Three workers of a core each: 0.6 CPU seconds of imports in all, then 0.3 a step.
    gang = replace(trial_of([0.9 + 0.3 * n for n in range(41)], seconds_per_step=0.1), workers=(1, 3), cpu=1.0)
    nodes = tuple(NodeSpec(NodeName(f"node-{n}"), 1.0) for n in range(3))
    recording = record(PastSweep("past", "dragon", Direction.MINIMIZE, (gang,), nodes), TargetCluster(nodes, COSTS))
    (spec,) = recording.workload.trials
    assert (spec.min_workers, spec.max_workers, spec.speedup.max_cores) == (1, 3, 1.0)
    assert recording.costs.start_cpu_s == pytest.approx(0.2)
    assert spec.work_s == pytest.approx(0.3 * 41)
    assert recording.first_nodes == {}
    (result,) = simulate(Scenario(recording.workload, recording.costs), GangFifo()).result.trials
    assert result.completed_s == pytest.approx(0.2 + 0.3 * 41 / 3, rel=0.02)
    assert any("as many workers as they were seen to have" in told for told in recording.assumptions)


def test_timestamps_alone_are_shared_evenly_among_what_ran() -> None:
    one_node = (NodeSpec(NodeName("node-1"), 0.5),)
    sweep = past_sweep(trials(), one_node, counted=False)
    recording = record(sweep, TargetCluster(one_node, COSTS))
    assert "nobody counted CPU seconds" in " ".join(recording.assumptions)
    assert completions(recording) == pytest.approx(of_past(sweep), rel=0.02)


def test_what_the_machine_took_from_the_nodes_is_found_again() -> None:
    disturbed = tuple(replace(node, supply=((10.0, 0.25), (60.0, 0.5), (100.0, 0.1))) for node in NODES)
    sweep = past_sweep(trials(), disturbed)
    quiet = record(sweep, TargetCluster(sweep.nodes, Costs.free()))
    measured = record(sweep, TargetCluster(with_measured_supply(sweep), Costs.free()))
    errors = [
        max(abs(at / of_past(sweep)[name] - 1) for name, at in completions(recording).items())
        for recording in (quiet, measured)
    ]
    assert errors[0] > 0.3
    assert errors[1] < 0.15


def test_an_undisturbed_node_is_found_to_have_had_all_its_cores() -> None:
    sweep = past_sweep(trials(), (replace(NODES[0], cpu=0.4),))
    assert [node.supply for node in with_measured_supply(sweep)] == [()]


def test_the_start_of_a_further_attempt_is_no_work_of_the_trial() -> None:
    steps = [1.0 + 0.1 * n for n in range(20)]
    moved = steps[:10] + [value + 5.0 for value in steps[10:]]
    assert count_use(trial_of(moved, attempts=2)).spent == pytest.approx(steps)
    assert count_use(trial_of(moved, attempts=2)).total == pytest.approx(steps[-1])
    assert count_use(trial_of(moved)).total == pytest.approx(moved[-1])


def test_a_counter_that_falls_or_is_missing_at_a_step_does_not_take_work_back() -> None:
    trial = trial_of([1.0, 2.0, 1.5, 4.0])
    assert count_use(trial).spent == (1.0, 2.0, 2.0, 4.0)
    sparse = replace(trial, cpu_seconds=(trial.cpu_seconds[0], trial.cpu_seconds[3]))
    assert count_use(sparse).spent == (1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize(("per_second", "cores"), [(0.2, 1.0), (1.1, 1.0), (3.0, 3.0)])
def test_a_trial_can_use_the_cores_that_it_was_seen_to_use(per_second: float, cores: float) -> None:
    assert cores_used(trial_of([per_second * n for n in range(30)])) == pytest.approx(cores)


def test_work_of_several_cores_is_counted_in_lone_seconds() -> None:
    trial = trial_of([4.0 * n for n in range(1, 31)])
    sweep = PastSweep("s", "default", past_sweep(trials(1)).direction, (trial,), NODES)
    (spec,) = record(sweep, TargetCluster((NodeSpec(NodeName("n"), 8.0),), Costs.free())).workload.trials
    assert spec.speedup.max_cores == pytest.approx(4.0)
    assert spec.work_s == pytest.approx(30.0, abs=1.0)


def test_moves_that_were_seen_give_their_cost() -> None:
    sweep = replace(past_sweep(trials()), moves=(MoveTimes(1.0, 4.0), MoveTimes(2.0, 6.0), MoveTimes(3.0, 8.0)))
    costs = record(sweep, TargetCluster(NODES, Costs.argo())).costs
    assert (costs.leave_s, costs.next_attempt_s) == (2.0, 6.0 - Costs.argo().start_s)
    seen_elsewhere = record(past_sweep(trials()), TargetCluster(NODES, Costs.argo()), [sweep])
    assert seen_elsewhere.costs == costs
    assert "as in the 3 that were seen (median)" in " ".join(seen_elsewhere.assumptions)


def test_two_recorded_runs_tell_how_far_work_varies() -> None:
    once = past_sweep(trials())
    more = [replace(of, total_cpu_s=(of.total_cpu_s or 0.0) * math.exp(0.1)) for of in once.trials]
    recording = record(once, TargetCluster(NODES, Costs.free()), [replace(once, trials=tuple(more))])
    assert recording.spread[once.trials[0].id] == pytest.approx(0.1 / math.sqrt(2), rel=0.1)
    assert "as between its 2 recorded runs" in recording.assumptions[-1]


def test_other_nodes_forget_the_placement_and_say_so() -> None:
    sweep = past_sweep(trials())
    assert set(record(sweep, TargetCluster(sweep.nodes, COSTS)).first_nodes) == {trial.id for trial in sweep.trials}
    elsewhere = record(sweep, TargetCluster((NodeSpec(NodeName("big"), 4.0),), COSTS))
    assert elsewhere.first_nodes == {}
    assert "it ran on 2 nodes of 1 cores together, and is simulated on 1 of 4" in elsewhere.assumptions


def test_a_sweep_without_trials_tells_what_happened_to_them() -> None:
    with pytest.raises(PastSweepError, match=r"sweep s has no trial .*: a failed; b logged no objective"):
        PastSweep("s", None, past_sweep(trials(1)).direction, (), left_out=("a failed", "b logged no objective"))


def test_a_target_cluster_without_nodes_is_refused() -> None:
    with pytest.raises(PastSweepError, match="--nodes and --cpus-per-node"):
        TargetCluster((), Costs.free())
