"""What faults do to simulated sweeps, small enough to work out by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from controllers.core.actions import Migrate, Resize
from controllers.core.model import NodeName, Phase, TrialId
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.faults import (
    Crowding,
    NodeLoss,
    ResizeDelay,
    RestoreFault,
    StartFailure,
    TrialCrash,
    WorldFault,
)
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.trial_run import TrialRun
from controllers.worlds.simulated.world import SimulatedWorld
from tests.controllers.worlds.simulated.workloads import scenario, trial

A = TrialId("a")
N1, N2 = NodeName("n1"), NodeName("n2")


def world_with(*faults: WorldFault, of: Scenario | None = None) -> SimulatedWorld:
    return SimulatedWorld(
        of or scenario([trial("a", checkpoint_every_s=20)], [1.0, 1.0], pinned={"a": "n1"}), faults=faults
    )


def ended(world: SimulatedWorld) -> TrialRun:
    world.advance(1000.0)
    return world.runs[0]


def place_of(world: SimulatedWorld) -> tuple[Phase, Sequence[NodeName]]:
    seen = world.trial(A)
    assert seen is not None
    return seen.phase, seen.nodes


def test_attempts_of_a_lost_node_seem_to_run_until_the_loss_is_known() -> None:
    world = world_with(NodeLoss(N1, at=50.0, known_after_s=40.0, back_after_s=300.0))
    world.advance(89.0)
    assert place_of(world) == (Phase.RUNNING, (N1,))
    assert world.runs[0].work == 50.0
    world.advance(91.0)
    assert place_of(world) == (Phase.RUNNING, (N2,))
    # 50 made and 40 of it saved, 40 lost until it was known, 60 left.
    assert ended(world).ended_at == pytest.approx(90 + 60)


def test_a_lost_node_takes_no_trial_until_it_is_back() -> None:
    alone = scenario([trial("a", checkpoint_every_s=20)])
    world = world_with(NodeLoss(N1, at=50.0, known_after_s=0.0, back_after_s=30.0), of=alone)
    world.advance(79.0)
    assert place_of(world) == (Phase.PENDING, ())
    assert ended(world).ended_at == pytest.approx(80 + 60)


def test_a_node_that_is_back_before_its_loss_was_known_has_lost_its_attempts() -> None:
    world = world_with(NodeLoss(N1, at=50.0, known_after_s=40.0, back_after_s=10.0))
    run = ended(world)
    assert run.ended_at == pytest.approx(60 + 60)
    assert run.attempt == 2


def test_a_trial_that_was_sent_to_a_lost_node_goes_elsewhere() -> None:
    costs = Costs(leave_s=1.0, next_attempt_s=5.0)
    slow = scenario([trial("a")], [1.0, 1.0], costs, {"a": "n1"})
    world = world_with(NodeLoss(N2, at=52.0, known_after_s=1.0, back_after_s=300.0), of=slow)
    world.advance(50.0)
    assert world.apply(Migrate(A, (N2,))).done
    run = ended(world)
    assert (run.node, run.attempt, run.moves, run.failures) == (N1, 2, 0, 0)
    assert run.ended_at == pytest.approx(50 + 6 + 50)


def test_a_mover_that_fails_as_it_starts_uses_up_a_retry_and_keeps_what_it_saved() -> None:
    costs = Costs(leave_s=1.0, start_s=2.0, retry_s=10.0)
    slow = scenario([trial("a")], [1.0, 1.0], costs, {"a": "n1"})
    world = world_with(StartFailure(A, attempt=2), of=slow)
    world.advance(52.0)
    world.apply(Migrate(A, (N2,)))
    run = ended(world)
    assert (run.attempt, run.failures) == (3, 1)
    assert run.ended_at == pytest.approx(52 + 1 + 2 + 10 + 2 + 50)


def test_a_trial_without_retries_left_fails_for_good() -> None:
    tired = scenario([trial("a", retries=1)])
    run = ended(world_with(TrialCrash(A, at=10.0), TrialCrash(A, at=20.0), of=tired))
    assert (run.succeeded, run.ended_at, run.failures) == (False, 20.0, 1)


def test_a_broken_checkpoint_is_passed_over_for_the_one_before() -> None:
    crash, broken = TrialCrash(A, at=50.0), RestoreFault(A, attempt=2, seconds=0.0, broken=True)
    assert ended(world_with(crash)).ended_at == pytest.approx(50 + 60)
    assert ended(world_with(crash, broken)).ended_at == pytest.approx(50 + 80)


def test_a_slow_restore_takes_longer() -> None:
    slow = RestoreFault(A, attempt=2, seconds=7.0, broken=False)
    assert ended(world_with(TrialCrash(A, at=50.0), slow)).ended_at == pytest.approx(50 + 7 + 60)


def test_a_mover_that_finds_its_node_crowded_goes_elsewhere() -> None:
    costs = Costs(next_attempt_s=5.0)
    slow = scenario([trial("a")], [1.0, 1.0], costs, {"a": "n1"})
    world = world_with(Crowding(N2, at=52.0, seconds=100.0, cpu=4.0), of=slow)
    world.advance(50.0)
    world.apply(Migrate(A, (N2,)))
    world.advance(54.0)
    crowded = world.node(N2)
    assert crowded is not None
    assert crowded.cpu == 0.0
    assert ended(world).node == N1


def test_a_late_resize_takes_hold_late() -> None:
    world = world_with(ResizeDelay(at=0.0, seconds=30.0, delay_s=15.0))
    world.advance(10.0)
    world.apply(Resize(A, 0.5))
    world.advance(24.0)
    assert world.runs[0].cpu == 1.0
    world.advance(25.0)
    assert world.runs[0].cpu == 0.5


def test_a_share_grows_into_room_that_is_being_given_up_as_soon_as_it_is() -> None:
    two = scenario([trial("a", cpu=0.5), trial("b", cpu=0.5)], [1.0], Costs(resize_s=10.0))
    world = SimulatedWorld(two, faults=(ResizeDelay(at=0.0, seconds=0.0, delay_s=20.0),))
    world.advance(0.0)
    assert world.apply(Resize(A, 0.2)).done  # late: takes hold at 30
    world.advance(1.0)
    assert world.apply(Resize(TrialId("b"), 0.8)).done
    for now, shares in ((29.0, [0.5, 0.5]), (30.0, [0.2, 0.8])):
        world.advance(now)
        assert [run.cpu for run in world.runs] == shares


def test_a_share_does_not_grow_into_room_that_is_promised_to_another() -> None:
    three = scenario([trial("a", cpu=0.5), trial("b", cpu=0.25), trial("c", cpu=0.25)], [1.0], Costs(resize_s=10.0))
    world = SimulatedWorld(three)
    world.advance(1.0)
    assert world.apply(Resize(A, 0.3)).done
    assert world.apply(Resize(TrialId("b"), 0.45)).done
    refused = world.apply(Resize(TrialId("c"), 0.45))
    assert (refused.done, refused.detail) == (False, "0.45 cores do not fit on n1")


def test_who_waits_to_grow_does_so_when_the_other_has_ended() -> None:
    two = scenario([trial("a", 10, cpu=0.5), trial("b", cpu=0.5)], [1.0])
    world = SimulatedWorld(two, faults=(ResizeDelay(at=0.0, seconds=0.0, delay_s=99.0),))
    world.advance(0.0)
    assert world.apply(Resize(A, 0.2)).done
    world.advance(1.0)
    assert world.apply(Resize(TrialId("b"), 0.8)).done
    world.advance(19.0)
    assert world.runs[1].cpu == 0.5
    world.advance(20.0)
    assert (world.runs[0].ended_at, world.runs[1].cpu) == (20.0, 0.8)


def test_an_impossible_fault_is_named_with_its_value() -> None:
    with pytest.raises(WorkloadError, match="NodeLoss: known_after_s must be finite and at least 0, not -1"):
        replace(NodeLoss(N1, 0.0, 0.0, 0.0), known_after_s=-1)
