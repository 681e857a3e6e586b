"""What holds in every simulated sweep, looked at after each event."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controllers.core.actions import ACTION_KINDS, Action, Migrate, Resize
from controllers.core.model import NodeName, Phase, Trial
from controllers.worlds.simulated.scenario import Costs
from controllers.worlds.simulated.world import SimulatedWorld
from tests.controllers.worlds.simulated.workloads import mixed
from tests.property_examples import examples

SLACK = 1e-6
CHEAP = Costs(
    start_s=1.0, start_cpu_s=2.0, leave_s=1.0, next_attempt_s=2.0, restore_s=1.0, retry_s=3.0, resize_s=0.5, grace_s=9.0
)


def some_action(world: SimulatedWorld, chance: random.Random, running: Sequence[Trial]) -> Action | None:
    """Return an action that may or may not be possible."""
    if not running:
        return None
    trial = chance.choice(running)
    node = NodeName(chance.choice([node.name for node in world.nodes()]))
    actions: list[Action] = [Resize(trial.id, chance.choice([0.1, 0.5, 1.0, 2.0])), Migrate(trial.id, (node,))]
    return chance.choice(actions)


def check(world: SimulatedWorld) -> None:
    """Look at capacity, use, and that no trial is in two places."""
    for node in world.nodes():
        here = [trial for trial in world.trials() if node.name in trial.nodes]
        assert sum(trial.cpu for trial in here) <= node.cpu + SLACK
        assert node.cpu_used <= node.cpu + SLACK
    for trial in world.trials():
        assert len(trial.nodes) <= 1
        assert (trial.moving_to is not None) == (trial.phase is Phase.MOVING)


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10_000), st.booleans())
def test_actions_and_failures_at_any_time_lose_no_trial_and_overfill_no_node(seed: int, deaf: bool) -> None:  # noqa: FBT001 - drawn
    chance = random.Random(seed)  # noqa: S311 - makes workloads
    sweep = mixed(12, [1.0, 1.5, 2.0], seed, CHEAP, checkpoint_every_s=20.0, deaf=deaf, retries=3)
    world = SimulatedWorld(sweep)
    while not world.finished:
        world.advance(min(world.next_at, world.now + chance.uniform(0.1, 20.0)))
        running = [trial for trial in world.trials() if trial.phase is Phase.RUNNING]
        action = some_action(world, chance, running)
        if action is not None:
            world.apply(action)
        if running and chance.random() < 0.02:
            world.fail(chance.choice(running).id)
        check(world)
    assert {trial.phase for trial in world.trials()} <= {Phase.SUCCEEDED, Phase.FAILED}
    for run in world.runs:
        assert run.attempt - 1 - run.failures >= run.moves
        if run.succeeded:
            assert run.work == pytest.approx(run.spec.work_s)


@settings(max_examples=examples(15))
@given(st.integers(0, 10_000))
def test_a_sweep_that_nobody_touches_does_exactly_its_work(seed: int) -> None:
    world = SimulatedWorld(mixed(10, [1.0, 2.0], seed, Costs.free()))
    while not world.finished:
        world.advance(world.next_at)
    for run in world.runs:
        # Two cores are full speed, so a lone second takes two core seconds, however they were shared out.
        assert run.cpu_seconds == pytest.approx(2 * run.spec.work_s)
        assert run.attempt == 1


def test_the_simulated_world_does_every_kind_of_action() -> None:
    assert SimulatedWorld.can == set(ACTION_KINDS)
