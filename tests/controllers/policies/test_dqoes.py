"""Worked examples of DQoES. Every trial here makes one step per core second."""

from dataclasses import replace
from typing import Any

import pytest

from controllers.core.actions import Decision
from controllers.core.model import Goals, Progress, Snapshot, Trial
from controllers.policies import DQoES
from tests.controllers.policies.policy_fakes import node, resizes, run, snapshot, trial


def training(name: str, now: float, goal: float | None, cpu: float = 1.0, **changes: Any) -> Trial:  # noqa: ANN401
    progress = Progress(1.0, 0.5, 0.5, int(cpu * now), now, cpu * now)
    return trial(name, "n", cpu=cpu, progress=progress, goals=Goals(seconds_per_step=goal), **changes)


def decided(*goals: tuple[str, float | None]) -> Decision[Any]:
    times = (0.0, 20.0)
    looks = [snapshot(now, [training(name, now, goal) for name, goal in goals], [node("n", 9.0)]) for now in times]
    return run(DQoES(), looks)[-1]


def test_shares_move_from_who_is_faster_than_need_be_to_who_is_slower() -> None:
    decision = decided(("a", 1.6), ("b", 0.8))
    # 1 s a step each: a needs 1 / 1.6 of its share, b 1 / 0.8 and gets what is left over besides.
    assert resizes(decision) == {"a": pytest.approx(0.625), "b": pytest.approx(1.375)}
    assert [p.reason for p in decision.proposals] == ["1 s a step, not 1.6 s", "1 s a step, not 0.8 s"]


def test_a_share_changes_by_half_in_one_look_at_most() -> None:
    assert resizes(decided(("a", 100.0), ("b", 0.001))) == {"a": pytest.approx(0.5), "b": pytest.approx(1.5)}


def test_within_the_tolerance_a_trial_is_left_alone() -> None:
    assert resizes(decided(("a", 1.05), ("b", None))) == {}


def test_where_there_is_too_little_for_all_as_many_as_can_be_are_satisfied() -> None:
    # a needs 1.6 of the 3 cores and c 1.25: together with b's 0.5 that is too much.
    assert resizes(decided(("a", 0.625), ("b", 2.0), ("c", 0.8))) == {
        "a": pytest.approx(1.25),
        "b": pytest.approx(0.5),
        "c": pytest.approx(1.25),
    }


def test_what_is_left_over_goes_to_those_without_a_time_per_step() -> None:
    assert resizes(decided(("a", 1.6), ("b", None), ("c", 1.0))) == {
        "a": pytest.approx(0.625),
        "b": pytest.approx(1.375),
    }


def test_who_is_served_does_not_change_because_measurements_flicker() -> None:
    def look(now: float, **steps: int) -> Snapshot:
        members = [training(name, now, 0.6) for name in steps]
        noisy = [replace(t, progress=replace(t.progress, step=steps[t.id])) for t in members if t.progress]
        return snapshot(now, noisy, [node("n", 9.0)])

    # Each needs more than half of the node. At 40 s a step of b seems to cost a tenth less than one of a.
    decisions = run(DQoES(), [look(0.0, a=0, b=0), look(20.0, a=20, b=20), look(40.0, a=39, b=41)])
    assert [decision.state.served for decision in decisions] == [(), ("a",), ("a",)]


def test_who_is_too_slow_is_told() -> None:
    looks = [snapshot(now, [training("a", now, 0.25)], [node("n", 9.0)]) for now in (0.0, 20.0, 25.0)]
    (assessment,) = run(DQoES(), looks)[-1].assessments.values()
    assert assessment.outlook == "takes 1 s a step, not the 0.25 s that were asked for"


def test_a_measurement_is_acted_on_once() -> None:
    looks = [
        snapshot(
            now, [training(name, min(now, 20.0), goal) for name, goal in (("a", 1.6), ("b", 0.8))], [node("n", 9.0)]
        )
        for now in (0.0, 20.0, 40.0)
    ]
    assert resizes(run(DQoES(), looks)[-1]) == {}
