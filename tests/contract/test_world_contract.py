"""What every world promises the engine. One suite; each world passes it."""

from itertools import combinations

from controllers.core.model import Migrate, Phase, Resize, TrialId
from tests.contract.bench import Behaviour, Bench

LONG = Behaviour(steps=400)


def test_a_submitted_trial_runs_on_a_node_and_succeeds(bench: Bench) -> None:
    bench.submit(a=Behaviour())
    bench.until_running("a")
    assert bench.trial("a").node in bench.nodes
    bench.until(lambda: bench.ended("a"))
    assert bench.trial("a").phase is Phase.SUCCEEDED
    assert bench.steps("a") == list(range(25))


def test_two_trials_spread_over_two_empty_nodes(bench: Bench) -> None:
    bench.submit(a=LONG, b=LONG)
    bench.until_running("b")
    assert bench.trial("a").node != bench.trial("b").node


def test_a_resize_shows_when_it_has_taken_effect_and_is_undone_by_nothing(bench: Bench) -> None:
    bench.submit(a=LONG)
    bench.until_running("a")
    assert bench.world.apply(Resize(bench.trial("a").id, 0.25)).done
    bench.until(lambda: bench.trial("a").cpu == 0.25)
    bench.until_running("a")
    assert (bench.trial("a").cpu, bench.trial("a").base_cpu) == (0.25, 0.1)


def test_a_resize_beyond_the_node_is_refused_with_the_amount(bench: Bench) -> None:
    bench.submit(a=LONG)
    bench.until_running("a")
    outcome = bench.world.apply(Resize(bench.trial("a").id, 0.5))
    assert not outcome.done
    assert "0.5" in outcome.detail
    assert bench.trial("a").cpu == 0.1


def test_a_share_grows_at_once_into_room_that_a_neighbour_was_just_told_to_give_up(bench: Bench) -> None:
    names = ("a", "b", "c")
    bench.submit(**dict.fromkeys(names, Behaviour(steps=400, cpu="150m")))
    for name in names:
        bench.until_running(name)
    nodes = {name: bench.trial(name).node for name in names}
    smaller, larger = next(pair for pair in combinations(names, 2) if nodes[pair[0]] == nodes[pair[1]])
    assert bench.world.apply(Resize(bench.trial(smaller).id, 0.05)).done
    assert bench.world.apply(Resize(bench.trial(larger).id, 0.3)).done
    bench.until(lambda: (bench.trial(smaller).cpu, bench.trial(larger).cpu) == (0.05, 0.3))


def test_a_move_ends_on_the_other_node_with_no_step_missing_or_doubled(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=120))
    bench.until_running("a")
    target = bench.other_node("a")
    assert bench.world.apply(Migrate(bench.trial("a").id, target)).done
    assert (bench.trial("a").phase, bench.trial("a").moving_to) == (Phase.MOVING, target)
    bench.until(lambda: bench.trial("a").steady)
    moved = bench.trial("a")
    assert (moved.node, moved.attempt, moved.moves) == (target, 2, 1)
    bench.until(lambda: bench.ended("a"))
    assert bench.trial("a").phase is Phase.SUCCEEDED
    assert bench.steps("a") == list(range(120))
    assert [node for _, node in bench.attempts("a")][1] == target


def test_a_trial_that_is_moving_takes_no_other_action(bench: Bench) -> None:
    bench.submit(a=LONG)
    bench.until_running("a")
    trial = bench.trial("a").id
    bench.world.apply(Migrate(trial, bench.other_node("a")))
    assert not bench.world.apply(Resize(trial, 0.2)).done
    assert not bench.world.apply(Migrate(trial, bench.other_node("a"))).done


def test_a_move_to_a_full_node_is_refused_and_the_trial_goes_on(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=400, cpu="300m"), b=Behaviour(steps=400, cpu="300m"))
    bench.until_running("b")
    assert not bench.world.apply(Migrate(bench.trial("a").id, bench.other_node("a"))).done
    assert bench.trial("a").steady


def test_an_action_on_a_trial_that_is_over_or_unknown_is_refused(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=2))
    bench.until(lambda: bench.ended("a"))
    assert not bench.world.apply(Resize(bench.trial("a").id, 0.2)).done
    assert not bench.world.apply(Resize(TrialId("nobody"), 0.2)).done


def test_a_trial_that_ignores_the_request_is_ended_after_its_grace_and_moves_all_the_same(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=2000, deaf=True))
    bench.until_running("a")
    target = bench.other_node("a")
    assert bench.world.apply(Migrate(bench.trial("a").id, target)).done
    bench.until(lambda: bench.trial("a").steady)
    assert (bench.trial("a").node, bench.trial("a").attempt) == (target, 2)


def test_a_failing_trial_is_retried_within_its_budget(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=3, failures=2, retries=2), b=Behaviour(steps=3, failures=9, retries=2))
    bench.until(lambda: bench.ended("a", "b"))
    assert (bench.trial("a").phase, bench.trial("a").attempt) == (Phase.SUCCEEDED, 3)
    assert (bench.trial("b").phase, bench.trial("b").attempt) == (Phase.FAILED, 3)


def test_a_killed_attempt_is_followed_by_another_that_goes_on(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=60))
    bench.until_running("a")
    bench.kill_attempt("a")
    bench.until(lambda: bench.ended("a"))
    assert (bench.trial("a").phase, bench.trial("a").attempt) == (Phase.SUCCEEDED, 2)
    assert bench.steps("a") == list(range(60))


def test_a_trial_that_fits_nowhere_yet_waits_and_runs_when_there_is_room(bench: Bench) -> None:
    wide = Behaviour(steps=15, cpu="300m")
    bench.submit(a=wide, b=wide, c=wide)
    bench.until_running("b")
    assert bench.trial("c").phase is Phase.PENDING
    bench.until(lambda: bench.ended("a", "b", "c"))
    assert bench.trial("c").phase is Phase.SUCCEEDED


def test_a_controller_killed_in_mid_sweep_loses_nothing_and_runs_nothing_twice(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=80), b=Behaviour(steps=3), c=Behaviour(steps=80))
    bench.until(lambda: bench.ended("b"))
    bench.until_running("c")
    bench.world.apply(Migrate(bench.trial("a").id, bench.other_node("a")))
    bench.restart_controller()
    bench.until(lambda: bench.ended("a", "b", "c"))
    assert {bench.trial(name).phase for name in "abc"} == {Phase.SUCCEEDED}
    assert bench.steps("a") == list(range(80))
    assert bench.steps("c") == list(range(80))
    assert len(bench.attempts("b")) == 1
