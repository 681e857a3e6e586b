import random
import statistics
from dataclasses import replace

import pytest

from controllers.core.model import TrialId
from controllers.core.results import RunResult
from controllers.lab.simulation.past_sweeps.forecast import Interval, forecast, validate, variant, with_other_noise
from controllers.lab.simulation.past_sweeps.recording import Recording, TargetCluster, record
from controllers.policies.registry import parse_policy
from controllers.worlds.simulated.scenario import Costs
from tests.controllers.lab.simulation.past_sweeps.past import NODES, past_sweep, trials


@pytest.fixture(scope="module")
def recording() -> Recording:
    sweep = past_sweep(trials())
    made = record(sweep, TargetCluster(sweep.nodes, Costs.free()))
    return replace(made, spread=dict.fromkeys(made.spread, 0.1))


def test_a_seed_draws_the_same_again_and_another_seed_something_else(recording: Recording) -> None:
    assert variant(recording, 1, {}) == variant(recording, 1, {})
    assert variant(recording, 1, {}).workload != variant(recording, 2, {}).workload


def test_work_varies_as_much_as_was_measured_around_what_was_recorded(recording: Recording) -> None:
    recorded = recording.workload.trials[0].work_s
    drawn = [variant(recording, seed, {}).workload.trials[0].work_s / recorded for seed in range(400)]
    assert statistics.fmean(drawn) == pytest.approx(1.0, abs=0.02)
    assert statistics.stdev(drawn) == pytest.approx(0.1, rel=0.2)


def test_work_that_does_not_vary_stays_as_it_was(recording: Recording) -> None:
    sure = replace(recording, spread=dict.fromkeys(recording.spread, 0.0))
    assert variant(sure, 3, {}).workload.trials[0].work_s == recording.workload.trials[0].work_s


def test_noise_changes_sign_but_keeps_its_size_and_its_curve() -> None:
    rng = random.Random(0)  # noqa: S311 - noise for a test
    curve = [10.0 * 0.9**n for n in range(200)]
    noisy = [value + rng.gauss(0, 0.05) for value in curve]
    drawn = with_other_noise(noisy, rng)
    assert drawn[0] == noisy[0]
    assert drawn != noisy
    size = [statistics.pstdev(a - b for a, b in zip(of, curve, strict=True)) for of in (noisy, drawn)]
    assert size[1] == pytest.approx(size[0], rel=0.35)


def test_policies_start_from_one_placement_and_the_first_is_compared_with_the_rest(recording: Recording) -> None:
    policies = {name: parse_policy(name) for name in ("default", "specon:interval=5,alpha=0.05+flowcon:interval=5")}
    seen: list[None] = []
    default, specon = forecast(replace(recording, first_nodes={}), policies, 3, lambda: seen.append(None))
    assert len(seen) == 6
    for before, after in zip(default.results, specon.results, strict=True):
        assert [t.first_node for t in before.trials] == [t.first_node for t in after.trials]
    assert len(specon.against(default)) == 3


def test_a_sweep_is_checked_against_its_own_simulation(recording: Recording) -> None:
    sweep = past_sweep(trials())
    (simulated,) = forecast(recording, {"default": parse_policy("default")}, 20)
    found = validate(sweep, simulated)
    assert abs(found.makespan_error) < 0.1
    assert set(found.completion_errors) == {trial.id for trial in sweep.trials}
    slower = validate(
        replace(sweep, trials=tuple(replace(t, completed_at=t.completed_at * 2) for t in sweep.trials)), simulated
    )
    assert slower.makespan_error < -0.4
    assert slower.worst_completion_error < -0.4


def test_trials_that_only_the_past_has_are_left_out_of_a_check(recording: Recording) -> None:
    sweep = past_sweep(trials())
    (simulated,) = forecast(recording, {"default": parse_policy("default")}, 1)
    fewer = replace(simulated, results=(RunResult("default", simulated.results[0].trials[1:]),))
    assert TrialId("t0") not in validate(sweep, fewer).completion_errors


def test_an_interval_of_one_value_is_that_value() -> None:
    assert Interval.of([2.0]) == Interval(2.0, 2.0, 2.0)
    wide = Interval.of([float(n) for n in range(101)])
    assert (wide.mean, wide.low, wide.high) == pytest.approx((50.0, 5.0, 95.0))


def test_nodes_are_shared_with_the_variant(recording: Recording) -> None:
    assert variant(recording, 0, {}).workload.nodes == NODES
