"""What every world promises the engine. One suite; each world passes it."""

from itertools import combinations

from controllers.core.actions import ACTION_KINDS, Action, Clone, Migrate, Place, Resize, Stop, Suspend
from controllers.core.devices import Devices
from controllers.core.model import NodeName, Phase, Sample, TrialId
from controllers.core.ports import OutcomeKind
from tests.contract.bench import DEVICE, Behaviour, Bench, DeviceBench

LONG = Behaviour(steps=400)
WIDE = Behaviour(steps=400, cpu="300m")


def of_every_kind(trial: TrialId, node: NodeName) -> list[Action]:
    examples: dict[type[Action], Action] = {
        Resize: Resize(trial, 0.2),
        Migrate: Migrate(trial, (node,)),
        Place: Place(trial, (node,)),
        Suspend: Suspend(trial),
        Stop: Stop(trial, "enough"),
        Clone: Clone(trial, TrialId("another")),
    }
    return [examples[kind] for kind in ACTION_KINDS]


def test_a_submitted_trial_runs_on_a_node_and_succeeds(bench: Bench) -> None:
    bench.submit(a=Behaviour())
    bench.until_running("a")
    assert bench.trial("a").node in bench.nodes
    bench.until(lambda: bench.ended("a"))
    assert bench.trial("a").phase is Phase.SUCCEEDED
    assert bench.steps("a") == list(range(25))


def test_a_trials_hyperparameters_are_seen_before_it_starts_and_after_it_has_ended(bench: Bench) -> None:
    bench.submit(gated=True, a=Behaviour(params='{"width": 64, "optimiser": "adam"}'), b=Behaviour(params="no JSON"))
    bench.until_gated("a", "b")
    assert bench.trial("a").parameters == (("optimiser", "adam"), ("width", 64.0))
    assert bench.trial("a").sweep == "sweep"
    bench.place("a")
    bench.until(lambda: bench.ended("a"))
    assert bench.trial("a").parameters == (("optimiser", "adam"), ("width", 64.0))
    assert bench.trial("b").parameters == ()


def test_two_trials_spread_over_two_empty_nodes(bench: Bench) -> None:
    bench.submit(a=LONG, b=LONG)
    bench.until_running("b")
    assert bench.trial("a").node != bench.trial("b").node


def test_a_resize_shows_when_it_has_taken_effect_and_is_undone_by_nothing(bench: Bench) -> None:
    bench.submit(a=LONG)
    bench.until_running("a")
    bench.take_on(Resize(bench.trial("a").id, 0.25))
    bench.until(lambda: bench.trial("a").cpu == 0.25)
    bench.until_running("a")
    assert (bench.trial("a").cpu, bench.trial("a").base_cpu) == (0.25, 0.1)


def test_a_resize_beyond_the_node_is_refused_with_the_amount(bench: Bench) -> None:
    bench.submit(a=LONG)
    bench.until_running("a")
    outcome = bench.world.apply(Resize(bench.trial("a").id, 0.5))
    assert outcome.kind is OutcomeKind.REFUSED
    assert "0.5" in outcome.detail
    assert bench.trial("a").cpu == 0.1


def test_a_share_grows_at_once_into_room_that_a_neighbour_was_just_told_to_give_up(bench: Bench) -> None:
    names, crowded = "abc", Behaviour(steps=400, cpu="150m")
    bench.submit(a=crowded, b=crowded, c=crowded)
    for name in names:
        bench.until_running(name)
    nodes = {name: bench.trial(name).node for name in names}
    smaller, larger = next(pair for pair in combinations(names, 2) if nodes[pair[0]] == nodes[pair[1]])
    bench.take_on(Resize(bench.trial(smaller).id, 0.05))
    bench.take_on(Resize(bench.trial(larger).id, 0.3))
    bench.until(lambda: (bench.trial(smaller).cpu, bench.trial(larger).cpu) == (0.05, 0.3))


def test_a_move_ends_on_the_other_node_with_no_step_missing_or_doubled(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=120))
    bench.until_running("a")
    target = bench.other_node("a")
    bench.take_on(Migrate(bench.trial("a").id, (target,)))
    assert (bench.trial("a").phase, bench.trial("a").moving_to) == (Phase.MOVING, target)
    bench.until(lambda: bench.trial("a").steady)
    moved = bench.trial("a")
    assert (moved.node, moved.attempt, moved.moves) == (target, 2, 1)
    bench.until(lambda: bench.ended("a"))
    assert bench.trial("a").phase is Phase.SUCCEEDED
    assert bench.steps("a") == list(range(120))
    assert [node for _, node in bench.attempts("a")][1] == target
    (result,) = bench.world.results({})
    assert (result.node, result.moves, result.attempts) == (target, 1, 2)


def test_a_trial_that_is_moving_is_busy_and_takes_no_other_action(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=2000, deaf=True))
    bench.until_running("a")
    trial, target = bench.trial("a").id, bench.other_node("a")
    bench.world.apply(Migrate(trial, (target,)))
    for _ in range(2):
        for action in (Resize(trial, 0.2), Migrate(trial, (target,))):
            outcome = bench.world.apply(action)
            assert outcome.kind is OutcomeKind.BUSY
            assert outcome.detail
        bench.drive()
    bench.until(lambda: bench.trial("a").steady)
    assert (bench.trial("a").node, bench.trial("a").cpu) == (target, 0.1)


def test_a_move_to_a_full_node_is_refused_and_the_trial_goes_on(bench: Bench) -> None:
    bench.submit(a=WIDE, b=WIDE)
    bench.until_running("a")
    bench.until_running("b")
    outcome = bench.world.apply(Migrate(bench.trial("a").id, (bench.other_node("a"),)))
    assert outcome.kind is OutcomeKind.REFUSED
    assert bench.trial("a").steady


def test_a_move_to_where_a_trial_is_or_to_no_node_is_refused(bench: Bench) -> None:
    bench.submit(a=LONG)
    bench.until_running("a")
    trial = bench.trial("a")
    assert trial.node is not None
    for node in (trial.node, NodeName("nowhere")):
        outcome = bench.world.apply(Migrate(trial.id, (node,)))
        assert outcome.kind is OutcomeKind.REFUSED
        assert node in outcome.detail
    assert bench.trial("a").steady


def test_an_action_on_a_trial_that_is_over_or_unknown_is_refused(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=2))
    bench.until(lambda: bench.ended("a"))
    for trial in (bench.trial("a").id, TrialId("nobody")):
        outcomes = [bench.world.apply(action) for action in of_every_kind(trial, bench.nodes[0])]
        assert {outcome.kind for outcome in outcomes} == {OutcomeKind.REFUSED}
        assert all(outcome.detail for outcome in outcomes)


def test_a_first_attempt_with_a_gate_waits_until_it_is_placed_and_then_runs_there(bench: Bench) -> None:
    bench.submit(gated=True, a=LONG, b=LONG)
    bench.until_gated("a", "b")
    for _ in range(5):
        bench.drive()
    assert [bench.trial(name).phase for name in "ab"] == [Phase.PENDING, Phase.PENDING]
    target = bench.nodes[1]
    bench.place("a", target)
    bench.until_running("a")
    assert (bench.trial("a").node, bench.trial("a").gated) == (target, False)
    assert bench.trial("b").gated


def test_a_place_without_a_node_leaves_the_choice_to_the_default_scheduler(bench: Bench) -> None:
    bench.submit(gated=True, a=WIDE, b=WIDE)
    bench.until_gated("a", "b")
    bench.place("a", bench.nodes[1])
    bench.until_running("a")
    bench.place("b")
    bench.until_running("b")
    assert bench.trial("b").node == bench.nodes[0]


def test_a_place_without_room_or_of_a_trial_that_does_not_wait_is_refused_and_changes_nothing(bench: Bench) -> None:
    bench.submit(gated=True, a=WIDE, b=WIDE)
    bench.until_gated("a", "b")
    first, second = (bench.trial(name).id for name in "ab")
    here, there = bench.nodes
    bench.place("a", here)
    bench.until_running("a")
    for action in (Place(second, (here,)), Place(second, (NodeName("nowhere"),)), Place(first, (there,))):
        outcome = bench.world.apply(action)
        assert outcome.kind is OutcomeKind.REFUSED
        assert outcome.detail
    bench.drive()
    assert (bench.trial("a").node, bench.trial("b").phase, bench.trial("b").gated) == (here, Phase.PENDING, True)
    bench.place("b", there)
    bench.until_running("b")
    assert bench.trial("b").node == there


def test_a_trial_with_a_device_is_placed_on_no_node_without_a_free_one_and_is_once_one_is_free(
    device_bench: DeviceBench,
) -> None:
    bench, one = device_bench, Devices.of({DEVICE: 1})
    bench.give_devices(1, 0)
    bench.submit(gated=True, a=Behaviour(steps=40, devices=1), b=Behaviour(steps=400, devices=1))
    bench.until_gated("a", "b")
    here, _ = bench.nodes
    bench.place("a", here)
    bench.until_running("a")
    place = bench.world.node(here)
    assert (bench.trial("a").devices, None if place is None else place.devices) == (one, one)
    for node in bench.nodes:
        outcome = bench.world.apply(Place(bench.trial("b").id, (node,)))
        assert outcome.kind is OutcomeKind.REFUSED
        assert DEVICE in outcome.detail
    assert not bench.ended("a")
    bench.place("b", here)
    assert bench.ended("a")
    bench.until_running("b")
    assert bench.trial("b").node == here


def test_trials_with_a_device_run_one_after_another_where_there_is_one(device_bench: DeviceBench) -> None:
    device_bench.give_devices(0, 1)
    some = Behaviour(steps=15, devices=1)
    device_bench.submit(a=some, b=some, c=some)

    def ended_one_by_one() -> bool:
        live = [trial for trial in device_bench.world.trials() if trial.live]
        assert len(live) <= 1
        assert {trial.node for trial in live} <= {device_bench.nodes[1]}
        return device_bench.ended("a", "b", "c")

    device_bench.until(ended_one_by_one)
    assert {device_bench.trial(name).phase for name in "abc"} == {Phase.SUCCEEDED}


def test_a_later_attempt_of_a_placed_trial_waits_for_nobody(bench: Bench) -> None:
    bench.submit(gated=True, a=LONG)
    bench.until_gated("a")
    bench.place("a")
    bench.until_running("a")
    bench.kill_attempt("a")
    bench.until(lambda: bench.trial("a").attempt == 2 and bench.trial("a").steady)


def test_gates_closed_and_opened_are_as_they_were_when_the_controller_dies(bench: Bench) -> None:
    bench.submit(gated=True, a=LONG, b=Behaviour())
    bench.until_gated("a", "b")
    bench.place("b", bench.nodes[0])
    bench.until(lambda: not bench.trial("b").gated)
    bench.drive()
    bench.restart_controller()
    bench.until(lambda: bench.ended("b"))
    assert bench.trial("a").gated
    bench.place("a", bench.nodes[1])
    bench.until_running("a")
    assert bench.trial("a").node == bench.nodes[1]


def test_a_trial_that_ignores_the_request_is_ended_after_its_grace_and_moves_all_the_same(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=2000, deaf=True))
    bench.until_running("a")
    target = bench.other_node("a")
    bench.take_on(Migrate(bench.trial("a").id, (target,)))
    bench.until(lambda: bench.trial("a").steady)
    assert (bench.trial("a").node, bench.trial("a").attempt) == (target, 2)


def test_a_trial_that_was_submitted_is_not_to_come_any_more(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=3), b=LONG)
    bench.until(lambda: bench.ended("a"))
    bench.until_running("b")
    assert list(bench.world.to_come()) == []


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
    bench.world.apply(Migrate(bench.trial("a").id, (bench.other_node("a"),)))
    bench.restart_controller()
    bench.until(lambda: bench.ended("a", "b", "c"))
    assert {bench.trial(name).phase for name in "abc"} == {Phase.SUCCEEDED}
    assert bench.steps("a") == list(range(80))
    assert bench.steps("c") == list(range(80))
    assert len(bench.attempts("b")) == 1


def test_the_world_tells_when_a_trial_has_changed_and_is_silent_between(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=60))
    bench.until_told("a", Phase.RUNNING)
    told = [bench.drive() for _ in range(10)]
    assert not all(told)
    bench.until_told("a", Phase.SUCCEEDED)


def test_results_tell_how_each_trial_went_by_ids_that_are_the_same_in_every_run(bench: Bench) -> None:
    bench.submit(a=Behaviour(steps=3, failures=1), b=Behaviour(steps=3, failures=9, retries=0))
    bench.until(lambda: bench.ended("a", "b") and bench.world.finished)
    a, b = sorted(bench.world.results({bench.trial("a").id: Sample(0.25, 3, 1.0)}), key=lambda result: result.id)
    assert [a.id, b.id] == [bench.world.short(bench.trial(name).id) for name in "ab"]
    assert (a.id.endswith("sweep.a"), b.id.endswith("sweep.b")) == (True, True)
    assert (a.succeeded, a.attempts, a.final_metric) == (True, 2, 0.25)
    assert (b.succeeded, b.attempts, b.final_metric) == (False, 1, None)
    assert {a.node, a.first_node} <= set(bench.nodes)
    assert a.completed_s > a.submitted_s
    assert set(bench.world.objectives()) == {bench.trial("a").id, bench.trial("b").id}
