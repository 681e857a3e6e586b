"""E1: what gangs, their sizes and their nodes are, and that it shows what DRAGON is for."""

import statistics

import pytest

from controllers.lab.simulation.experiments import experiment_named
from controllers.lab.simulation.experiments.gang_experiments import CORES, JOBS, KINDS, gang_workload
from controllers.lab.simulation.measures import UTILISATION, ComparedRun
from controllers.lab.simulation.run import SimulatedRun, simulate
from controllers.policies.registry import parse_policy
from controllers.record.measures import utilisation
from controllers.record.timeline import EventKind, TimelineEvent
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import Workload
from tests.controllers.worlds.simulated.workloads import nodes, trial


def run(policy: str) -> SimulatedRun:
    return simulate(Scenario(gang_workload(1)), parse_policy(policy))


def mean_completion(made: SimulatedRun) -> float:
    return statistics.fmean(one.completion_s for one in made.result.trials)


def test_the_jobs_are_elastic_and_no_node_holds_a_gang_of_the_largest_size() -> None:
    setup = experiment_named("e1")
    assert setup is not None
    workload = setup.workload(0)
    assert len(workload.trials) == JOBS
    assert {trial.max_workers for trial in workload.trials} == {4}
    assert {trial.min_workers for trial in workload.trials} == {least for least, _ in KINDS.values()}
    assert all(node.cpu < 4 * CORES for node in workload.nodes)
    assert {node.zone for node in workload.nodes} == {"a", "b"}
    assert setup.workload(0) == workload != setup.workload(1)


def test_whole_gangs_that_scale_use_more_of_the_nodes_and_end_sooner_than_pods_one_by_one() -> None:
    default, dragon = run("default"), run("dragon")
    assert mean_completion(dragon) < 0.5 * mean_completion(default)
    share, change = (measure.of(ComparedRun(gang_workload(1), dragon, default)) for measure in UTILISATION)
    assert share is not None
    assert change is not None
    assert 0 < share < 1
    assert change > 0.2


@pytest.mark.parametrize(("policy", "in_vain"), [("default", True), ("volcano", False), ("dragon", False)])
def test_two_gangs_that_would_starve_each_other_do_so_only_where_pods_are_placed_one_by_one(
    policy: str, *, in_vain: bool
) -> None:
    gangs = tuple(trial(name, min_workers=4, max_workers=4) for name in ("g", "h"))
    costs = Costs(next_attempt_s=1.0, meet_within_s=20.0)
    made = simulate(Scenario(Workload(gangs, nodes(3.0, 3.0)), costs), parse_policy(policy))
    assert all(one.succeeded for one in made.result.trials)
    assert (sum(one.attempts for one in made.result.trials) > len(gangs)) is in_vain


def test_utilisation_is_the_part_of_all_cores_that_trials_used_on_average() -> None:
    events = [
        TimelineEvent(0.0, EventKind.PHASE, "a", phase="running"),
        TimelineEvent(10.0, EventKind.USAGE, "a", value=2.0),
        TimelineEvent(10.0, EventKind.PHASE, "b", phase="running"),
        TimelineEvent(20.0, EventKind.USAGE, "b", value=4.0),
    ]
    assert utilisation(events, 4.0) == pytest.approx((2 * 10 + 4 * 10) / (4 * 20))
    assert utilisation([], 4.0) == 0.0
