"""Searches by Optuna: what a sampler is told, what it gives, and what happens when its controller starts again."""

from dataclasses import replace
from typing import Any

import pytest

from controllers.core.errors import SearchError
from controllers.core.model import Phase, Point, Progress, Snapshot, Trial, TrialId
from controllers.core.parameters import bound_parameters
from controllers.search import Condition, Dimension, NumberRange, Options, OptunaSearch, SearchSpec
from tests.controllers.policies.policy_fakes import trial

X = Dimension(name="x", domain=NumberRange(low=-10, high=10))
KIND = Dimension(name="kind", domain=Options(options=("a", "b")))
ONLY_A = Dimension(
    name="y", domain=NumberRange(low=0, high=1), when=Condition(name="kind", values=("a",), otherwise=-1.0)
)


def searched(number: int, spec: SearchSpec, **changes: Any) -> Trial:  # noqa: ANN401 - fields of Trial
    waiting = trial(f"uid.sweep.t{number:03}", phase=Phase.PENDING, gated=True, attempt=0, search=spec.written())
    return replace(waiting, sweep="sweep", **changes)


def ended(one: Trial, point: Point, value: float, phase: Phase = Phase.SUCCEEDED) -> Trial:
    done = Progress(value, value, value, 9, 10.0)
    return replace(one, phase=phase, gated=False, parameters=bound_parameters(dict(point)), progress=done)


def sweep(spec: SearchSpec, trials: int, search: OptunaSearch | None = None) -> list[Point]:
    """Ask for one trial after the other; each ends at the square of x before the next begins."""
    search, found = search or OptunaSearch(), dict[TrialId, Point]()
    known = [searched(number, spec) for number in range(trials)]
    for number, one in enumerate(known):
        found[one.id] = search.ask(one, Snapshot(float(number), tuple(known), ()), found)
        known[number] = ended(one, found[one.id], float(dict(found[one.id])["x"]) ** 2)
    return list(found.values())


@pytest.mark.parametrize("sampler", ["tpe", "random", "cmaes", "TPESampler", "QMCSampler"])
def test_every_sampler_gives_points_of_the_space_and_the_same_seed_the_same(sampler: str) -> None:
    spec = SearchSpec(sampler=sampler, seed=3, space=(X, KIND, ONLY_A))
    points = sweep(spec, 12)
    for point in map(dict, points):
        assert -10 <= float(point["x"]) <= 10
        assert (point["y"] == -1.0) == (point["kind"] == "b")
    assert sweep(spec, 12) == points
    assert sweep(spec.model_copy(update={"seed": 4}), 12) != points


def test_a_sampler_that_learns_comes_nearer_than_chance() -> None:
    def nearest(sampler: str) -> float:
        found = [sweep(SearchSpec(sampler=sampler, seed=seed, space=(X,)), 40)[20:] for seed in range(3)]
        return sum(abs(float(dict(point)["x"])) for points in found for point in points) / 60

    assert nearest("tpe") < 0.5 * nearest("random")
    assert nearest("cmaes") < 0.5 * nearest("random")


def test_trials_that_run_at_the_same_time_get_different_points() -> None:
    spec = SearchSpec(sampler="tpe", space=(X,))
    waiting = [searched(number, spec) for number in range(8)]
    search, found = OptunaSearch(), dict[TrialId, Point]()
    for one in waiting:
        found[one.id] = search.ask(one, Snapshot(0.0, tuple(waiting), ()), found)
    assert len(set(found.values())) == 8


def test_a_controller_that_starts_again_goes_on_with_what_the_trials_have_come_to() -> None:
    spec = SearchSpec(sampler="tpe", settings={"n_startup_trials": 5}, space=(X,))
    trials = [searched(number, spec) for number in range(31)]
    points: list[Point] = [(("x", round(-10 + 20 * number / 29, 3)),) for number in range(30)]
    trials[:30] = [ended(one, p, float(p[0][1]) ** 2) for one, p in zip(trials[:30], points, strict=True)]
    # Nothing is remembered: what the trials show is enough.
    found = [OptunaSearch().ask(trials[30], Snapshot(1.0, tuple(trials), ()), {}) for _ in range(2)]
    assert found[0] == found[1]
    assert abs(float(dict(found[0])["x"])) < 5
    assert found[0] not in points


def test_what_was_stopped_counts_by_its_best_value_and_what_failed_does_not() -> None:
    spec = SearchSpec(sampler="tpe", settings={"n_startup_trials": 2}, space=(X,))
    first = [searched(number, spec) for number in range(7)]
    told = [ended(first[n], (("x", float(n)),), float(n), Phase.STOPPED if n % 2 else Phase.FAILED) for n in range(6)]
    point = OptunaSearch().ask(first[6], Snapshot(1.0, (*told, first[6]), ()), {})
    assert -10 <= float(dict(point)["x"]) <= 10


def test_two_sweeps_that_search_in_the_same_words_know_nothing_of_each_other() -> None:
    spec = SearchSpec(sampler="random", space=(X,))
    one, other = searched(0, spec), replace(searched(0, spec), id=TrialId("uid.other.t000"), sweep="other")
    search, both = OptunaSearch(), Snapshot(0.0, (searched(0, spec), other), ())
    assert search.ask(one, both, {}) == search.ask(other, both, {})


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        (SearchSpec(sampler="bayes", space=(X,)), "no search 'bayes'"),
        (SearchSpec(sampler="GridSampler", space=(X,)), "no search 'GridSampler'"),
        (SearchSpec(sampler="nsgaii", space=(X,)), "no search 'nsgaii'"),
        (SearchSpec(sampler="tpe", settings={"popsize": 3}, space=(X,)), "popsize"),
        (SearchSpec(sampler="tpe", settings={"n_startup_trials": "many"}, space=(X,)), "TypeError"),
    ],
)
def test_a_search_that_makes_no_sense_says_what_is_wrong(spec: SearchSpec, shown: str) -> None:
    one = searched(0, spec)
    with pytest.raises(SearchError, match=shown):
        OptunaSearch().ask(one, Snapshot(0.0, (one,), ()), {})
