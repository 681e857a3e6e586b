"""Optuna's terminator: what it says of the trials of a sweep, beside what Optuna says of the same study."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import optuna
import pytest
from optuna.terminator import BestValueStagnationEvaluator, RegretBoundEvaluator, StaticErrorEvaluator, Terminator

from controllers.core import stop_rules
from controllers.core.aims import Aims, FurtherObjective
from controllers.core.model import Direction, Phase, Progress, Trial
from controllers.core.optuna_library import quiet_optuna
from controllers.core.stop_rules import rules_of
from controllers.search import SearchSpec, read_search, why_no_terminator, why_settled
from controllers.search import terminator as ours
from tests.controllers.policies.policy_fakes import trial

SEARCH = SearchSpec.model_validate(
    {"sampler": "tpe", "seed": 3, "space": [{"name": "x", "domain": {"low": -5.0, "high": 5.0}}]}
).written()
FEW = stop_rules.Terminator(trials=3)


def came(*values: float, **changes: Any) -> list[Trial]:  # noqa: ANN401 - any field of Trial
    """Return trials of a search that came to ``values``, one after the other."""
    return [
        trial(
            f"t{number:03}",
            search=SEARCH,
            progress=Progress(value, value, value, 1, float(number)),
            **{"phase": Phase.SUCCEEDED, **changes},
        )
        for number, value in enumerate(values)
    ]


def parabola(count: int) -> list[Trial]:
    """Return trials at points between -4 and 4 that come to the square of the distance from 1."""
    points = [-4.0 + 8.0 * (number * 7 % count) / (count - 1) for number in range(count)]
    trials = came(*((x - 1.0) ** 2 for x in points))
    return [replace(one, parameters=(("x", float(f"{x:.6g}")),)) for one, x in zip(trials, points, strict=True)]


def says_optuna(evaluator: Any, trials: Sequence[Trial], below: float) -> bool:  # noqa: ANN401 - Optuna's
    """Return whether Optuna's own terminator would end a study of ``trials``."""
    study = quiet_optuna().create_study()
    for one in trials:
        assert one.progress is not None
        params = {name: float(value) for name, value in one.parameters}
        among: dict[str, Any] = {name: optuna.distributions.FloatDistribution(-5.0, 5.0) for name in params}
        study.add_trial(optuna.trial.create_trial(value=one.progress.best, params=params, distributions=among))
    with warnings.catch_warnings(action="ignore"):
        terminator = Terminator(evaluator, StaticErrorEvaluator(below), 1)
    return bool(terminator.should_terminate(study))


@pytest.mark.parametrize("values", [(5, 1, 2, 3, 4), (5, 1, 2, 3, 4, 5), (1, 1, 1, 1, 1), (9, 8, 7, 6, 5, 4)])
def test_the_best_has_stood_for_as_long_as_optuna_says(values: tuple[float, ...]) -> None:
    quiet_optuna()
    evaluator = BestValueStagnationEvaluator(3)
    for count in range(1, len(values) + 1):
        trials = came(*values[:count])
        assert bool(why_settled(FEW, trials)) is says_optuna(evaluator, trials, 0.0)


def test_it_ends_in_words_and_counts_upwards_where_more_is_better() -> None:
    assert why_settled(FEW, came(5, 1, 2, 3, 4)) == ""
    assert why_settled(FEW, came(5, 1, 2, 3, 4, 5)) == "4 trials in a row have found nothing better"
    assert why_settled(FEW, came(5, 6, 7, 8, 9, direction=Direction.MINIMIZE)) != ""
    assert why_settled(FEW, came(5, 6, 7, 8, 9, direction=Direction.MAXIMIZE)) == ""


def test_trials_that_failed_or_still_run_do_not_count_and_those_that_were_ended_early_do() -> None:
    settled = came(1, 5, 5, 5, 5)
    assert why_settled(FEW, settled)
    for odd in ({"phase": Phase.FAILED}, {"phase": Phase.RUNNING}, {"progress": None}):
        assert why_settled(FEW, [*settled[:-1], replace(settled[-1], **odd)]) == ""
    assert why_settled(FEW, [*settled[:-1], replace(settled[-1], phase=Phase.STOPPED)])


def test_where_nothing_searches_or_several_objectives_are_wanted_nothing_is_ended() -> None:
    several = Aims((FurtherObjective("latency", Direction.MINIMIZE),))
    for odd in ({"search": ""}, {"aims": several}):
        assert why_settled(FEW, [replace(one, **odd) for one in came(1, 5, 5, 5, 5)]) == ""
    assert why_settled(FEW, []) == ""


def test_a_model_says_how_near_the_best_is_as_optuna_does() -> None:
    pytest.importorskip("torch")
    trials = parabola(20)
    near = stop_rules.Terminator(trials=20, regret=1.0)
    assert why_settled(near, trials[:-1]) == ""
    assert why_settled(near, trials).startswith("the best is within ")
    assert why_settled(near, trials) == why_settled(near, trials)
    seed = read_search(SEARCH).seed
    for regret in (1e-9, 1.0):
        evaluator = RegretBoundEvaluator(seed=seed)
        said = says_optuna(evaluator, trials, regret)
        assert bool(why_settled(stop_rules.Terminator(trials=20, regret=regret), trials)) is said is (regret == 1.0)


def test_trials_without_points_are_not_modelled() -> None:
    pytest.importorskip("torch")
    lost = [replace(one, parameters=()) for one in parabola(20)]
    assert why_settled(stop_rules.Terminator(trials=20, regret=1e9), lost) == ""


@pytest.mark.parametrize("search", ["{", SEARCH.replace('"x"', '"y"')])
def test_a_search_that_makes_no_sense_ends_nothing(search: str) -> None:
    trials = [replace(one, search=search) for one in parabola(20)]
    assert why_settled(stop_rules.Terminator(trials=20, regret=1e9), trials) == ""


def test_why_a_terminator_cannot_end_a_sweep_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    stands, models = (rules_of(terminator=given) for given in ({"trials": 3}, {"trials": 3, "regret": 0.1}))
    assert why_no_terminator(rules_of(value=0.1), "", several=True) is None
    assert "plateau(trials=..., by=...)" in str(why_no_terminator(stands, "", several=False))
    assert "one objective" in str(why_no_terminator(stands, SEARCH, several=True))
    assert why_no_terminator(stands, SEARCH, several=False, in_cluster=True) is None
    assert "the controller of a cluster" in str(why_no_terminator(models, SEARCH, several=False, in_cluster=True))
    monkeypatch.setattr(ours, "find_spec", lambda _: None)
    assert "needs PyTorch" in str(why_no_terminator(models, SEARCH, several=False))
    assert why_no_terminator(stands, SEARCH, several=False) is None
