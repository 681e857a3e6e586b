"""What a search learns from trials of earlier sweeps: also of other spaces and of failed ones."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

import pytest

from controllers.core.earlier import Earlier, EarlierTrial
from controllers.core.errors import SearchPending
from controllers.core.model import Direction, Point, Snapshot, TrialId
from controllers.core.parameters import bound_parameters
from controllers.search import Dimension, NumberRange, Options, OptunaSearch, SearchSpec, what_is_learnt
from controllers.search.cost import Bound
from controllers.search.earlier import FIRST, MOST_POOR, Lesson, best_first, lessons_of, poor_of, that_fit
from tests.controllers.search.test_optuna_search import KIND, ONLY_A, X, ended, searched
from tests.controllers.search.test_searches_elsewhere import Here, answer, opened

SPACE = (X, KIND, ONLY_A)
TPE = SearchSpec(sampler="tpe", space=SPACE)
STEPS = Dimension(name="steps", domain=NumberRange(low=10, high=50, whole=True, step=10))
RATE = Dimension(name="rate", domain=NumberRange(low=0.001, high=1, log=True))


def earlier(value: float | None = 1.0, age_s: float = 60.0, **parameters: float | str | bool) -> EarlierTrial:
    came_to = None if value is None else (value,)
    return EarlierTrial("old.s.t0", bound_parameters(parameters), came_to, cost=2.0, age_s=age_s)


def taught(spec: SearchSpec, *trials: EarlierTrial) -> tuple[list[dict[str, object]], dict[str, int]]:
    lessons, left_out = lessons_of(spec, trials)
    return [dict(lesson.values) for lesson in lessons], dict(left_out)


def test_values_that_were_drawn_are_taken_and_what_the_space_does_not_have_is_left_aside() -> None:
    trials = [earlier(x=3.25, kind="a", y=0.5, batch=64), earlier(x=-1.123456789, kind="b", y=-1.0)]
    assert taught(TPE, *trials) == ([{"x": 3.25, "kind": "a", "y": 0.5}, {"x": -1.123456789, "kind": "b"}], {})


def test_a_trial_outside_of_the_space_takes_no_part() -> None:
    spec = SearchSpec(sampler="tpe", space=(*SPACE, STEPS))
    told, left_out = taught(
        spec,
        earlier(x=1.0, kind="b", steps=20),
        earlier(x=10.1, kind="b", steps=20),
        earlier(x=1.0, kind="c", steps=20),
        earlier(x=1.0, kind="b", steps=25),
        earlier(x="much", kind="b", steps=20),
    )
    assert (told, type(told[0]["steps"])) == ([{"x": 1.0, "kind": "b", "steps": 20}], int)
    assert left_out == {
        "with 'x' outside of its bounds": 2,
        "with 'kind' outside of its bounds": 1,
        "with 'steps' outside of its bounds": 1,
    }


def test_a_hyperparameter_that_is_new_hinders_only_a_search_that_goes_by_all_of_them() -> None:
    old = earlier(x=1.0, kind="b")
    for sampler in ("tpe", "GPSampler"):
        spec = SearchSpec(sampler=sampler, space=(X, KIND, RATE))
        assert taught(spec, old) == ([{"x": 1.0, "kind": "b"}], {})
        first, second = asked(spec, [old], 2)
        assert dict(first).items() >= {("x", 1.0), ("kind", "b")}
        assert dict(first)["rate"] != dict(second)["rate"]
    assert taught(SearchSpec(sampler="cmaes", space=(X, KIND, RATE)), old) == ([], {"without 'rate'": 1})
    assert taught(SearchSpec(sampler="tpe", space=(RATE,)), old) == ([], {"without 'rate'": 1})


def test_what_failed_is_told_as_failed_and_another_objective_tells_nothing() -> None:
    failed = replace(earlier(x=1.0, kind="b"), came_to=())
    lessons, left_out = lessons_of(TPE, [failed, earlier(None, x=1.0, kind="b")])
    assert [lesson.came_to for lesson in lessons] == [()]
    assert left_out == {"logged another objective": 1}
    with_failed = [replace(failed, parameters=bound_parameters({"x": n / 9, "kind": "b"})) for n in range(12)]
    assert asked(TPE, with_failed)  # Optuna takes them


def test_samplers_that_go_by_their_own_trials_say_so() -> None:
    (why,) = lessons_of(SearchSpec(sampler="NSGAIISampler", space=SPACE), [earlier(x=1.0, kind="b")])[1]
    assert why == "not, as the search 'NSGAIISampler' goes by none but its own trials"


def test_a_line_tells_how_many_are_learnt_from_and_why_others_are_not() -> None:
    trials = [
        earlier(x=1.0, kind="b", age_s=3 * 86400),
        earlier(x=20.0, kind="b"),
        replace(earlier(x=2.0, kind="b"), came_to=(), cost=None),
    ]
    assert what_is_learnt(trials, TPE.written()) == (
        "learnt before: 3 trials of earlier sweeps (60 s to 3 days old), the search takes 1, 1 with 'x' outside of its "
        "bounds, 1 failed; 2 tell what a step costs"
    )
    assert what_is_learnt([], "") == "nothing was learnt before: no trial of an earlier sweep had ended"
    assert "1 tell what a step costs" in what_is_learnt(trials[:1], "")


def test_a_dear_search_learns_from_as_many_as_it_may_compute_with() -> None:
    lessons = [Lesson((("x", float(n)),), (1.0,)) for n in range(100)]
    assert that_fit(TPE, lessons, 10, Bound(24 * 41 * 3, "nobody")) == lessons[:25]
    assert that_fit(TPE, lessons, 10, Bound(10, "nobody")) == []


def asked(
    spec: SearchSpec, trials: Sequence[EarlierTrial], count: int = 1, search: OptunaSearch | None = None
) -> list[Point]:
    """Ask for trials one after the other: each comes to the square of x."""
    search, found = search or OptunaSearch(), dict[TrialId, Point]()
    known = [searched(number, spec) for number in range(count)]
    before = Earlier({"sweep": tuple(trials)})
    for number, one in enumerate(known):
        look = replace(Snapshot(float(number), tuple(known), ()), earlier=before)
        found[one.id] = search.ask(one, look, found)
        known[number] = ended(one, found[one.id], float(dict(found[one.id])["x"]) ** 2)
    return list(found.values())


BOWL = [earlier((x - 1) ** 2, x=x / 2) for x in range(-16, 17)]
"""An earlier sweep whose best lies near, not at, the new one's."""


@pytest.mark.parametrize("sampler", ["tpe", "cmaes", "GPSampler"])
def test_a_search_that_learnt_before_begins_where_that_was_good(sampler: str) -> None:
    aside = Dimension(name="x", domain=NumberRange(low=-4, high=16))  # CMA-ES begins in the middle
    space = (aside, Dimension(name="z", domain=NumberRange(low=0, high=1)))
    specs = [SearchSpec(sampler=sampler, seed=seed, space=space) for seed in range(6)]
    trials = [replace(one, parameters=(*one.parameters, ("z", 0.5))) for one in BOWL]

    def far(before: Sequence[EarlierTrial]) -> float:
        return statistics.fmean(abs(float(dict(point)["x"])) for spec in specs for point in asked(spec, before, 5))

    assert far(trials) < 0.6 * far([])


@pytest.mark.parametrize("space", [SPACE, (X, KIND), (KIND,), (X, STEPS)])
@pytest.mark.parametrize("settings", [{}, {"sigma0": 0.5}, {"with_margin": True}])
def test_cmaes_begins_from_earlier_trials_only_where_it_can(
    space: tuple[Dimension, ...],
    settings: dict[str, bool | int | float | str],
) -> None:
    if "with_margin" in settings and space is SPACE:
        pytest.skip("Optuna's own CMA-ES fails with a margin where a number is conditional")
    spec = SearchSpec(sampler="cmaes", seed=1, space=space, settings=settings)
    trials = [earlier(float(n), x=n / 4, kind="a", y=0.5, steps=20) for n in range(20)]
    begins = "sigma0" not in settings and space in {(X, KIND), (X, STEPS)}
    assert len(lessons_of(spec, trials)[0]) == 20 * begins
    assert lessons_of(spec, trials[:9])[0] == []
    found = dict[TrialId, Point]()
    known = [searched(number, spec) for number in range(6)]
    search = OptunaSearch()
    for number, one in enumerate(known):
        look = replace(Snapshot(float(number), tuple(known), ()), earlier=Earlier({"sweep": tuple(trials)}))
        found[one.id] = search.ask(one, look, found)
        known[number] = ended(one, found[one.id], float(number))
    assert len(found) == 6


def test_the_best_of_earlier_sweeps_are_tried_again_first_each_once_and_the_sampler_gives_what_they_lack() -> None:
    spec = SearchSpec(sampler="tpe", seed=2, space=(X, RATE))
    again = asked(spec, [*BOWL, *BOWL], 7)
    assert [dict(point)["x"] for point in again[:FIRST]] == [0.5, 0.0, 1.0, -0.5, 1.5]
    rates = {dict(point)["rate"] for point in again}
    assert len(rates) == 7
    assert all(0.001 <= float(rate) <= 1 for rate in rates)


def test_a_point_that_a_trial_of_the_sweep_has_is_not_tried_again_once_the_study_is_built_again() -> None:
    spec, found = SearchSpec(sampler="tpe", seed=2, space=(X,)), dict[TrialId, Point]()
    known = [searched(number, spec) for number in range(3)]
    for number, one in enumerate(known):
        look = replace(Snapshot(float(number), tuple(known), ()), earlier=Earlier({"sweep": tuple(BOWL)}))
        found[one.id] = OptunaSearch().ask(one, look, found)
        known[number] = ended(one, found[one.id], 1.0)
    assert [dict(point)["x"] for point in found.values()] == [0.5, 0.0, 1.0]


def test_what_earlier_trials_came_to_counts_for_nothing_beside_the_sweeps_own() -> None:
    """The earlier task was easier, and another place was good: with values of both in one list, it would look there."""
    spec = SearchSpec(sampler="tpe", seed=3, space=(Dimension(name="x", domain=NumberRange(low=-10, high=10)),))
    easier = [earlier((x + 8) ** 2 / 1e6, x=float(x)) for x in range(-10, 11)]
    points = [float(dict(point)["x"]) for point in asked(spec, easier, 40)]
    assert min(abs(x) for x in points) < 0.5
    assert statistics.fmean(abs(x) < 4 for x in points[20:]) > 0.5


def test_only_the_worse_half_tells_tpe_where_it_need_not_look_and_never_much_of_it() -> None:
    lessons = [Lesson((("x", float(n)),), (float(n),)) for n in range(100)]
    best = best_first(reversed(lessons), (Direction.MINIMIZE,))
    assert best == lessons
    assert best_first(lessons, (Direction.MAXIMIZE,)) == lessons[::-1]
    assert list(poor_of(TPE, best)) == lessons[-MOST_POOR:]
    assert list(poor_of(TPE, best[:12])) == lessons[6:12]
    assert list(poor_of(TPE, best[:6])) == lessons[5:6]
    assert list(poor_of(SearchSpec(sampler="GPSampler", space=(X,)), best)) == []


def test_the_best_of_several_objectives_are_those_that_no_other_beats_and_that_keep_the_constraints() -> None:
    def of(number: int, values: tuple[float, float], broken: float = 0.0) -> Lesson:
        return Lesson((("x", float(number)),), values, (broken,))

    front, beaten, breaks = of(0, (1.0, 4.0)), of(1, (2.0, 3.0)), of(2, (0.0, 9.0), 2.0)
    less, best = of(3, (0.0, 9.0), 1.0), of(4, (1.5, 5.0))
    failed = Lesson((("x", 5.0),))
    found = best_first([breaks, less, beaten, failed, front, best], (Direction.MINIMIZE, Direction.MAXIMIZE))
    assert found == [front, best, beaten, less, breaks]


def test_a_choice_keeps_the_kind_of_its_options() -> None:
    flag = Dimension(name="flag", domain=Options(options=(True, False, 1)))
    assert taught(SearchSpec(sampler="tpe", space=(flag,)), earlier(flag=True)) == ([{"flag": True}], {})
    assert taught(SearchSpec(sampler="tpe", space=(flag,)), earlier(flag=1.0)) == ([{"flag": 1}], {})


def test_while_it_is_still_being_read_trials_wait() -> None:
    one = searched(0, TPE)
    pending = replace(Snapshot(0.0, (one,), ()), earlier=Earlier(pending=True))
    with pytest.raises(SearchPending, match="what earlier sweeps showed is still being read"):
        OptunaSearch().ask(one, pending, {})


def test_the_process_of_a_cluster_finds_the_same_points_also_once_it_was_started_again() -> None:
    spec, process = SearchSpec(sampler="tpe", seed=1, space=(X,)), Here()
    found, known = dict[TrialId, Point](), [searched(number, spec) for number in range(4)]
    with opened(process) as searches:
        for number, one in enumerate(known):
            look = replace(Snapshot(float(number), tuple(known), ()), earlier=Earlier({"sweep": tuple(BOWL)}))
            found[one.id] = answer(searches, one, look, found)
            known[number] = ended(one, found[one.id], float(dict(found[one.id])["x"]) ** 2)
        assert list(found.values()) == asked(spec, BOWL, 4)
        process.end()
        again = answer(searches, searched(4, spec), look, found)
    assert all(len(message["before"]) == len(BOWL) for message in process.asked if "begin" in message)
    assert abs(float(dict(again)["x"])) < 5
