"""Gangs in virtual time: how fast they train, what starts and ends together, and what holds room for nothing."""

from typing import Any

import pytest

from controllers.core.actions import Action, Migrate, Place, Resize
from controllers.core.model import NodeName, Phase, TrialId
from controllers.core.ports import Outcome
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.faults import NodeLoss, TrialCrash, WorkerMissing, WorldFault
from controllers.worlds.simulated.gangs import gang_speed
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.trial_run import Stage, TrialRun
from controllers.worlds.simulated.workload import (
    MIB,
    Network,
    NodeSpec,
    TrialSpec,
    WorkerExchange,
    Workload,
)
from controllers.worlds.simulated.world import SimulatedWorld
from tests.controllers.worlds.simulated.workloads import trial

A, B, G, H = NodeName("a"), NodeName("b"), TrialId("g"), TrialId("h")
SLOW = Network(node=100 * MIB, zone=10 * MIB, across=1 * MIB, call_s=0.0)
COSTS = Costs(next_attempt_s=1.0, retry_s=1.0, meet_within_s=20.0)


def gang(name: str = "g", most: int = 4, least: int = 1, exchanged: float = 0.0, **fields: Any) -> TrialSpec:  # noqa: ANN401 - any field
    exchange = WorkerExchange(1.0, exchanged)
    return trial(name, min_workers=least, max_workers=most, exchange=exchange, **fields)


def world(
    *trials: TrialSpec, cores: tuple[float, float] = (4.0, 4.0), gated: bool = True, faults: tuple[WorldFault, ...] = ()
) -> SimulatedWorld:
    nodes = tuple(NodeSpec(name, cpu, zone=str(name)) for name, cpu in zip((A, B), cores, strict=True))
    made = SimulatedWorld(Scenario(Workload(trials, nodes, network=SLOW), COSTS), gated=gated, faults=faults)
    made.advance(0.0)
    return made


def place(made: SimulatedWorld, *nodes: NodeName, name: TrialId = G) -> Outcome:
    return made.apply(Place(name, nodes))


def run_of(made: SimulatedWorld, name: TrialId = G) -> TrialRun:
    return made.cluster.runs[name]


def ended_at(made: SimulatedWorld, name: TrialId = G) -> float:
    while not made.finished and made.now < 10_000:
        made.advance(made.next_at)
    at = run_of(made, name).ended_at
    assert at is not None
    return at


@pytest.mark.parametrize(
    ("nodes", "seconds"), [((A,), 100.0), ((A, A), 60.0), ((A, A, A, A), 40.0), ((A, A, B, B), 100 * (0.25 + 15.0))]
)
def test_speed_follows_from_the_number_of_workers_and_how_near_they_are(
    nodes: tuple[NodeName, ...], seconds: float
) -> None:
    made = world(gang(exchanged=10 * MIB))
    assert place(made, *nodes).done
    assert ended_at(made) == pytest.approx(seconds)


def test_the_slowest_worker_sets_the_pace_and_the_others_use_no_cpu_meanwhile() -> None:
    made = gang_speed(WorkerExchange(1.0), [1.0, 0.5], bandwidth=1.0, call_s=0.0)
    assert (made.rate, made.busy) == (1.0, (0.5, 1.0))


def test_what_was_measured_of_the_network_is_what_the_formula_gives() -> None:
    network = Network()
    alone, exchange = 10.0, WorkerExchange(10.0, MIB)
    took = [exchange.step_s / gang_speed(exchange, [1.0, 1.0], link, 0.0).rate for link in (network.node, network.zone)]
    assert [one - alone / 2 for one in took] == pytest.approx([0.0022, 0.0137])


def test_a_place_for_more_workers_than_fit_places_none() -> None:
    made = world(gang(cpu=2.0))
    assert "do not fit" in place(made, A, A, A).detail
    assert made.cluster.nodes[A].cpu_requested == 0.0
    assert run_of(made).nodes == ()


@pytest.mark.parametrize("workers", [1, 5])
def test_a_gang_gets_no_fewer_and_no_more_workers_than_its_author_allows(workers: int) -> None:
    assert "it has from 2 to 4" in place(world(gang(least=2, cpu=0.1)), *(A,) * workers).detail


def test_a_gang_grows_and_shrinks_in_one_operation_without_losing_work() -> None:
    made = world(gang())
    place(made, A)
    made.advance(10.0)
    assert made.apply(Migrate(G, (A, A, A))).done
    shown = made.trial(G)
    assert shown is not None
    assert (shown.phase, shown.destination) == (Phase.MOVING, (A, A, A))
    made.advance(11.0)
    made.advance(21.0)
    assert made.apply(Migrate(G, (B, B))).done
    assert ended_at(made) == pytest.approx(10 + 1 + 10 + 1 + (100 - 10 - 30) / 2)
    assert (run_of(made).moves, run_of(made).failures) == (2, 0)


def test_a_gang_that_moves_takes_over_its_own_room() -> None:
    made = world(gang(cpu=1.0, most=4))
    place(made, A, A, A)
    made.advance(5.0)
    assert made.apply(Migrate(G, (A, A, A, A))).done
    assert made.cluster.nodes[A].cpu_requested == 4.0


def test_a_resize_is_of_every_worker() -> None:
    made = world(gang(most=2))
    place(made, A, B)
    made.advance(1.0)
    assert made.apply(Resize(G, 2.0)).done
    assert [made.cluster.nodes[name].cpu_taken for name in (A, B)] == [2.0, 2.0]
    assert not made.apply(Resize(G, 4.5)).done


def test_the_default_scheduler_places_pods_one_by_one_and_half_a_gang_computes_nothing() -> None:
    made = world(gang("g", least=4), gang("h", least=4), cores=(3.0, 3.0), gated=False)
    made.advance(10.0)
    half = run_of(made, H)
    assert (half.stage, len(half.nodes), half.cores, half.work) == (Stage.GATHERING, 2, 0.0, 0.0)
    assert sum(node.cpu_requested for node in made.cluster.nodes.values()) == 6.0
    assert run_of(made, G).cores == pytest.approx(4.0)


def test_half_a_gang_leaves_after_a_while_and_tries_again() -> None:
    made = world(gang("g", least=4), gang("h", least=4), cores=(3.0, 3.0), gated=False)
    assert ended_at(made, H) > ended_at(made, G)
    assert run_of(made, H).unmet >= 1
    assert run_of(made, H).failures == 0


@pytest.mark.parametrize(
    ("fault", "failures", "unmet"),
    [
        (NodeLoss(B, 10.0, 5.0, 40.0), 1, 0),
        (TrialCrash(G, 10.0), 1, 0),
        (WorkerMissing(G, 1), 0, 1),
    ],
)
def test_who_loses_a_worker_ends_whole_and_waits_for_a_place_together(
    fault: WorldFault, failures: int, unmet: int
) -> None:
    made = world(gang(), faults=(fault,))
    place(made, A, A, B)
    made.advance(30.0)
    found = run_of(made)
    assert (found.stage, found.nodes, found.failures, found.unmet) == (Stage.GATED, (), failures, unmet)
    assert made.cluster.nodes[A].cpu_requested == 0.0
    waiting = made.trial(G)
    assert waiting is not None
    assert waiting.waits
    assert place(made, A, A).done
    assert ended_at(made) > 30.0


def test_no_part_of_a_gang_computes_on_after_a_node_was_lost() -> None:
    made = world(gang(), faults=(NodeLoss(B, 10.0, 50.0, 90.0),))
    place(made, A, A, B)
    made.advance(40.0)
    assert run_of(made).cores == 0.0
    assert run_of(made).work == pytest.approx(30.0)


def test_a_gang_that_all_nodes_together_cannot_hold_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"needs 4 workers of 2 cores.*all nodes together hold 2"):
        world(gang(least=4, cpu=2.0), cores=(2.0, 2.0))


def test_actions_on_a_gang_that_starts_are_refused() -> None:
    made = world(gang())
    place(made, A, B)
    actions: list[Action] = [Place(G, (A,)), Migrate(G, (B, B))]
    made.cluster.runs[G].enter(Stage.STARTING)
    assert not any(made.apply(action).done for action in actions)
