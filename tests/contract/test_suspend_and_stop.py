"""What every world promises of trials that are suspended or stopped. One suite; each world passes it."""

import pytest

from controllers.core.actions import Migrate, Place, Resize, Stop, Suspend
from controllers.core.model import Phase
from controllers.core.ports import OutcomeKind
from tests.contract.bench import Behaviour, Bench

LONG = Behaviour(steps=400)
WIDE = Behaviour(steps=400, cpu="300m")


def suspended(bench: Bench, name: str) -> None:
    """Suspend a running trial, and wait until it is."""
    bench.take_on(Suspend(bench.trial(name).id))
    assert bench.phase(name) is Phase.SUSPENDING
    bench.until(lambda: bench.phase(name) is Phase.SUSPENDED)


def test_a_suspended_trial_holds_nothing_and_waits_until_it_is_given_a_place(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=120), b=WIDE)
    bench.until_running("a")
    bench.until_running("b")
    suspended(bench, "a")
    trial = bench.trial("a")
    assert (trial.nodes, trial.gated, trial.waits, trial.suspensions, trial.moves) == ((), True, True, 1, 0)
    made = bench.steps("a")
    for _ in range(20):
        bench.drive()
    assert bench.phase("a") is Phase.SUSPENDED
    assert bench.steps("a") == made
    target = bench.nodes[1] if bench.trial("b").node == bench.nodes[0] else bench.nodes[0]
    bench.place("a", target)
    bench.until_running("a")
    assert (bench.trial("a").node, bench.trial("a").attempt, bench.trial("a").gated) == (target, 2, False)
    bench.until(lambda: bench.ended("a"))
    assert bench.trial("a").phase is Phase.SUCCEEDED
    assert bench.steps("a") == list(range(120))
    (result,) = (one for one in bench.world.results({}) if one.id.endswith("a"))
    assert (result.suspensions, result.moves, result.attempts, result.stopped) == (1, 0, 2, "")


def test_its_node_has_room_for_another_while_a_trial_is_suspended(bench: Bench) -> None:
    bench.submit(a=WIDE, b=WIDE, c=WIDE)
    bench.until_running("a")
    bench.until_running("b")
    assert bench.phase("c") is Phase.PENDING
    suspended(bench, "a")
    bench.until_running("c")
    assert bench.world.apply(Place(bench.trial("a").id, (bench.nodes[0],))).kind is OutcomeKind.REFUSED


def test_a_trial_may_be_suspended_again_and_goes_on_where_the_default_scheduler_wants_it(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=150))
    for time in (1, 2):
        bench.until_running("a")
        suspended(bench, "a")
        assert bench.trial("a").suspensions == time
        bench.place("a")
    bench.until(lambda: bench.ended("a"))
    assert bench.steps("a") == list(range(150))


def test_a_suspended_trial_is_still_there_for_a_new_controller(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=120), b=Behaviour(steps=120))
    for name in "ab":
        bench.until_running(name)
    for name in "ab":
        suspended(bench, name)
    bench.restart_controller()
    bench.until(lambda: all(bench.phase(name) is Phase.SUSPENDED for name in "ab"))
    for name in "ab":
        assert bench.trial(name).suspensions == 1
        bench.place(name)
    bench.until(lambda: bench.ended("a", "b"))
    assert [bench.steps(name) for name in "ab"] == [list(range(120))] * 2


def test_a_trial_that_is_deaf_is_suspended_all_the_same(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=300, deaf=True))
    bench.until_running("a")
    suspended(bench, "a")
    bench.place("a")
    bench.until(lambda: bench.ended("a"))
    assert bench.trial("a").phase is Phase.SUCCEEDED


def test_a_running_trial_that_is_stopped_ends_early_and_well(bench: Bench) -> None:
    bench.submit(a=LONG)
    bench.until_running("a")
    bench.take_on(Stop(bench.trial("a").id, "enough"))
    assert bench.phase("a") is Phase.STOPPING
    bench.until(lambda: bench.ended("a") and bench.world.finished)
    assert (bench.phase("a"), bench.world.failed) == (Phase.STOPPED, False)
    assert 0 < len(bench.steps("a")) < 400
    (result,) = bench.world.results({})
    assert (result.succeeded, result.stopped) == (True, "enough")


def test_a_suspended_trial_and_one_that_never_started_can_be_stopped(bench: Bench) -> None:
    bench.submit(gated=True, a=LONG, b=LONG)
    bench.until_gated("a", "b")
    bench.place("a")
    bench.until_running("a")
    suspended(bench, "a")
    made = len(bench.steps("a"))
    bench.take_on(Stop(bench.trial("a").id, "enough"))
    bench.take_on(Stop(bench.trial("b").id, "enough"))
    bench.until(lambda: bench.ended("a", "b") and bench.world.finished)
    assert {bench.phase(name) for name in "ab"} == {Phase.STOPPED}
    assert (len(bench.steps("a")), bench.steps("b")) == (made, [])
    assert not bench.world.failed


@pytest.mark.parametrize("kind", ["suspend", "stop"])
def test_a_trial_that_was_told_to_leave_is_busy(bench: Bench, kind: str) -> None:
    bench.submit(a=Behaviour(steps=2000, deaf=True))
    bench.until_running("a")
    trial, target = bench.trial("a").id, bench.other_node("a")
    bench.take_on(Suspend(trial) if kind == "suspend" else Stop(trial, "enough"))
    for action in (Resize(trial, 0.2), Migrate(trial, (target,)), Suspend(trial), Stop(trial, "enough")):
        assert bench.world.apply(action).kind is OutcomeKind.BUSY
    bench.until(lambda: bench.phase("a") is (Phase.SUSPENDED if kind == "suspend" else Phase.STOPPED))


def test_a_trial_that_waits_for_room_is_not_suspended_and_once_stopped_ends_without_any_room(bench: Bench) -> None:
    full = Behaviour(steps=2000, cpu="300m")
    bench.submit(a=full, b=full, c=WIDE)
    bench.until_running("a")
    bench.until_running("b")
    bench.until(lambda: bench.phase("c") is Phase.PENDING)
    trial = bench.trial("c").id
    assert bench.world.apply(Suspend(trial)).kind is OutcomeKind.REFUSED
    bench.take_on(Stop(trial, "enough"))
    bench.until(lambda: bench.phase("c") is Phase.STOPPED)
    assert bench.steps("c") == []
    assert {bench.phase(name) for name in "ab"} == {Phase.RUNNING}  # so nobody has made room
    for name in "ab":
        bench.take_on(Stop(bench.trial(name).id, "enough"))
    bench.until(lambda: bench.ended("a", "b") and bench.world.finished)
    assert not bench.world.failed
    (result,) = (one for one in bench.world.results({}) if one.id.endswith("c"))
    assert (result.succeeded, result.stopped) == (True, "enough")
