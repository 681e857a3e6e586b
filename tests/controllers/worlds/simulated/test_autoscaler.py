"""Nodes that come because pods wait for them, and go because nothing is there."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from controllers.core.actions import Place
from controllers.core.model import NodeKind, NodeName, Phase, TrialId
from controllers.core.ports import DONE
from controllers.worlds.simulated.errors import WorkloadError
from controllers.worlds.simulated.faults import BootFault, WorldFault
from controllers.worlds.simulated.scaling import AutoscalerTiming
from controllers.worlds.simulated.scenario import Costs, Scenario
from controllers.worlds.simulated.workload import NodeGroup, NodeSpec, TrialSpec, Workload
from controllers.worlds.simulated.world import SimulatedWorld
from tests.controllers.worlds.simulated.workloads import nodes, trial


def group(name: str = "big", cpu: float = 2.0, *, most: int = 5, least: int = 0, boots_s: float = 100.0) -> NodeGroup:
    return NodeGroup(NodeSpec(NodeName(name), cpu, price=3.6), most, least, boots_s)


def world(
    trials: Sequence[TrialSpec],
    *groups: NodeGroup,
    fixed: Sequence[float] = (),
    gated: bool = False,
    faults: Sequence[WorldFault] = (),
    scaling: AutoscalerTiming | None = None,
) -> SimulatedWorld:
    workload = Workload(tuple(trials), nodes(*fixed), groups=groups, scaling=scaling or AutoscalerTiming())
    return SimulatedWorld(Scenario(workload, Costs.free()), gated=gated, faults=faults)


def ended(sim: SimulatedWorld) -> dict[str, float]:
    """Run to the end; return when each trial ended."""
    while not sim.finished:
        assert sim.next_at < math.inf
        sim.advance(sim.next_at)
    return {result.id: result.completed_s for result in sim.results({})}


def names(sim: SimulatedWorld) -> list[str]:
    return [node.name for node in sim.nodes()]


def test_pods_that_fit_nowhere_bring_as_many_nodes_as_they_need_after_a_scan_and_a_boot() -> None:
    sim = world([trial(f"t{number}") for number in range(5)], group())
    sim.advance(9.9)
    assert sim.kinds()[0].coming == 0
    sim.advance(10.0)
    assert (sim.kinds()[0].coming, sim.kinds()[0].more) == (3, 2)
    sim.advance(109.9)
    assert names(sim) == []
    assert set(ended(sim).values()) == {210.0}
    assert names(sim) == ["big-1", "big-2", "big-3"]


def test_a_gated_trial_asks_for_no_node_until_it_is_let_go_without_a_name() -> None:
    sim = world([trial("a")], group(), gated=True)
    sim.advance(1000.0)
    assert sim.kinds() == (NodeKind("big", 2.0, boots_s=100.0, more=5, price=3.6),)
    assert sim.apply(Place(TrialId("a"))) == DONE
    shown = sim.trial(TrialId("a"))
    assert shown is not None
    assert (shown.phase, shown.gated, shown.nodes) == (Phase.PENDING, False, ())
    sim.advance(1010.0)
    assert sim.kinds()[0].coming == 1
    assert ended(sim) == {"a": 1210.0}


def test_pods_that_fit_on_a_node_which_is_coming_ask_for_no_other() -> None:
    sim = world([trial("a"), trial("b", at=50.0), trial("c", at=60.0)], group())
    sim.advance(55.0)
    assert sim.kinds()[0].coming == 1
    sim.advance(70.0)
    assert sim.kinds()[0].coming == 2


def test_a_pod_that_fits_on_a_node_that_is_there_asks_for_none() -> None:
    sim = world([trial("a")], group(), fixed=(1.0,))
    assert ended(sim) == {"a": 100.0}
    assert names(sim) == ["n1"]


def test_there_are_never_more_nodes_than_most() -> None:
    sim = world([trial(f"t{number}") for number in range(6)], group(most=2))
    ends = sorted(ended(sim).values())
    assert ends == [210.0] * 4 + [310.0] * 2
    assert names(sim) == ["big-1", "big-2"]


def test_a_node_goes_once_it_has_been_empty_for_a_while_and_comes_again_under_another_name() -> None:
    sim = world([trial("a", 50.0), trial("b", 50.0, at=500.0)], group(), scaling=AutoscalerTiming(idle_s=60.0))
    sim.advance(219.9)
    assert names(sim) == ["big-1"]
    sim.advance(220.0)
    assert names(sim) == []
    assert sim.kinds()[0].more == 5
    ended(sim)
    assert names(sim) == ["big-2"]


def test_a_node_that_gets_a_trial_again_in_time_stays() -> None:
    sim = world([trial("a", 50.0), trial("b", 50.0, at=190.0)], group())
    assert ended(sim) == {"a": 160.0, "b": 240.0}
    assert names(sim) == ["big-1"]


def test_a_node_that_has_come_is_kept_a_moment_for_pods_that_are_not_there_yet() -> None:
    # What it was asked for ended meanwhile, elsewhere: nothing waits as it comes, at 110 s.
    trials = [trial("a", 50.0), trial("b", 50.0)]
    sim = world(trials, group(), fixed=[1.0], scaling=AutoscalerTiming(idle_s=0.0))
    sim.advance(110.0)
    assert (sim.finished, names(sim)) == (True, ["n1", "big-1"])
    sim.advance(129.9)
    assert names(sim) == ["n1", "big-1"]
    sim.advance(130.0)
    assert names(sim) == ["n1"]


def test_a_node_that_was_used_goes_as_soon_as_it_may() -> None:
    sim = world([trial("a", 50.0)], group(), scaling=AutoscalerTiming(idle_s=0.0))
    ended(sim)
    sim.advance(160.0)
    assert names(sim) == []


def test_a_gang_that_gave_up_before_a_node_came_finds_that_node() -> None:
    # Two of its workers wait for the other two until 3 s. The node comes at 5 s, before the gang tries again at 7 s.
    gang = trial("g", 10.0, min_workers=1, max_workers=4)
    costs = replace(Costs.free(), start_s=1.0, meet_within_s=2.0, next_attempt_s=4.0)
    scaling = AutoscalerTiming(scan_s=1.0, idle_s=0.0)
    workload = Workload((gang,), nodes(2.0), groups=(group(boots_s=4.0),), scaling=scaling)
    sim = SimulatedWorld(Scenario(workload, costs), gated=False)
    sim.advance(8.0)
    [seen] = sim.trials()
    assert (sim.cluster.runs[seen.id].unmet, len(seen.nodes)) == (1, 4)


def test_the_least_nodes_are_there_at_once_and_stay() -> None:
    sim = world([trial(f"t{number}") for number in range(4)], group(least=1))
    assert names(sim) == ["big-1"]
    assert sorted(ended(sim).values()) == [100.0, 100.0, 200.0, 200.0]  # A node came too late for the others.
    while sim.shrinks:
        sim.advance(sim.next_at)
    assert len(names(sim)) == 1


def test_a_node_that_never_comes_is_given_up_and_asked_for_again() -> None:
    sim = world([trial("a")], group(), faults=[BootFault("big", 1, 0.0, never=True)])
    sim.advance(909.0)
    assert sim.kinds()[0].coming == 1
    assert ended(sim) == {"a": 920.0 + 100.0 + 100.0}


def test_a_boot_that_takes_longer_is_waited_for() -> None:
    sim = world([trial("a")], group(), faults=[BootFault("big", 1, 300.0, never=False)])
    assert ended(sim) == {"a": 510.0}


def test_the_cheapest_group_that_holds_all_pods_is_asked_for() -> None:
    dear = NodeGroup(NodeSpec(NodeName("dear"), 4.0, price=9.0), 5)
    cheap = NodeGroup(NodeSpec(NodeName("cheap"), 2.0, price=1.0), 5)
    sim = world([trial("a"), trial("b")], dear, cheap)
    sim.advance(10.0)
    assert {kind.name: kind.coming for kind in sim.kinds()} == {"dear": 0, "cheap": 1}


def test_nodes_tell_their_group_and_price() -> None:
    sim = world([trial("a")], group(least=1))
    assert (sim.nodes()[0].kind, sim.nodes()[0].price) == ("big", 3.6)


def test_a_trial_that_no_node_of_any_group_holds_is_refused() -> None:
    with pytest.raises(WorkloadError, match="no node has as much"):
        world([trial("a", cpu=3.0)], group())


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: group(least=6), "least and most must be from 0 and 1, not 6 and 5"),
        (lambda: group(boots_s=math.inf), "boots_s must be finite and at least 0, not inf"),
        (lambda: world([trial("a")], group("n"), group("n")), "node n is there more than once"),
        (lambda: world([trial("a")]), "at least one node"),
        (lambda: AutoscalerTiming(scan_s=0.0), "scan_s must be finite and at least 0.001 s, not 0.0"),
    ],
)
def test_what_makes_no_sense_is_refused(make: object, told: str) -> None:
    assert callable(make)
    with pytest.raises(WorkloadError, match=told):
        make()


def test_a_node_that_is_named_as_one_of_a_group_is_refused() -> None:
    fixed = (NodeSpec(NodeName("big-1"), 1.0),)
    with pytest.raises(WorkloadError, match="node big-1 is named as one of the group big"):
        Workload((trial("a"),), fixed, groups=(group(),))
