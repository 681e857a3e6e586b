"""Sweeps on a cluster that has no node until somebody asks for one, under every policy that holds trials back."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from controllers.core.actions import Assessment, Place
from controllers.core.engine import Engine
from controllers.core.model import NodeKind, Snapshot, Trial, TrialId
from controllers.core.node_kinds import PATIENCE_S
from controllers.driving.assembly import guard_policy
from controllers.policies.registry import POLICIES, parse_policy
from tests.controllers.policies.autoscaled_world import BIG, UNKNOWN, AutoscaledWorld, gated

PLACING = sorted(name for name, policy in POLICIES.items() if Place in policy.needs)


@dataclass
class Told:
    """Keeps what an observer is told of kinds."""

    kinds: tuple[NodeKind, ...] = ()

    def observe(
        self, snapshot: Snapshot, assessments: Mapping[TrialId, Assessment], reasons: Mapping[TrialId, str]
    ) -> None:
        del assessments, reasons
        self.kinds = snapshot.kinds


def sweep(trials: int) -> list[Trial]:
    return [gated(f"t{number:02}", submitted_at=float(number)) for number in range(trials)]


@pytest.mark.parametrize("spec", [*PLACING, "edf+flowcon"])
def test_a_sweep_begins_without_any_node_and_comes_to_its_end(spec: str) -> None:
    world = AutoscaledWorld(sweep(20))
    world.steer(guard_policy(parse_policy(spec)), 900.0)
    assert world.phases() == {"succeeded": 20}
    assert world.most_nodes == BIG.more


@pytest.mark.parametrize("spec", [*PLACING, "edf+flowcon"])
def test_where_nothing_is_known_of_nodes_one_trial_tries_and_the_others_follow(spec: str) -> None:
    world = AutoscaledWorld(sweep(20), told=UNKNOWN)
    policy = guard_policy(parse_policy(spec))
    world.steer(policy, 40.0)
    assert len(world.asking()) == 1
    world.steer(policy, 1500.0)
    assert world.phases() == {"succeeded": 20}


def test_only_as_many_trials_are_let_go_as_the_nodes_to_come_can_hold() -> None:
    world = AutoscaledWorld(sweep(40))
    world.steer(guard_policy(parse_policy("edf")), 60.0)
    assert len(world.asking()) == 12, "three nodes of four cores"


def test_one_node_is_asked_for_where_one_is_enough() -> None:
    world = AutoscaledWorld(sweep(3))
    world.steer(guard_policy(parse_policy("edf")), 300.0)
    assert (world.phases(), world.most_nodes) == ({"succeeded": 3}, 1)


def test_where_no_node_comes_trials_stay_in_line_and_few_ask_again_after_ever_longer_pauses() -> None:
    world = AutoscaledWorld(sweep(40), boots=False, every_s=30.0)
    policy = guard_policy(parse_policy("edf"))
    world.steer(policy, PATIENCE_S)
    assert len(world.asking()) == 12
    world.steer(policy, 12 * 3600.0)
    assert 12 < len(world.asking()) <= 36
    world.boots = True
    world.steer(policy, 8 * 3600.0)
    assert world.phases() == {"succeeded": 40}


def test_a_probe_that_nothing_comes_of_is_one_trial_and_is_tried_again_later() -> None:
    world = AutoscaledWorld(sweep(10), told=UNKNOWN, boots=False, every_s=30.0)
    policy = guard_policy(parse_policy("edf"))
    world.steer(policy, PATIENCE_S)
    assert len(world.asking()) == 1
    world.steer(policy, 12 * 3600.0)
    assert 1 < len(world.asking()) <= 7


def test_a_controller_that_starts_again_knows_how_long_nodes_took_and_who_asks_already() -> None:
    world = AutoscaledWorld(sweep(20))
    policy = guard_policy(parse_policy("edf"))
    world.steer(policy, 20.0)
    asking = world.asking()
    world.steer(policy, 20.0)
    assert world.asking() == asking
    world.steer(policy, 300.0)
    told = Told()
    Engine(policy, world, world, world, observers=[told]).tick(world.now)
    (kind,) = told.kinds
    assert kind.boots_s != BIG.boots_s
    assert kind.boots_s == pytest.approx(BIG.boots_s, abs=10)
