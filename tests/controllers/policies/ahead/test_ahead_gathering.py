"""At a sweep's end, ``ahead`` empties nodes that can go, where nobody gets slower by that."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from controllers.core.actions import Decision
from controllers.core.model import Node, NodeKind, NodeName, Phase, Trial, TrialId
from controllers.policies.ahead.gathering import MOST_CONTENTION, gather_trials
from controllers.policies.ahead.planning import WORTH, Weights, WorkPlan
from controllers.policies.kit.lengths import EstimateSource
from controllers.policies.kit.work_left import Estimate
from tests.controllers.policies.policy_fakes import moves, node, snapshot, trial

MOVE_COST = 5.0
WEIGHTS = Weights(1.0, 0.0, 1.0, MOVE_COST)


def elastic(name: str, cpu: float = 4.0, **changes: Any) -> Node:  # noqa: ANN401 - fields of Node
    return node(name, cpu, kind="m4", **changes)


NODES = (elastic("n1"), elastic("n2"), elastic("n3"))


def gathered(  # noqa: PLR0913 - a row of what counts
    trials: Sequence[Trial],
    nodes: Sequence[Node] = NODES,
    *,
    seconds: Mapping[str, float] | None = None,
    most: float = 1.0,
    weights: Weights = WEIGHTS,
    kinds: tuple[NodeKind, ...] = (NodeKind("m4", 4.0),),
    movable: frozenset[TrialId] | None = None,
) -> list[tuple[str, str]]:
    """Return the moves; each trial can use ``most`` cores, and has 300 s left with them unless ``seconds`` say so."""
    seen = replace(snapshot(0.0, trials, nodes), kinds=kinds)
    left = dict.fromkeys((one.id for one in trials), 300.0) | {TrialId(k): v for k, v in (seconds or {}).items()}
    estimates = {
        one.id: Estimate(one, left[one.id] * most, most, 0.1, EstimateSource.OWN, most) for one in seen.unended
    }
    plan = WorkPlan(seen, estimates, {}, weights)
    found = gather_trials(plan, frozenset(one.id for one in trials) if movable is None else movable)
    return moves(Decision(None, tuple(found)))


def test_the_node_with_the_least_to_move_is_emptied_onto_cores_that_others_leave_unused() -> None:
    there = [trial("a", "n1"), trial("b", "n1"), trial("c", "n2"), trial("d", "n3")]
    assert gathered(there, seconds={"d": 200.0}) == [("d", "n1")]


def test_it_is_emptied_as_a_whole_or_not_at_all() -> None:
    there = [trial("a", "n1"), trial("b", "n1"), *(trial(f"c{n}", "n2") for n in range(3))]
    assert gathered(there, NODES[:2]) == []
    assert gathered(there, (NODES[0], elastic("n2", 5.0))) == [("a", "n2"), ("b", "n2")]


def test_the_dearest_node_goes_first_and_a_node_that_stays_takes_its_trials() -> None:
    nodes = (elastic("n1", price=1.0), elastic("n2", price=3.0), node("own", 4.0))
    assert gathered([trial("a", "n1"), trial("b", "n2")], nodes) == [("b", "own")]


def test_nobody_moves_where_no_node_can_go() -> None:
    two = [trial("a", "n1"), trial("b", "n2")]
    assert gathered(two) == [("a", "n2")]
    assert gathered(two, [replace(one, kind="") for one in NODES]) == []
    assert gathered(two, kinds=()) == [], "machines have kinds also where no other comes or goes"


@pytest.mark.parametrize("most", [2.0, 2.1])
def test_nobody_moves_where_somebody_would_get_slower(most: float) -> None:
    assert bool(gathered([trial("a", "n1"), trial("b", "n2")], NODES[:2], most=most)) is (most == 2.0)


def test_nobody_moves_where_each_further_trial_costs_the_others_their_speed() -> None:
    there = [trial("a", "n1"), trial("b", "n2")]
    assert gathered(there, weights=Weights(1.0, MOST_CONTENTION, 1.0, MOVE_COST))
    assert not gathered(there, weights=Weights(1.0, 2 * MOST_CONTENTION, 1.0, MOVE_COST))


def test_nobody_moves_for_a_node_that_is_done_soon() -> None:
    assert gathered([trial("a", "n1"), trial("b", "n2")], seconds=dict.fromkeys("ab", WORTH * MOVE_COST)) == []


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.SUSPENDED, Phase.MOVING, Phase.SUSPENDING])
def test_nobody_moves_while_others_start_wait_or_leave(phase: Phase) -> None:
    other = trial("c", *(() if phase in {Phase.PENDING, Phase.SUSPENDED} else ("n3",)), phase=phase)
    assert gathered([trial("a", "n1"), trial("b", "n2"), other]) == []


def test_nobody_moves_to_where_its_request_does_not_fit_or_from_where_one_may_not_move() -> None:
    wide = [trial("a", "n1", cpu=3.0), trial("b", "n2", cpu=3.0)]
    assert gathered(wide, NODES[:2]) == []
    there = [trial("a", "n1"), trial("b", "n2")]
    assert gathered(there, movable=frozenset({TrialId("b")})) == [("b", "n1")]
    gangs = [trial(name, where, workers=1, max_workers=2) for name, where in (("a", "n1"), ("b", "n2"))]
    assert gathered(gangs) == []


def test_a_node_that_goes_anyway_is_no_place_to_gather_at() -> None:
    leaving = elastic("n2", ready=False, leaves_at=100.0)
    assert gathered([trial("a", "n1"), trial("b", "n2")], (NODES[0], leaving)) == []
    assert NodeName("n2") == leaving.name
