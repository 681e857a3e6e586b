"""What every world promises of trials that go on from another's checkpoint. One suite; each world passes it."""

from typing import Final

import pytest

from controllers.core.actions import Action, Clone, Place, Resize, Suspend
from controllers.core.model import Phase, Point
from controllers.core.ports import OutcomeKind
from controllers.search import Dimension, NumberRange, SearchSpec
from tests.contract.bench import Behaviour, Bench

SPACE: Final = (Dimension(name="width", domain=NumberRange(low=8, high=64, whole=True)),)
SEARCHED: Final = Behaviour(steps=200, search=SearchSpec(sampler="tpe", space=SPACE).written())
POINT: Final[Point] = (("width", 32),)


def begin(bench: Bench, **behaviours: Behaviour) -> None:
    """Start trials ``a`` and ``b``, and suspend both; what else there is waits."""
    bench.submit(gated=True, **{"a": SEARCHED, "b": SEARCHED, **behaviours})
    for name, width in (("a", 24), ("b", 16)):
        start_and_suspend(bench, name, width)


def start_and_suspend(bench: Bench, name: str, width: int) -> None:
    bench.until_gated(name)
    bench.until(lambda: bench.world.apply(Place(bench.trial(name).id, (), (("width", width),))).done)
    bench.until_running(name)
    bench.take_on(Suspend(bench.trial(name).id))
    bench.until(lambda: bench.phase(name) is Phase.SUSPENDED)


def clone(bench: Bench, name: str, parent: str) -> Clone:
    return Clone(bench.trial(name).id, bench.trial(parent).id, point=POINT)


def test_a_suspended_trial_becomes_a_clone_waits_on_and_trains_with_what_it_was_given(bench: Bench) -> None:
    begin(bench)
    bench.take_on(clone(bench, "a", "b"))
    bench.until(lambda: bench.trial("a").lineage == (bench.trial("b").id,))
    trial = bench.trial("a")
    assert (trial.phase, trial.waits, trial.nodes, trial.parameters) == (Phase.SUSPENDED, True, (), (("width", 32.0),))
    assert bench.trial("b").lineage == ()
    for name in "ab":
        bench.place(name)
    bench.until(lambda: bench.ended("a", "b"))
    assert {bench.phase(name) for name in "ab"} == {Phase.SUCCEEDED}
    assert [bench.steps(name) for name in "ab"] == [list(range(200))] * 2
    given = [line.split()[0] for line in bench.given("a")]
    assert given in ([], ["--width=24", "--width=32"])
    assert bench.lineages("a") in ([], ["", '["b"]'])
    assert bench.lineages("b") in ([], ["", ""])
    (result,) = (one for one in bench.world.results({}) if one.id.endswith("a"))
    assert (result.params, result.suspensions, result.attempts) == ({"width": 32}, 1, 2)


@pytest.mark.parametrize("then", ["failure", "controller"])
def test_every_further_attempt_and_controller_knows_of_the_clone(bench: Bench, then: str) -> None:
    begin(bench)
    bench.take_on(clone(bench, "a", "b"))
    bench.until(lambda: len(bench.trial("a").lineage) == 1)
    if then == "controller":
        bench.restart_controller()
        bench.until(lambda: bench.phase("a") is Phase.SUSPENDED and len(bench.trial("a").lineage) == 1)
    bench.place("a")
    bench.until_running("a")
    if then == "failure":
        bench.kill_attempt("a")
        bench.until(lambda: bench.trial("a").attempt == 3 and bench.trial("a").steady)
    assert (bench.trial("a").lineage, bench.trial("a").parameters) == ((bench.trial("b").id,), (("width", 32.0),))
    bench.until(lambda: bench.ended("a"))
    assert bench.phase("a") is Phase.SUCCEEDED
    assert bench.lineages("a")[1:] in ([], ['["b"]'], ['["b"]'] * 2)


def test_a_trial_may_become_a_clone_again(bench: Bench) -> None:
    begin(bench)
    bench.take_on(clone(bench, "a", "b"))
    bench.until(lambda: len(bench.trial("a").lineage) == 1)
    bench.take_on(clone(bench, "a", "b"))
    bench.until(lambda: len(bench.trial("a").lineage) == 2)
    assert set(bench.trial("a").lineage) == {bench.trial("b").id}


def test_only_a_suspended_trial_of_a_search_becomes_a_clone_of_another(bench: Bench) -> None:
    begin(bench, c=Behaviour(steps=400))
    refused: list[Action] = [clone(bench, "a", "a"), clone(bench, "c", "b"), Resize(bench.trial("a").id, 0.2)]
    assert [bench.world.apply(action).kind for action in refused] == [OutcomeKind.REFUSED] * 3
    bench.place("c")
    bench.until_running("c")
    bench.place("a")
    bench.until_running("a")
    assert bench.world.apply(clone(bench, "a", "b")).kind is OutcomeKind.REFUSED
    bench.take_on(Suspend(bench.trial("c").id))
    bench.until(lambda: bench.phase("c") is Phase.SUSPENDED)
    assert bench.world.apply(clone(bench, "c", "b")).kind is OutcomeKind.REFUSED
    assert {bench.trial(name).lineage for name in "abc"} == {()}
