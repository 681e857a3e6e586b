"""Searches in a process of their own: the same points however late, and nobody waits for somebody else's search."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from controllers.core.errors import SearchError, SearchPending
from controllers.core.model import Point, Snapshot, Trial, TrialId
from controllers.search import Dimension, NumberRange, OptunaSearch, SearchesElsewhere, SearchQueue, SearchSpec
from controllers.search.cost import Bound
from controllers.search.process import SearchProcess, SearchTooSlowError
from controllers.search.worker import Studies
from tests.controllers.search.test_optuna_search import KIND, ONLY_A, X, ended, searched

SPEC: Final = SearchSpec(sampler="tpe", seed=3, settings={"n_startup_trials": 4}, space=(X, KIND, ONLY_A))
WIDE: Final = tuple(Dimension(name=f"x{number}", domain=NumberRange(low=0, high=1)) for number in range(32))
DEAR: Final = SearchSpec(sampler="tpe", settings={"n_ei_candidates": 10_000}, space=WIDE)
ANY: Final = Bound(2**60, "nobody")
WITHIN_S: Final = 60.0


class Here:
    """Answers right here, once ``gate`` lets it; studies whose name is in ``slow`` never answer."""

    def __init__(self, most_values: int = 10**9) -> None:
        self.started = 0
        self.gate = threading.Event()
        self.gate.set()
        self.slow: set[str] = set()
        self.asked: list[dict[str, Any]] = []
        self._most_values = most_values
        self.end()

    def end(self) -> None:
        self.started += 1
        self.studies = Studies(self._most_values)

    def ready(self) -> None:
        pass

    def close(self) -> None:
        pass

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.gate.wait(WITHIN_S)
        self.asked.append(question)
        if question["study"] in self.slow:
            self.end()
            message = "the search found nothing within 10 s"
            raise SearchTooSlowError(message)
        return self.studies.answer(question)


@contextmanager
def opened(process: Here, now: Callable[[], float] = time.monotonic) -> Iterator[SearchesElsewhere]:
    with SearchQueue(process=process, now=now) as queue, queue.searches("team") as searches:
        yield searches


def answer(search: SearchesElsewhere, trial: Trial, snapshot: Snapshot, points: dict[TrialId, Point]) -> Point:
    """Ask until there is an answer, as ticks do."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        try:
            return search.ask(trial, snapshot, points)
        except SearchPending:
            time.sleep(0.001)
    raise AssertionError


def waves(ask: Callable[[Trial, Snapshot, dict[TrialId, Point]], Point], spec: SearchSpec = SPEC) -> list[Point]:
    """Start trials three at a time; each wave ends before the next begins."""
    found = dict[TrialId, Point]()
    known = [searched(number, spec) for number in range(12)]
    for first in range(0, 12, 3):
        seen = Snapshot(float(first), tuple(known), ())
        for number in range(first, first + 3):
            found[known[number].id] = ask(known[number], seen, found)
        for number in range(first, first + 3):
            one = known[number]
            known[number] = ended(one, found[one.id], float(dict(found[one.id])["x"]) ** 2)
    return list(found.values())


@pytest.mark.parametrize("sampler", ["tpe", "random", "cmaes", "QMCSampler"])
def test_a_search_elsewhere_finds_what_it_finds_right_here(sampler: str) -> None:
    settings: dict[str, Any] = {"n_startup_trials": 4} if sampler in {"tpe", "cmaes"} else {}
    spec = SearchSpec(sampler=sampler, seed=3, settings=settings, space=(X, KIND, ONLY_A))
    with opened(Here()) as searches:
        assert waves(lambda *asked: answer(searches, *asked), spec) == waves(OptunaSearch().ask, spec)


def test_however_late_it_answers_it_goes_by_what_was_known_when_it_was_asked() -> None:
    process, known = Here(), [searched(number, SPEC) for number in range(7)]
    found = {known[n].id: SPEC.drawn(lambda one: 0.5 if one.name != "kind" else "a") for n in range(5)}
    early = Snapshot(1.0, tuple(known), ())
    late = Snapshot(2.0, (*(ended(one, found[one.id], 1.0) for one in known[:5]), *known[5:]), ())
    here = OptunaSearch()
    expected = [here.ask(known[5], early, found)]
    expected.append(here.ask(known[6], late, {**found, known[5].id: expected[0]}))
    with opened(process) as searches:
        process.gate.clear()
        for trial, snapshot in ((known[5], early), (known[5], late), (known[6], late)):
            with pytest.raises(SearchPending):
                searches.ask(trial, snapshot, found)
        process.gate.set()
        assert [answer(searches, trial, late, found) for trial in known[5:]] == expected


def test_a_process_that_was_lost_costs_no_point_and_repeats_none() -> None:
    process = Here()

    def ask(trial: Trial, snapshot: Snapshot, points: dict[TrialId, Point]) -> Point:
        process.end()
        return answer(searches, trial, snapshot, points)

    with opened(process) as searches:
        points = waves(ask)
    assert len({dict(point)["x"] for point in points}) == 12


def test_two_searches_that_have_no_room_beside_each_other_both_find_points() -> None:
    process, known = Here(most_values=100), [searched(number, SPEC) for number in range(301)]
    other = [replace(one, id=TrialId(f"other.{one.id}"), sweep="other") for one in known]
    snapshot = Snapshot(0.0, (*known, *other), ())
    found = {one.id: SPEC.drawn(lambda of: 0.5 if of.name != "kind" else "a") for one in (*known[:300], *other[:300])}
    with SearchQueue(process=process) as queue, queue.searches("a") as first, queue.searches("b") as second:
        for searches, last in ((first, known[300]), (second, other[300])) * 2:
            with pytest.raises(SearchPending):
                searches.ask(last, snapshot, found)
        assert answer(first, known[300], snapshot, found)
        assert answer(second, other[300], snapshot, found)


def test_a_search_that_takes_too_long_rests_with_all_its_trials_and_holds_up_nobody() -> None:
    process, clock = Here(), [0.0]
    slow, fine = [searched(number, SPEC) for number in range(5)], replace(searched(9, SPEC), sweep="fine")
    snapshot = Snapshot(0.0, (*slow, fine), ())
    with (
        SearchQueue(process=process, now=lambda: clock[0]) as queue,
        queue.searches("attacker") as attacker,
        queue.searches("victim") as victim,
    ):
        process.slow.add("1/0")
        process.gate.clear()
        for one in slow:
            with pytest.raises(SearchPending):
                attacker.ask(one, snapshot, {})
        with pytest.raises(SearchPending):
            victim.ask(fine, snapshot, {})
        process.gate.set()
        assert answer(victim, fine, snapshot, {})
        assert sum(asked["study"] == "1/0" for asked in process.asked) == 1
        for one in slow:
            with pytest.raises(SearchError, match=r"nothing within 10 s; it is asked again after 10 s"):
                attacker.ask(one, snapshot, {})
        process.slow.clear()
        clock[0] = 11.0
        assert answer(attacker, slow[0], snapshot, {})


def test_an_answer_is_announced_so_that_no_trial_waits_for_the_next_heartbeat() -> None:
    one = searched(0, SPEC)
    with opened(Here()) as searches:
        answer(searches, one, Snapshot(0.0, (one,), ()), {})
        assert searches.answered


def test_a_sampler_that_does_not_exist_is_an_error_of_its_own_search() -> None:
    one = searched(0, SearchSpec(sampler="bayes", space=(X,)))
    with opened(Here()) as searches, pytest.raises(SearchError, match="no search 'bayes'"):
        answer(searches, one, Snapshot(0.0, (one,), ()), {})


def known_trials(spec: SearchSpec, number: int) -> list[Trial]:
    points: list[Point] = [tuple((one.name, (n % 97) / 100) for one in spec.space) for n in range(number)]
    return [ended(searched(n, spec), point, n % 13) for n, point in enumerate(points)]


def test_a_search_that_computes_too_much_is_refused_before_it_is_asked() -> None:
    trials = [*known_trials(DEAR, 400), searched(400, DEAR)]
    process = Here()
    told = r"n_ei_candidates=10000 over 32 hyperparameters and 400 trials .* 2937 MiB; the controller of a cluster"
    with opened(process) as searches, pytest.raises(SearchError, match=told):
        answer(searches, trials[-1], Snapshot(0.0, tuple(trials), ()), {})
    assert not process.asked


@pytest.mark.slow
@pytest.mark.parametrize(("answer_s", "told"), [(30.0, "MemoryError"), (0.05, "nothing within")])
def test_a_process_bounds_what_the_estimate_missed_and_goes_on_with_others(answer_s: float, told: str) -> None:
    trials = [*known_trials(DEAR, 60), searched(60, DEAR)]
    fine = replace(searched(0, SPEC), id=TrialId("uid.fine.t000"), sweep="fine")
    snapshot = Snapshot(0.0, (*trials, fine), ())
    with SearchQueue(ANY, SearchProcess(answer_s)) as queue, queue.searches("a") as dear, queue.searches("b") as other:
        # Loading the library is not counted.
        assert answer(other, fine, snapshot, {})
        with pytest.raises(SearchError, match=told):
            answer(dear, trials[-1], snapshot, {})
        again = replace(fine, id=TrialId("uid.fine.t001"))
        assert answer(other, again, Snapshot(1.0, (*trials, fine, again), ()), {})
