"""Where few trials can use all cores, only the likeliest train; what they can use is tried out."""

from dataclasses import replace
from typing import Any

import pytest

from controllers.core.devices import Devices
from controllers.core.model import NodeKind, Phase, Trial
from controllers.policies.kit.measured_trials import MeasuredTrial
from controllers.policies.kit.work_left import SweepMeasurements
from controllers.policies.promote.leaders import LeadingTrials
from tests.controllers.policies.policy_fakes import node, snapshot, trial

NODES = (node("w1", 4.0), node("w2", 4.0))


def running(name: str, where: str = "w1") -> Trial:
    return trial(name, where)


def waiting(name: str) -> Trial:
    return trial(name, phase=Phase.SUSPENDED, gated=True)


def leaders(trials: list[Trial], used: float, most: float | None, **there: Any) -> LeadingTrials:  # noqa: ANN401 - of a snapshot
    """Return those of ``trials``, the likeliest first, which were seen to use so many cores."""
    known = SweepMeasurements({one.id: MeasuredTrial(used=used, most=most) for one in trials})
    now = replace(snapshot(60.0, tuple(trials), NODES), **there)
    return LeadingTrials(now, known, [one for one in trials if one.steady])


@pytest.mark.parametrize(("used", "enough"), [(0.0, 4), (1.0, 4), (2.0, 2), (4.0, 2)])
def test_each_counts_for_twice_what_it_was_seen_to_use_up_to_a_whole_node(used: float, enough: int) -> None:
    trials = [running(f"t{number}", f"w{number % 2 + 1}") for number in range(8)]
    found = leaders(trials, used, None)
    behind = [found.before(one) for one in trials]
    assert behind == [*[None] * enough, *[trials[enough - 1]] * (8 - enough)]


def test_nobody_waits_for_cores_that_the_others_turn_out_to_be_unable_to_use() -> None:
    trials = [running(f"t{number}", f"w{number % 2 + 1}") for number in range(8)]
    found = leaders(trials, 1.0, 1.0)
    assert [found.before(one) for one in trials] == [None] * 8


def test_a_trial_that_waits_trains_only_on_cores_that_are_left() -> None:
    first, *rest = [waiting(f"t{number}") for number in range(3)]
    two = [running("a"), running("b", "w2")]
    found = leaders([*two, first, *rest], 1.5, None)
    assert found.leave_room(first)  # 8 cores, 3 for each of the two, and this one is to get what is left
    assert not found.leave_room(rest[0])
    assert all(leaders([*two, first, *rest], 1.0, 1.0).leave_room(one) for one in (first, *rest))


def test_one_that_leaves_needs_no_cores() -> None:
    going = trial("a", "w1", phase=Phase.SUSPENDING)
    other = waiting("b")
    assert not leaders([running("c"), running("d", "w2"), other], 4.0, 4.0).leave_room(other)
    assert leaders([running("c"), going, other], 4.0, 4.0).leave_room(other)


def test_what_programs_of_others_take_suspends_nobody() -> None:
    trials = [running(f"t{number}", f"w{number % 2 + 1}") for number in range(8)]
    found = leaders(trials, 1.0, 1.0, nodes=(node("w1", 4.0, supply=0.5), node("w2", 4.0)))
    assert [found.before(one) for one in trials] == [None] * 8


def test_nobody_waits_where_devices_or_nodes_that_can_come_are_what_counts() -> None:
    trials = [running(f"t{number}", f"w{number % 2 + 1}") for number in range(8)]
    assert leaders(trials, 4.0, None).before(trials[-1]) is not None
    coming = leaders(trials, 4.0, None, kinds=(NodeKind("spot", 4.0, more=3),))
    assert coming.before(trials[-1]) is None
    assert coming.leave_room(waiting("t8"))
    with_gpu = [*trials[:-1], replace(trials[-1], devices=Devices.of({"nvidia.com/gpu": 1}))]
    assert leaders(with_gpu, 4.0, None).before(with_gpu[-1]) is None
