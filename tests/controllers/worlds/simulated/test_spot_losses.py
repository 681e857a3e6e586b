"""Spot nodes that their provider takes, with and without notice, and what that costs the trials there."""

import math
from collections.abc import Callable, Sequence

import pytest

from controllers.core.actions import Migrate
from controllers.core.model import NodeName, Phase, TrialId
from controllers.core.ports import DONE
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.faults import SpotLoss
from controllers.worlds.simulated.scaling import SpotMarket
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec, TrialSpec, Workload
from controllers.worlds.simulated.world import SimulatedWorld
from tests.controllers.worlds.simulated.workloads import trial

COSTS = Costs(leave_s=2.0, next_attempt_s=5.0, retry_s=7.0)
A = TrialId("a")


def world(
    market: SpotMarket,
    losses: Sequence[SpotLoss] = (),
    *,
    least: int = 1,
    most: int = 1,
    trials: Sequence[TrialSpec] = (),
    seed: int = 0,
) -> SimulatedWorld:
    spot = NodeGroup(NodeSpec(NodeName("spot"), 1.0), most, least, boots_s=20.0, spot=market)
    made = tuple(trials) or (trial("a", 100.0, checkpoint_every_s=30.0),)
    return SimulatedWorld(Scenario(Workload(made, (), groups=(spot,)), COSTS, seed), faults=losses)


def completion(sim: SimulatedWorld) -> float:
    while not sim.finished:
        assert sim.next_at < math.inf
        sim.advance(sim.next_at)
    return max(result.completed_s for result in sim.results({}))


def test_a_node_with_notice_takes_no_trial_and_says_by_when_they_must_have_left() -> None:
    sim = world(SpotMarket(120.0, drains=False), [SpotLoss("spot", 50.0, 120.0)], trials=[trial("a", 300.0)])
    sim.advance(50.0)
    (node,) = sim.nodes()
    assert (node.ready, node.leaves_at) == (False, 170.0)
    sim.advance(169.0)
    assert [trial.phase for trial in sim.trials()] == [Phase.RUNNING]
    sim.advance(170.0)
    assert sim.nodes() == []


def test_a_drained_trial_saves_and_goes_on_wherever_it_finds_room_and_nobody_counts_a_failure() -> None:
    sim = world(SpotMarket(15.0), [SpotLoss("spot", 50.0, 15.0)])
    sim.advance(51.0)
    shown = sim.trial(A)
    assert shown is not None
    assert (shown.phase, shown.destination) == (Phase.MOVING, ())
    sim.advance(52.0)
    assert sim.nodes() == []  # It went once it was empty, and not at its deadline.
    # At 57 the next attempt waits, the scan at 60 asks for a node, which comes at 80; 50 s of work are left.
    assert completion(sim) == pytest.approx(130.0)
    (run,) = sim.runs
    assert (run.failures, run.evictions, run.lost_work) == (0, 1, 0.0)


def test_where_nobody_drains_the_node_what_is_on_it_at_the_end_is_lost_since_its_last_checkpoint() -> None:
    sim = world(SpotMarket(15.0, drains=False), [SpotLoss("spot", 50.0, 15.0)])
    # Lost at 65 s with 60 s saved; at 72 the next attempt waits, a node comes at 90 s.
    sim.advance(66.0)
    (run,) = sim.runs
    assert (run.failures, run.lost_work, run.saved) == (1, 5.0, 60.0)
    assert completion(sim) == pytest.approx(90.0 + 40.0)


def test_a_node_that_goes_without_notice_is_missed_only_later() -> None:
    sim = world(SpotMarket(0.0, known_after_s=40.0), [SpotLoss("spot", 50.0, 0.0)])
    sim.advance(89.0)
    assert [(node.ready, node.leaves_at) for node in sim.nodes()] == [(True, None)]
    sim.advance(90.0)
    assert sim.nodes() == []
    (run,) = sim.runs
    assert (run.failures, run.lost_work) == (1, 20.0)


def test_a_trial_that_has_moved_in_time_loses_nothing() -> None:
    sim = world(SpotMarket(120.0, drains=False), [SpotLoss("spot", 50.0, 120.0)], least=2, most=2)
    sim.advance(50.0)
    (leaving,) = [node.name for node in sim.nodes() if not node.ready]
    (staying,) = [node.name for node in sim.nodes() if node.ready]
    shown = sim.trial(A)
    assert shown is not None
    if shown.node == leaving:
        assert sim.apply(Migrate.to(staying, shown)) == DONE
    completion(sim)
    (run,) = sim.runs
    assert (run.failures, run.lost_work) == (0, 0.0)


def test_what_was_on_its_way_to_a_node_that_is_gone_finds_room_elsewhere() -> None:
    market = SpotMarket(0.0, known_after_s=0.0)
    sim = world(market, least=2, most=2, trials=[trial("a", 100.0, checkpoint_every_s=30.0)])
    sim.advance(50.0)
    shown = sim.trial(A)
    assert shown is not None
    (other,) = [node.name for node in sim.nodes() if node.name != shown.node]
    assert sim.apply(Migrate.to(other, shown)) == DONE
    provider = sim.provider
    assert provider is not None
    nodes = provider.autoscaler.groups["spot"]
    nodes.present[other].runs.clear()
    provider.autoscaler.leave(nodes, nodes.present[other])
    assert completion(sim) == pytest.approx(107.0)


def test_a_market_with_too_few_nodes_takes_some_and_gives_none_until_it_has_more() -> None:
    market = SpotMarket(15.0, available=((40.0, 0), (400.0, 1)))
    sim = world(market, least=0, trials=[trial("a", 100.0)])
    sim.advance(40.0)  # It booted from 10 to 30 s.
    assert [node.leaves_at for node in sim.nodes()] == [55.0]
    # Refused at 50 s, and at the first scan 180 s later; 180 s after that there is one again.
    assert completion(sim) == pytest.approx(430.0 + 20.0 + 90.0)


def test_nodes_live_as_long_as_the_market_says_on_average_by_the_seed() -> None:
    def taken(seed: int) -> tuple[float, int]:
        sim = world(SpotMarket(15.0, mean_life_s=100.0), least=0, trials=[trial("a", 300.0)], seed=seed)
        ended = completion(sim)
        assert sim.provider is not None
        return ended, sim.provider.taken

    assert taken(1) == taken(1)
    assert len({taken(seed) for seed in range(5)}) == 5
    assert 5 <= sum(taken(seed)[1] for seed in range(5)) <= 30


def test_a_deaf_trial_is_lost_at_the_deadline_if_its_grace_is_longer() -> None:
    deaf = trial("a", 100.0, deaf=True, checkpoint_every_s=30.0)
    sim = world(SpotMarket(15.0), [SpotLoss("spot", 50.0, 15.0)], trials=[deaf])
    sim.advance(66.0)
    (run,) = sim.runs
    assert (run.failures, run.evictions, run.lost_work) == (0, 1, 5.0)


@pytest.mark.parametrize(
    ("market", "told"),
    [
        (lambda: SpotMarket(-1.0), "notice_s must be finite and at least 0 s, not -1.0"),
        (lambda: SpotMarket(mean_life_s=0.0), "mean_life_s must be finite and above 0, not 0.0"),
        (lambda: SpotMarket(available=((5.0, 1), (5.0, 2))), "available must rise in time"),
    ],
)
def test_a_market_that_makes_no_sense_is_refused(market: Callable[[], SpotMarket], told: str) -> None:
    with pytest.raises(WorkloadError, match=told):
        market()
