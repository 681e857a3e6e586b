"""Worked examples of ``ahead``: who goes first on a node, who keeps what it needs, and what is worth a move."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from controllers.core.actions import Decision, Migrate, Proposal, Resize
from controllers.core.model import Node, Phase, Progress, Snapshot, Trial, TrialId
from controllers.policies import Ahead
from controllers.policies.ahead.forecast import node_forecast
from controllers.policies.ahead.policy import AheadState
from controllers.policies.kit.allocation import allocate
from tests.controllers.policies.policy_fakes import moves, node, run, snapshot, trial

EVERY = 10.0
"""Seconds between two reports of the trials below."""


def training(name: str, where: str, at: float, steps: int, **changes: Any) -> Trial:  # noqa: ANN401 - any field of Trial
    """Return a trial of a step a second, each of one core second, which has done ``at`` of its ``steps``."""
    progress = Progress(1.0, 0.5, 0.5, int(at), at, at * changes.pop("cores", 1.0), steps)
    return trial(name, where, progress=progress if at else None, **changes)


def story(totals: Mapping[str, tuple[str, int]], nodes: Iterable[Node], until: float) -> list[Snapshot]:
    """Return snapshots of trials, each with its node and its number of steps, from their start on."""
    times = [EVERY * number for number in range(int(until / EVERY) + 1)]
    return [
        snapshot(at, [training(name, where, at, steps) for name, (where, steps) in totals.items()], nodes)
        for at in times
    ]


def shares_of(decision: Decision[Any]) -> dict[str, float]:
    return {p.action.trial: p.action.cpu for p in decision.proposals if isinstance(p.action, Resize)}


def reason_of(decision: Decision[Any], name: str) -> str:
    found: list[Proposal] = [p for p in decision.proposals if p.action.trial == name]
    return found[0].reason


def test_the_trial_with_the_least_left_gets_all_that_it_can_use() -> None:
    alike = {"short": ("n", 100), "middle": ("n", 300), "long": ("n", 350)}
    last = run(Ahead(), story(alike, [node("n", 3.0)], 40.0))[-1]
    shares = shares_of(last)
    assert shares["short"] > 2.5
    assert shares["middle"] < 0.1 > shares["long"]
    assert reason_of(last, "short").startswith("sharing: number 1 of 3, ")


def test_a_trial_that_would_end_the_sweep_keeps_what_it_needs() -> None:
    # Even with all cores of its node, the long one takes as long as the sweep must.
    nodes = [node("n", 2.0), node("m", 2.0)]
    both = {"short": ("n", 200), "long": ("n", 2000)}
    last = run(Ahead(move_cost=10_000.0), story(both, nodes, 40.0))[-1]
    assert shares_of(last)["long"] > 1.8
    assert "the sweep ends with it" in reason_of(last, "long")


def test_a_new_trial_goes_first_until_it_reports_and_a_silent_one_has_an_even_part() -> None:
    nodes = [node("n", 2.0)]
    known = story({"a": ("n", 1000)}, nodes, 30.0)
    arrived = [replace(seen, trials=(*seen.trials, trial("new", "n"))) for seen in known[2:]]
    assert shares_of(run(Ahead(), [*known[:2], *arrived])[-1])["new"] > 1.8
    late = [
        snapshot(at, [training("a", "n", at, 1000), trial("new", "n")], nodes)
        for at in (40.0, 60.0, 80.0, 100.0, 110.0)
    ]
    assert shares_of(run(Ahead(), [*known[:2], *arrived, *late])[-1]).get("new", 1.0) == pytest.approx(1.0, abs=0.1)


def test_a_trial_moves_from_the_node_that_ends_last_to_an_idle_one() -> None:
    three = {"a": ("n", 500), "b": ("n", 500), "c": ("n", 500)}
    last = run(Ahead(), story(three, [node("n", 1.0), node("m", 1.0)], 40.0))
    assert next(move for one in last for move in moves(one))[1] == "m"


def test_a_trial_that_is_nearly_done_stays() -> None:
    nodes = [node("n", 1.0), node("m", 1.0)]
    nearly = {"a": ("n", 46), "b": ("n", 45)}
    assert not any(moves(one) for one in run(Ahead(move_cost=15.0), story(nearly, nodes, 40.0)))


def moved_once(seconds: float) -> AheadState:
    """Return the state after a move that took ``seconds``."""
    nodes = [node("n", 1.0), node("m", 1.0)]
    before = [snapshot(at, [training("a", "n", at, 9000)], nodes) for at in (0.0, 10.0, 20.0)]
    left = replace(training("a", "n", 20.0, 9000), phase=Phase.MOVING)
    again = [
        replace(
            training("a", "m", 20.0, 9000, attempt=2),
            progress=Progress(1.0, 0.5, 0.5, 21 + done, 21.0 + seconds + done, 21.0 + done, 9000),
        )
        for done in (0, 10)
    ]
    after = [snapshot(21.0 + seconds + 10 * k, [one], nodes) for k, one in enumerate(again)]
    running = snapshot(20.0 + seconds, [replace(left, phase=Phase.RUNNING, nodes=again[0].nodes, attempt=2)], nodes)
    decisions = run(Ahead(), [*before, snapshot(20.0, [left], nodes), running, *after])
    return decisions[-1].state  # type: ignore[no-any-return]


@pytest.mark.parametrize("seconds", [2.0, 60.0])
def test_what_a_move_costs_is_learnt_from_the_moves_of_the_sweep(seconds: float) -> None:
    assert list(moved_once(seconds).measured.moves) == [pytest.approx(seconds, abs=1.0)]


def test_reports_that_are_too_old_move_nothing_and_change_no_share() -> None:
    alike = {"a": ("n", 100), "b": ("n", 1000)}
    seen = story(alike, [node("n", 2.0), node("m", 2.0)], 20.0)
    stale = [replace(seen[-1], now=at) for at in (100.0, 200.0)]
    assert not any(one.proposals for one in run(Ahead(), [*seen, *stale])[-2:])


def test_where_speed_grows_more_slowly_than_cores_the_parts_are_more_even() -> None:
    loads = [(100.0, 16.0), (200.0, 16.0), (400.0, 16.0)]
    linear, concave = node_forecast(loads, 16.0, 1.0), node_forecast(loads, 16.0, 0.6)
    assert allocate([16.0] * 3, 16.0, linear.exponent) == [16.0, 0.0, 0.0]
    first, second, third = allocate([16.0] * 3, 16.0, concave.exponent)
    assert 16.0 > first >= second >= third > 1.0
    assert first + second + third == pytest.approx(16.0)


def test_outlooks_say_what_a_guess_rests_on() -> None:
    seen = snapshot(0.0, [trial("a", "n")], [node("n", 1.0)])
    outlook = run(Ahead(), [seen])[-1].assessments[TrialId("a")].outlook
    assert "not known yet" in outlook


def test_nobody_moves_where_a_node_is_not_ready() -> None:
    two = {"a": ("n", 500), "b": ("n", 500)}
    seen = story(two, [node("n", 1.0), node("m", 1.0, ready=False)], 40.0)
    assert not any(isinstance(p.action, Migrate) for one in run(Ahead(), seen) for p in one.proposals)
