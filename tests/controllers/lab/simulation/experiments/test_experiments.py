import json
import math
from dataclasses import replace

import pytest

from controllers.lab.simulation.evaluation import (
    EstimateError,
    ExperimentPlan,
    PolicySummary,
    estimate,
    first_nodes,
    run_plans,
    simulate_seed,
    to_json,
)
from controllers.lab.simulation.experiments.experiment import Assumptions
from controllers.lab.simulation.experiments.jobs import FLOWCON_JOBS, MNIST_P_S, MNIST_T_S, VAE_P_S
from controllers.lab.simulation.experiments.published import EXPERIMENTS
from controllers.policies import Default, FlowCon, LeastUsed, SpeCon, Stacked

every_experiment = pytest.mark.parametrize("name", EXPERIMENTS)
OTHERS = ("fifo", "fair-share", "shortest-remaining", "longest-remaining", "gandiva", "least-used", "specon+flowcon")


def silent(runs: int) -> None:
    assert runs > 0


def summaries(*orders: ExperimentPlan, seeds: int = 1) -> tuple[PolicySummary, ...]:
    return run_plans(orders, range(seeds), silent, processes=1)


@every_experiment
def test_every_experiment_runs_under_what_was_published_and_all_trials_succeed(name: str) -> None:
    experiment = EXPERIMENTS[name]
    for run in simulate_seed(ExperimentPlan(experiment, experiment.policies), 0):
        assert len(run.result.trials) == (experiment.drawn or len(experiment.jobs))
        assert all(trial.succeeded for trial in run.result.trials)


@every_experiment
def test_every_policy_starts_from_where_the_default_scheduler_put_the_trials(name: str) -> None:
    experiment = EXPERIMENTS[name]
    pins = first_nodes(experiment, experiment.workload(3), 3)
    for run in simulate_seed(ExperimentPlan(experiment, ("default", "specon+flowcon")), 3):
        assert {trial.id: trial.first_node for trial in run.result.trials} == pins


def test_the_comparison_policies_all_finish_and_none_beats_the_bounds() -> None:
    found = summaries(ExperimentPlan(EXPERIMENTS["S4"], ("default", *OTHERS)))
    assert [summary.policy for summary in found] == ["default", *OTHERS]
    for summary in found:
        assert min(summary.runs[0].bound_ratio, summary.runs[0].mean_bound_ratio) >= 1


def test_shortest_first_has_a_better_mean_than_sharing_and_longest_first_a_worse_one() -> None:
    fair, shortest, longest = summaries(
        ExperimentPlan(EXPERIMENTS["F5"], ("fair-share", "shortest-remaining", "longest-remaining"))
    )
    assert shortest.runs[0].mean_completion_s < fair.runs[0].mean_completion_s < longest.runs[0].mean_completion_s


def test_the_default_run_of_f1_is_the_published_one() -> None:
    run = simulate_seed(ExperimentPlan(EXPERIMENTS["F1"], ("default",)), 0)[0].result
    completions = {trial.id: trial.completion_s for trial in run.trials}
    assert run.makespan_s == pytest.approx(394.0, rel=1e-3)
    assert completions["job-03-mnist-t"] == pytest.approx(84.7, rel=2e-3)
    assert completions["job-02-mnist-p"] == pytest.approx(240.5, rel=2e-3)
    assert pytest.approx(394.0) == (VAE_P_S + MNIST_P_S + MNIST_T_S)


def test_a_seed_gives_the_same_figures_in_another_process_and_another_seed_gives_others() -> None:
    order = ExperimentPlan(EXPERIMENTS["S5"], ("default", "specon"))
    here = run_plans([order], [7, 8], silent, processes=1)
    there = run_plans([order], [7, 8], silent, processes=2)
    assert here == there
    assert here[0].runs[0] != here[0].runs[1]


def test_a_policy_gets_the_published_parameters_unless_it_is_given_its_own() -> None:
    f4 = EXPERIMENTS["F4"]
    assert f4.parameterised(FlowCon()) == FlowCon(alpha=0.1, interval=20)
    assert f4.parameterised(FlowCon(alpha=0.02)) == FlowCon(alpha=0.02, interval=20)
    assert f4.parameterised(SpeCon()) == SpeCon()
    stacked = EXPERIMENTS["S2"].parameterised(Stacked(policies=(SpeCon(interval=10), FlowCon())))
    assert stacked == Stacked(policies=(SpeCon(alpha=0.05, interval=10), FlowCon()))


def test_figures_for_scripts_are_complete_and_the_baseline_is_not_compared_with_itself() -> None:
    default, specon = json.loads(
        json.dumps(to_json(summaries(ExperimentPlan(EXPERIMENTS["S1"], ("default", "specon")), seeds=2)))
    )["experiments"]
    keys = [
        "experiment", "policy", "seeds", "effective", "makespan_s", "makespan_change", "mean_completion_s",
        "mean_change", "median_completion_s", "faster_share", "worst_loser", "bound_ratio", "mean_bound_ratio", "moves",
        "resizes", "cut_short", "measures",
    ]  # fmt: skip
    assert list(default) == list(specon) == keys
    assert specon["effective"] == "specon"
    assert default["makespan_change"] is default["mean_change"] is None
    assert (specon["experiment"], specon["policy"], specon["seeds"]) == ("S1", "specon", 2)
    assert default["faster_share"] is None
    assert set(specon["faster_share"]) == {"mean", "ci95"}
    assert default["worst_loser"]["mean"] == 1.0


def test_the_arrivals_jobs_and_noise_of_a_seed_are_the_same_under_every_assumption() -> None:
    plain = EXPERIMENTS["S6"].workload(5)
    other = EXPERIMENTS["S6"].under(Assumptions(request=4.0, placement="chance", contention=0.1)).workload(5)
    assert [(t.id, t.submitted_at, t.reports) for t in plain.trials] == [
        (t.id, t.submitted_at, t.reports) for t in other.trials
    ]


def test_the_schedulers_of_the_assumptions_differ() -> None:
    s4 = EXPERIMENTS["S4"]
    assert s4.scheduler(1) == Default()
    assert s4.under(Assumptions(placement="use")).scheduler(1) == LeastUsed(seed=1)
    placed = [
        tuple(first_nodes(s4.under(Assumptions(placement=by)), s4.workload(1), 1).values())
        for by in ("requests", "use", "chance")
    ]
    assert len(set(placed)) == 3


def test_a_job_that_can_use_less_of_a_node_takes_as_long_alone() -> None:
    narrow = next(job for job in FLOWCON_JOBS if job.name == "lstm-cfc-t")
    alone = replace(EXPERIMENTS["F1"], jobs=(narrow,), measures=())
    run = simulate_seed(ExperimentPlan(alone, ("default",)), 0)[0].result
    assert run.makespan_s == pytest.approx(narrow.lone_s)


def test_the_interval_is_students() -> None:
    found = estimate([8.0, 10.0, 12.0])
    assert found.mean == 10.0
    # The table's t for 2 degrees of freedom is 4.303; the standard error is 2 / sqrt(3).
    assert found.half_width == pytest.approx(4.303 * 2 / math.sqrt(3), rel=1e-3)
    assert found.to_dict() == {"mean": 10.0, "ci95": pytest.approx([10.0 - 4.969, 10.0 + 4.969], rel=1e-3)}


def test_one_seed_has_no_interval() -> None:
    assert estimate([3.0]).to_dict() == {"mean": 3.0, "ci95": None}


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_has_no_mean_is_refused(values: list[float]) -> None:
    with pytest.raises(EstimateError, match="finite value"):
        estimate(values)
