import random
from dataclasses import replace

import pytest

from controllers.core.model import TrialId
from controllers.lab.simulation.past_sweeps.cpu_use import measure_upkeep, trained_s
from controllers.lab.simulation.past_sweeps.past_sweep import Logged, PastSweep, PastTrial, Stay
from controllers.lab.simulation.past_sweeps.recording import TargetCluster, record
from controllers.lab.simulation.run import simulate
from controllers.policies import Default
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import Workload
from tests.controllers.lab.simulation.past_sweeps.past import EPOCH, NODES, past_sweep, trials

STEP_CPU_S = 0.05


def trial_at_changing_pace(upkeep: float, seed: int = 0) -> PastTrial:
    """400 steps of a twentieth of a CPU second each, at 0.02 to 0.2 cores; logging takes ``upkeep`` of them."""
    rng = random.Random(seed)  # noqa: S311 - data for a test
    points, at, cpu = [], 0.0, 0.0
    for step in range(400):
        cores = (0.02, 0.05, 0.2)[step // 50 % 3]
        seconds = STEP_CPU_S * rng.uniform(0.9, 1.1) / (cores - upkeep)
        at, cpu = at + seconds, cpu + seconds * cores
        points.append(Logged(step, cpu, EPOCH + at))
    return PastTrial(
        id=TrialId(f"t{seed}"),
        submitted_at=0.0,
        completed_at=at,
        objective=tuple(replace(point, value=1.0 / (point.step + 1)) for point in points),
        cpu_seconds=tuple(points),
        total_cpu_s=cpu,
        cpu=0.02,
        stays=(Stay(NODES[0].name, 0.0, at),),
    )


def sweep(upkeep: float) -> PastSweep:
    made = tuple(trial_at_changing_pace(upkeep, seed) for seed in range(3))
    return replace(past_sweep(trials(1)), trials=made)


@pytest.mark.parametrize("upkeep", [0.0, 0.002, 0.005, 0.01])
def test_what_is_spent_by_the_clock_is_told_from_what_is_spent_by_the_step(upkeep: float) -> None:
    assert measure_upkeep(sweep(upkeep)) == pytest.approx(upkeep, abs=0.001)


def test_logging_is_no_work_of_a_trial() -> None:
    recording = record(sweep(0.005), TargetCluster(NODES, Costs.free()))
    assert recording.workload.trials[0].work_s == pytest.approx(400 * STEP_CPU_S, rel=0.03)
    assert recording.workload.trials[0].upkeep == pytest.approx(0.005, abs=0.001)
    assert "logging takes 0.00" in " ".join(recording.assumptions)


def test_a_share_that_never_changed_says_nothing() -> None:
    made = sweep(0.005)
    few = tuple(replace(trial, cpu_seconds=trial.cpu_seconds[:40]) for trial in made.trials)
    assert measure_upkeep(replace(made, trials=few)) == 0.0


def test_a_trial_is_only_charged_for_time_on_a_node() -> None:
    trial = replace(
        trial_at_changing_pace(0.0), stays=(Stay(NODES[0].name, 10.0, 20.0), Stay(NODES[1].name, 30.0, 50.0))
    )
    assert [trained_s(trial, until) for until in (5.0, 15.0, 25.0, 40.0, 100.0)] == [0.0, 5.0, 10.0, 20.0, 30.0]


def test_a_simulated_trial_pays_for_logging_as_long_as_it_trains() -> None:
    (spec,) = trials(1)
    taken = [
        simulate(Scenario(Workload((replace(spec, upkeep=upkeep),), NODES), Costs.free()), Default()).result.makespan_s
        for upkeep in (0.0, 0.1, 0.4)
    ]
    # On 0.5 cores; at least half of them train.
    assert taken == pytest.approx([10 / 0.5, 10 / 0.4, 10 / 0.25])
