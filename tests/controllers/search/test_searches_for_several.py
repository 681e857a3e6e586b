"""Searches for several objectives and under constraints: what Optuna is told, when, and what it makes of it."""

from dataclasses import replace

import pytest

from controllers.core.aims import Aims, Constraint, Direction, FurtherObjective
from controllers.core.errors import SearchError
from controllers.core.model import Phase, Point, Progress, Snapshot, Trial, TrialId
from controllers.core.parameters import bound_parameters
from controllers.search import OptunaSearch, SearchesElsewhere, SearchQueue, SearchSpec
from controllers.search.told import PATIENCE_S, Ledger
from tests.controllers.search.test_optuna_search import KIND, ONLY_A, X, searched
from tests.controllers.search.test_searches_elsewhere import Here, answer

NEAR_5 = Aims((FurtherObjective("far", Direction.MAXIMIZE),))
ABOVE_0 = Aims((), (Constraint("x", ">=", 0.0),))


def came_to(one: Trial, point: Point, phase: Phase = Phase.SUCCEEDED, **also: float) -> Trial:
    """Return a trial that ended at the square of x, and at metrics besides."""
    value = float(dict(point)["x"]) ** 2
    done = Progress(value, value, value, 9, 10.0, also=tuple(also.items()))
    return replace(one, phase=phase, gated=False, parameters=bound_parameters(dict(point)), progress=done)


def sweep(spec: SearchSpec, trials: int, aims: Aims) -> list[float]:
    """Ask for one trial after the other. Objectives: x squared, and minus the square of the distance of x from 5."""
    search, found = OptunaSearch(), dict[TrialId, Point]()
    known = [searched(number, spec, aims=aims) for number in range(trials)]
    for number, one in enumerate(known):
        point = found[one.id] = search.ask(one, Snapshot(float(number), tuple(known), ()), found)
        x = float(dict(point)["x"])
        known[number] = came_to(one, point, far=-((x - 5) ** 2), x=x)
    return [float(dict(point)["x"]) for point in found.values()]


@pytest.mark.parametrize("sampler", ["tpe", "random", "NSGAIISampler", "NSGAIIISampler", "QMCSampler"])
def test_samplers_of_optuna_search_for_several_objectives_under_constraints(sampler: str) -> None:
    spec = SearchSpec(sampler=sampler, seed=3, space=(X, KIND, ONLY_A))
    aims = Aims(NEAR_5.further, ABOVE_0.constraints)
    assert all(-10 <= x <= 10 for x in sweep(spec, 12, aims))
    assert sweep(spec, 12, aims) == sweep(spec, 12, aims)


@pytest.mark.parametrize(
    ("sampler", "settings"), [("tpe", {}), ("NSGAIISampler", {"population_size": 8, "mutation_prob": 0.1})]
)
def test_a_sampler_that_learns_comes_to_the_front_more_often_than_chance(
    sampler: str, settings: dict[str, bool | int | float | str]
) -> None:
    def on_front(name: str, settings: dict[str, bool | int | float | str]) -> int:
        specs = [SearchSpec(sampler=name, settings=settings, seed=seed, space=(X,)) for seed in range(3)]
        return sum(0 <= x <= 5 for spec in specs for x in sweep(spec, 60, NEAR_5)[30:])

    assert on_front(sampler, settings) > 1.5 * on_front("random", {})


def test_a_sampler_keeps_to_a_constraint_more_often_than_chance() -> None:
    # The best point lies on the bound, and a sampler that learns looks on both sides of it.
    def kept(name: str) -> int:
        specs = [SearchSpec(sampler=name, seed=seed, space=(X,)) for seed in range(3)]
        return sum(x >= 0 for spec in specs for x in sweep(spec, 60, ABOVE_0)[30:])

    assert kept("tpe") > 1.2 * kept("random")


@pytest.mark.parametrize("aims", [NEAR_5, ABOVE_0])
def test_cmaes_refuses_several_objectives_and_constraints_by_name(aims: Aims) -> None:
    one = searched(0, SearchSpec(sampler="CmaEsSampler", space=(X,)), aims=aims)
    with pytest.raises(SearchError, match=r"the search 'CmaEsSampler' (has one objective|knows no constraints): take"):
        OptunaSearch().ask(one, Snapshot(0.0, (one,), ()), {})


SPEC = SearchSpec(sampler="tpe", space=(X,))
POINT: Point = (("x", 3.0),)


def told(*looks: tuple[float, Trial], aims: Aims = NEAR_5) -> list[tuple[float, tuple[float, ...]]]:
    """Return when a search was told that the trial is over, and its values, of looks at it."""
    ledger = Ledger(searched(0, SPEC, aims=aims))
    found = []
    for now, trial in looks:
        found += [(now, news.values) for news in ledger.news([trial], {trial.id: POINT}, now) if news.over]
    return found


def test_the_newest_value_of_each_of_several_objectives_counts_and_the_best_of_a_single_one() -> None:
    one = came_to(searched(0, SPEC), POINT, far=-4.0)
    assert one.progress is not None
    later = replace(one, progress=replace(one.progress, best=1.0, latest=2.0))
    assert told((0.0, later)) == [(0.0, (2.0, -4.0))]
    assert told((0.0, later), aims=Aims()) == [(0.0, (1.0,))]


def test_a_metric_that_comes_at_the_very_end_is_waited_for() -> None:
    one = searched(0, SPEC)
    bare, whole = came_to(one, POINT), came_to(one, POINT, far=-4.0)
    assert told((0.0, bare), (1.0, bare), (2.0, whole)) == [(2.0, (9.0, -4.0))]
    assert told((0.0, bare), (PATIENCE_S, bare), (PATIENCE_S + 1, whole)) == [(PATIENCE_S, ())]


def test_a_trial_that_failed_or_diverged_has_no_values() -> None:
    whole = came_to(searched(0, SPEC), POINT, far=-4.0)
    assert told((0.0, replace(whole, phase=Phase.FAILED))) == [(0.0, ())]
    assert told((0.0, replace(whole, diverged=True)), (PATIENCE_S, replace(whole, diverged=True))) == [(PATIENCE_S, ())]


def test_all_trials_of_a_search_count_by_what_the_first_that_asked_wants() -> None:
    ledger = Ledger(searched(0, SPEC, aims=NEAR_5))
    other = came_to(searched(1, SPEC, aims=Aims()), POINT, far=-4.0)
    assert [news.values for news in ledger.news([other], {other.id: POINT}, 0.0) if news.over] == [(9.0, -4.0)]


def test_a_search_in_another_process_gives_the_same_points() -> None:
    def points(search: OptunaSearch | SearchesElsewhere) -> list[Point]:
        found = dict[TrialId, Point]()
        known = [searched(number, SPEC, aims=NEAR_5) for number in range(14)]
        for number, one in enumerate(known):
            snapshot = Snapshot(float(number), tuple(known), ())
            if isinstance(search, OptunaSearch):
                found[one.id] = search.ask(one, snapshot, found)
            else:
                found[one.id] = answer(search, one, snapshot, found)
            known[number] = came_to(one, found[one.id], far=-float(number % 3))
        return list(found.values())

    with SearchQueue(process=Here()) as queue, queue.searches("team") as searches:
        assert points(searches) == points(OptunaSearch())
