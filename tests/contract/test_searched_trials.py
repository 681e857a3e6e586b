"""What every world promises of trials that a search gives their hyperparameters. One suite; each world passes it."""

from typing import Final

import pytest

from controllers.core.actions import Migrate, Place, Suspend
from controllers.core.model import Phase, Point
from controllers.search import Dimension, NumberRange, SearchSpec
from tests.contract.bench import Behaviour, Bench

SPACE: Final = (Dimension(name="width", domain=NumberRange(low=8, high=64, whole=True)),)
SEARCH: Final = SearchSpec(sampler="tpe", space=SPACE).written()
POINT: Final[Point] = (("width", 24),)
SEARCHED: Final = Behaviour(steps=120, search=SEARCH)
FOUND: Final = '--width=24 {"width": 24}'


def place(bench: Bench, name: str) -> None:
    """Give a trial that waits its first place, with hyperparameters."""
    bench.until_gated(name)
    bench.until(lambda: bench.world.apply(Place(bench.trial(name).id, (), POINT)).done)


def test_a_trial_waits_for_its_hyperparameters_and_starts_with_them(bench: Bench) -> None:
    bench.submit(a=SEARCHED)
    bench.until_gated("a")
    assert (bench.trial("a").search, bench.trial("a").parameters, bench.trial("a").waits) == (SEARCH, (), True)
    place(bench, "a")
    bench.until_running("a")
    assert bench.trial("a").parameters == (("width", 24.0),)
    bench.until(lambda: bench.ended("a"))
    assert bench.phase("a") is Phase.SUCCEEDED
    assert bench.steps("a") == list(range(120))
    (result,) = bench.world.results({})
    assert result.params == {"width": 24}


@pytest.mark.parametrize("kind", ["move", "failure", "suspension"])
def test_each_further_attempt_gets_the_same_hyperparameters(bench: Bench, kind: str) -> None:
    bench.submit(a=SEARCHED)
    place(bench, "a")
    bench.until_running("a")
    trial = bench.trial("a").id
    if kind == "move":
        bench.take_on(Migrate(trial, (bench.other_node("a"),)))
    elif kind == "failure":
        bench.kill_attempt("a")
    else:
        bench.take_on(Suspend(trial))
        bench.until(lambda: bench.phase("a") is Phase.SUSPENDED)
        bench.place("a")
    bench.until(lambda: bench.trial("a").attempt == 2 and bench.trial("a").steady)
    bench.until(lambda: bench.ended("a"))
    assert bench.phase("a") is Phase.SUCCEEDED
    assert bench.trial("a").parameters == (("width", 24.0),)
    assert bench.given("a") in ([], [FOUND, FOUND])


def test_a_new_controller_knows_which_hyperparameters_were_found(bench: Bench) -> None:
    bench.submit(a=SEARCHED, b=SEARCHED)
    place(bench, "a")
    bench.until_running("a")
    bench.restart_controller()
    bench.until(lambda: bench.phase("a") is Phase.RUNNING and bench.phase("b") is Phase.PENDING)
    assert bench.trial("a").parameters == (("width", 24.0),)
    assert (bench.trial("b").parameters, bench.trial("b").waits) == ((), True)
    place(bench, "b")
    bench.until(lambda: bench.ended("a", "b"))
    assert {bench.phase(name) for name in "ab"} == {Phase.SUCCEEDED}
