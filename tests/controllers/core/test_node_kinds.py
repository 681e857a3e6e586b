"""Kinds of nodes stay known, their boots are timed, and those that do not come are asked for less and less often."""

import math
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from controllers.core.model import Node, NodeKind, NodeName, Phase, Trial, TrialId
from controllers.core.node_kinds import (
    MOST_KINDS,
    MOST_PAUSE_S,
    PATIENCE_S,
    KnownKinds,
    believed_kinds,
    came_since,
    kinds_after,
)
from tests.controllers.policies.policy_fakes import node, trial

BIG = NodeKind("big", 4.0, boots_s=90.0, more=3.0)
UNKNOWN = NodeKind("", math.inf, more=1.0)
A = TrialId("a")


def asking(name: str = "a", cpu: float = 1.0) -> Trial:
    return trial(name, cpu=cpu, phase=Phase.PENDING, attempt=0)


class Watched:
    """A cluster that is looked at now and then, where one trial asks for a node from the beginning."""

    def __init__(self, *told: NodeKind, cpu: float = 1.0) -> None:
        self.told = told
        self.trial = asking(cpu=cpu)
        self.known = KnownKinds().with_let_go(A, 0.0)

    def look(self, now: float, *came: Node) -> dict[str, NodeKind]:
        self.known = kinds_after(now, [self.trial], came, self.told, self.known)
        return {kind.name: kind for kind in believed_kinds(self.told, self.known, now)}


def test_a_kind_takes_as_long_as_its_nodes_took_in_the_middle() -> None:
    cluster = Watched(BIG)
    for now, boot in [(100.0, 100.0), (1000.0, 40.0), (2000.0, 400.0)]:
        cluster.known = KnownKinds(cluster.known.kinds, cluster.known.trust, {A: now - boot})
        seen = cluster.look(now, node(f"n{now}", kind="big"))
    assert seen["big"].boots_s == 100.0


def test_a_trial_that_waits_for_something_else_makes_no_boot_seem_long() -> None:
    cluster = Watched(BIG)
    cluster.known = cluster.known.with_let_go(TrialId("b"), 5000.0)
    assert cluster.look(5080.0, node("n", kind="big"))["big"].boots_s == 80.0


def test_a_node_of_another_kind_tells_nothing_of_this_one() -> None:
    assert Watched(BIG).look(100.0, node("n", kind="small"))["big"].boots_s == 90.0


def test_a_kind_is_known_after_its_last_node_has_gone_and_after_a_restart() -> None:
    cluster = Watched(replace(BIG, memory=math.inf, more=math.inf))
    cluster.look(100.0, node("n", kind="big"))
    memory = TypeAdapter(KnownKinds)
    cluster.known, cluster.told = memory.validate_json(memory.dump_json(cluster.known)), ()
    kept = cluster.look(200.0)["big"]
    assert (kept.cpu, kept.boots_s, kept.more, kept.coming) == (4.0, 100.0, 1.0, 0)


def test_no_more_kinds_are_remembered_than_anybody_needs_and_those_told_of_go_first() -> None:
    many = [replace(BIG, name=f"k{number:03}") for number in range(2 * MOST_KINDS)]
    cluster = Watched(*many)
    cluster.look(0.0)
    cluster.told = (replace(BIG, name="z"),)
    assert len(cluster.look(1.0)) == MOST_KINDS
    assert "z" in cluster.look(1.0)


@pytest.mark.parametrize("kind", [BIG, UNKNOWN])
def test_a_kind_whose_nodes_do_not_come_is_left_alone_for_ever_longer_and_tried_with_one_then(kind: NodeKind) -> None:
    cluster = Watched(kind)
    mores, pauses = [], []
    for now in range(0, 24 * 3600, 10):
        mores.append(cluster.look(float(now))[kind.name].more)
        if len(mores) > 1 and mores[-1] != mores[-2]:
            pauses.append(float(now))
    assert mores[0] == kind.more
    assert set(mores[100:]) == {0.0, 1.0}
    away = [after - at for at, after in zip(pauses[::2], pauses[1::2], strict=False)]
    assert away[:4] == pytest.approx([600, 1200, 2400, 4800], abs=20)
    assert max(away) == pytest.approx(MOST_PAUSE_S, abs=20)


def test_a_node_that_comes_after_all_ends_the_pause_at_once() -> None:
    cluster = Watched(BIG)
    cluster.look(0.0)
    assert cluster.look(PATIENCE_S + 1)["big"].more == 0.0
    assert cluster.look(PATIENCE_S + 2, node("n", kind="big"))["big"].more == 3.0
    assert cluster.look(PATIENCE_S + 3)["big"].more == 3.0


def test_a_kind_that_would_not_hold_the_trial_is_not_to_blame() -> None:
    cluster = Watched(BIG, cpu=8.0)
    cluster.look(0.0)
    assert cluster.look(PATIENCE_S + 1)["big"].more == 3.0


def test_a_kind_that_takes_long_as_a_rule_has_more_time() -> None:
    cluster = Watched(replace(BIG, boots_s=PATIENCE_S))
    cluster.look(0.0)
    assert cluster.look(2 * PATIENCE_S)["big"].more == 3.0


@pytest.mark.parametrize(
    "after", [trial("a", "n"), trial("a", phase=Phase.SUCCEEDED), trial("a", phase=Phase.SUSPENDED, gated=True)]
)
def test_a_trial_that_runs_or_waits_at_its_gate_asks_for_no_node(after: Trial) -> None:
    assert kinds_after(5.0, [after], [], [BIG], KnownKinds().with_let_go(A, 0.0)).let_go == {}


def test_a_node_comes_once_however_often_it_falls_silent_and_none_at_the_first_look() -> None:
    n1, n2 = node("n1"), node("n2", ready=False)
    came, there = came_since([n1, n2], None)
    assert came == []
    came, there = came_since([n1, replace(n2, ready=True)], there)
    assert [one.name for one in came] == [NodeName("n2")]
    came, there = came_since([replace(n1, ready=False), n2], there)
    came, there = came_since([n1, replace(n2, ready=True)], there)
    assert came == []
