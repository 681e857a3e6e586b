"""What the experiments with whole devices are there to show."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest

from controllers.core.model import TrialId
from controllers.lab.simulation.bounds import makespan_bound, mean_completion_bound
from controllers.lab.simulation.experiments import EVERY_EXPERIMENT
from controllers.lab.simulation.experiments.device_experiments import (
    DEVICES,
    FASTER,
    GPU,
    LARGE,
    NODES,
    REPLICAS,
    SHARED,
    SHARED_DEVICES,
    SMALL,
)
from controllers.lab.simulation.run import simulate
from controllers.policies import Ahead, Default, Guarded
from controllers.policies.kit.work_left import Estimate, estimate_work
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import Workload


def test_trials_and_devices_are_as_their_titles_say() -> None:
    for name, with_device, without in (("V1", 60, 0), ("V2", 60, 0), ("V3", 40, 40)):
        workload = EVERY_EXPERIMENT[name].workload(0)
        assert Counter(trial.devices.count(GPU) for trial in workload.trials) == Counter({1: with_device, 0: without})
        assert [node.devices.count(GPU) for node in workload.nodes] == [DEVICES] * NODES
    assert {trial.submitted_at for trial in EVERY_EXPERIMENT["V1"].workload(3).trials} == {0.0}
    assert len({trial.submitted_at for trial in EVERY_EXPERIMENT["V2"].workload(3).trials}) == 60


def test_a_seed_gives_the_same_trials_and_another_seed_others() -> None:
    for name in ("V1", "V2", "V3"):
        experiment = EVERY_EXPERIMENT[name]
        assert experiment.workload(1) == experiment.workload(1) != experiment.workload(2)


def told_by(workload: Workload) -> Callable[..., dict[TrialId, Estimate]]:
    """Return ``estimate_work``, but with the true length of every trial that has yet to report."""
    specs = {trial.id: trial for trial in workload.trials}

    def knowing(*given: Any) -> dict[TrialId, Estimate]:  # noqa: ANN401 - as those of ``estimate_work``
        found = dict(estimate_work(*given))
        for name in [name for name, one in found.items() if not one.known]:
            cores = specs[name].speedup.max_cores
            found[name] = replace(found[name], work=specs[name].work_s * cores, most=cores, spread=0.0)
        return found

    return knowing


@pytest.mark.parametrize("seed", [0, 1])
def test_where_lengths_are_known_the_order_alone_brings_end_and_mean_near_their_bounds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = EVERY_EXPERIMENT["V1"].workload(seed)
    by_default = simulate(Scenario(workload, Costs.free(), seed), Default()).result
    monkeypatch.setattr("controllers.policies.ahead.policy.estimate_work", told_by(workload))
    ahead = simulate(Scenario(workload, Costs.free(), seed), Guarded(policy=Ahead())).result
    assert ahead.makespan_s < 1.05 * makespan_bound(workload)
    assert ahead.mean_completion_s < 1.1 * mean_completion_bound(workload)
    assert ahead.makespan_s < 0.9 * by_default.makespan_s
    assert ahead.mean_completion_s < 0.9 * by_default.mean_completion_s


@pytest.mark.slow
def test_an_order_by_lengths_that_parameters_tell_brings_end_and_mean_forward() -> None:
    ends, means = [], []
    for seed in range(3):
        scenario = Scenario(EVERY_EXPERIMENT["V1"].workload(seed), Costs.free(), seed)
        by_default, ahead = (simulate(scenario, policy).result for policy in (Default(), Guarded(policy=Ahead())))
        ends.append(ahead.makespan_s / by_default.makespan_s)
        means.append(ahead.mean_completion_s / by_default.mean_completion_s)
    assert fmean(ends) < 0.95
    assert fmean(means) < 0.95


def test_unlike_shared_and_partitioned_devices_are_as_their_titles_say() -> None:
    unlike = EVERY_EXPERIMENT["V4"].workload(0)
    assert Counter(node.device_speed for node in unlike.nodes) == Counter({1.0: NODES // 2, FASTER: NODES // 2})
    assert len({node.device_model for node in unlike.nodes}) == 2
    shared = EVERY_EXPERIMENT["V5"].workload(0)
    assert {(node.devices.count(SHARED), node.replicas) for node in shared.nodes} == {
        (REPLICAS * SHARED_DEVICES, REPLICAS)
    }
    assert {trial.device_use for trial in EVERY_EXPERIMENT["V5-light"].workload(0).trials} == {0.4}
    partitions = Counter(str(trial.devices) for trial in EVERY_EXPERIMENT["V6"].workload(0).trials)
    assert partitions == Counter({f"1 {SMALL}": 40, f"1 {LARGE}": 20})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "makespan", "mean"), [("V4", 0.9, 0.95), ("V5", 1.0, 0.85), ("V6", 1.0, 1.05)])
def test_ahead_is_sooner_than_the_default_scheduler_on_unlike_shared_and_partitioned_devices(
    name: str, makespan: float, mean: float
) -> None:
    ends, means = [], []
    for seed in range(3):
        scenario = Scenario(EVERY_EXPERIMENT[name].workload(seed), Costs.argo(), seed)
        by_default, ahead = (simulate(scenario, policy).result for policy in (Default(), Guarded(policy=Ahead())))
        ends.append(ahead.makespan_s / by_default.makespan_s)
        means.append(ahead.mean_completion_s / by_default.mean_completion_s)
    assert fmean(ends) < makespan
    assert fmean(means) < mean
