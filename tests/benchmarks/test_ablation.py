"""A policy without one kind of its actions does all else, and nobody does what is left out."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from benchmarks.experiments.ablation import AblationPlan, Without
from controllers.core.actions import (
    ACTION_KINDS,
    Action,
    Assessment,
    Decision,
    Migrate,
    Place,
    Proposal,
    Resize,
    Stop,
    Suspend,
)
from controllers.core.model import NodeName, Snapshot, TrialId
from controllers.lab.simulation.evaluation import first_nodes, run_plans, simulate_seed
from controllers.lab.simulation.experiments.published import EXPERIMENTS
from controllers.lab.simulation.run import SimulatedRun
from tests.controllers.worlds.simulated.workloads import Idle

pytestmark = pytest.mark.slow

EVERY_KIND = tuple(
    Proposal(action, "why")
    for action in (
        Place(TrialId("a"), (NodeName("n1"),)),
        Place(TrialId("b")),
        Resize(TrialId("c"), 0.5),
        Migrate(TrialId("d"), (NodeName("n1"),)),
        Suspend(TrialId("e")),
        Stop(TrialId("f"), "why"),
    )
)
VETOED = ((Proposal(Migrate(TrialId("e"), (NodeName("n1"),)), "why"), "no room"),)
S5 = EXPERIMENTS["S5"]


@dataclass(frozen=True)
class Eager(Idle):
    """Wants an action of every kind at every look."""

    needs: frozenset[type[Action]] = frozenset(ACTION_KINDS)
    name: str = "eager"

    def decide(self, snapshot: Snapshot, state: Any) -> Decision[Any]:  # noqa: ANN401 - as the policy within
        return Decision(state, EVERY_KIND, snapshot.now + 1, {TrialId("a"): Assessment(outlook="fine")}, VETOED)


@cache
def run(left_out: type[Action] | None) -> SimulatedRun:
    return simulate_seed(AblationPlan(S5, ("default", "ahead"), without=left_out), 0)[1]


@pytest.mark.parametrize("kind", ACTION_KINDS)
def test_only_what_is_left_out_is_dropped(kind: type[Action]) -> None:
    policy = Eager()
    without = Without(policy=policy, left_out=kind)
    snapshot = Snapshot(7.0, (), ())
    decided = without.decide(snapshot, without.initial())
    wanted = policy.decide(snapshot, policy.initial())
    assert decided.proposals == tuple(one for one in EVERY_KIND if type(one.action) is not kind)
    assert replace(decided, proposals=wanted.proposals) == wanted
    assert without.needs == frozenset(ACTION_KINDS) - {kind}
    assert without.state_type is policy.state_type


def test_it_is_named_by_the_rule_that_is_left_out() -> None:
    names = [Without(policy=Eager(), left_out=kind).name for kind in ACTION_KINDS]
    assert sorted(names) == [
        "eager without clones",
        "eager without moves",
        "eager without placement",
        "eager without shares",
        "eager without stops",
        "eager without suspensions",
    ]


def test_without_placement_the_default_scheduler_places_the_trials() -> None:
    placed = {trial.id: trial.first_node for trial in run(Place).result.trials}
    assert placed == first_nodes(S5, S5.workload(0), 0)
    assert {trial.id: trial.first_node for trial in run(None).result.trials} != placed


def test_nobody_resizes_or_moves_where_that_is_left_out() -> None:
    assert any(trial.resizes for trial in run(Migrate).result.trials)
    assert not any(trial.moves for trial in run(Migrate).result.trials)
    assert not any(trial.resizes for trial in run(Resize).result.trials)


def test_what_is_left_out_is_so_in_other_processes_too() -> None:
    plans = [AblationPlan(EXPERIMENTS["S1"], ("default", "ahead"), without=Resize)]
    here = run_plans(plans, range(2), silent, processes=1)
    assert run_plans(plans, range(2), silent, processes=2) == here
    assert [summary.policy for summary in here] == ["default", "ahead"]
    assert all(figures.resizes == 0 for summary in here for figures in summary.runs)


def silent(runs: int) -> None:
    assert runs > 0
