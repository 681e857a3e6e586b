"""Experiments that look for the best model: what they draw, and what a search finds in them."""

from itertools import pairwise

import pytest

from controllers.core.model import TrialId
from controllers.core.parameters import bound_parameters
from controllers.lab.simulation.evaluation import ExperimentPlan, run_plans
from controllers.lab.simulation.experiments.curve_families import CURVE_EXPERIMENTS, Family
from controllers.lab.simulation.experiments.nearest_curves import Configuration, NearestCurves
from controllers.search import NumberRange, Options, read_search
from controllers.worlds.simulated.workload import CurvePoint, TrialSpec


def test_a_seed_draws_one_task_and_another_seed_another() -> None:
    family = Family(30, 4)
    drawn = family.workload(1)
    assert (len(drawn.trials), sum(node.cpu for node in drawn.nodes)) == (30, 4.0)
    tasks = {trial.id.partition("-")[2].rpartition(".")[0] for trial in drawn.trials}
    assert len(tasks) == 1
    assert family.workload(1) == drawn
    assert len({family.workload(seed).trials[0].id.partition("-")[2] for seed in range(20)}) > 10


def test_all_trials_have_fifty_reports_and_their_hyperparameters() -> None:
    for trial in Family(100, 16, schedule="one-cycle").workload(3).trials:
        assert "/one-cycle." in trial.id
        assert len(trial.reports) == 50
        assert all(a.work_s <= b.work_s for a, b in pairwise(trial.reports))
        assert {"lr", "width", "depth", "optimizer"} <= dict(trial.parameters).keys()


def table() -> dict[TrialId, Configuration]:
    return {
        TrialId(f"t.{n}"): Configuration(
            (CurvePoint(1.0, 9.0), CurvePoint(10.0 + n, float(n))),
            bound_parameters({"lr": 10.0**-n, "kind": "ab"[n % 2], "depth": n}),
        )
        for n in range(8)
    }


def test_a_trial_trains_as_the_nearest_configuration_did() -> None:
    curves = NearestCurves.of(table())
    spec = TrialSpec(TrialId("a"), 0.0, 1.0, (), 1.0)
    for n in range(8):
        exact = curves.trained(spec, (("lr", 10.0**-n), ("kind", "ab"[n % 2]), ("depth", n)))
        assert exact.reports[-1].value == n
    near = curves.trained(spec, (("lr", 1.3e-3), ("kind", "b"), ("depth", 3)))
    assert (near.work_s, near.reports[-1].value) == (13.0, 3.0)


def test_its_space_is_that_of_the_table() -> None:
    found = {one.name: one.domain for one in NearestCurves.of(table()).space()}
    assert found["lr"] == NumberRange(low=1e-7, high=1.0, log=True)
    assert found["depth"] == NumberRange(low=0, high=7, whole=True)
    assert found["kind"] == Options(options=("a", "b"))


@pytest.mark.parametrize("name", ["C1-tpe", "C1-random"])
def test_a_search_gives_the_trials_of_an_experiment_other_hyperparameters(name: str) -> None:
    experiment = next(one for one in CURVE_EXPERIMENTS if one.id == name)
    workload = experiment.workload(0)
    assert read_search(workload.trials[0].search).sampler == name.partition("-")[2]
    (default,) = run_plans([ExperimentPlan(experiment, ("default",))], range(1), lambda _: None, processes=1)
    # Exactly 0 is what comes out where the trials train as drawn, with no search asked.
    assert default.runs[0].measures["beyond_chance_percent"] not in (None, 0.0)


def test_the_same_seed_searches_in_the_same_way() -> None:
    experiment = next(one for one in CURVE_EXPERIMENTS if one.id == "C1-tpe")
    plan = ExperimentPlan(experiment, ("default", "promote"))
    one, other = (run_plans([plan], range(1), lambda _: None, processes=1) for _ in range(2))
    assert [summary.to_dict() for summary in one] == [summary.to_dict() for summary in other]
