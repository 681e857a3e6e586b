from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.forecast import EndRange, Forecast
from controllers.core.model import NodeName, Trial, TrialId
from controllers.core.ports import ComingTrial
from controllers.forecast.ranges import PolicyTraits, forecast
from controllers.policies.registry import parse_policy
from tests.controllers.forecast.sweeps import N2, at_step, ended, seen, trial

DEFAULT = PolicyTraits()


def end_of(found: Forecast) -> EndRange:
    assert found.end is not None
    return found.end


def test_nothing_is_promised_before_anything_is_known() -> None:
    assert forecast(*seen((0.0, [trial("a")])), [], DEFAULT) == Forecast(0.0)


def test_when_all_have_ended_the_end_is_now() -> None:
    found = forecast(*seen((9.0, [ended(trial("a"))])), [], DEFAULT)

    assert found.end == EndRange(9.0, 9.0, 9.0)
    assert found.trials == {}


def test_cores_that_others_will_leave_are_counted_in() -> None:
    # Both have half of a node of two cores. At the pace it has had, b would need 810 s more; but a is nearly done.
    looks = [
        (at, [at_step(trial("a"), 9 * step, at, 1.0), at_step(trial("b"), step, at, 9.0)])
        for step, at in ((5, 50.0), (10, 100.0))
    ]
    snapshot, known = seen(*looks)
    a, b = (forecast(snapshot, known, [], DEFAULT).trials[TrialId(f"uid.sweep.{name}")].left(100.0) for name in "ab")

    assert a.likely == pytest.approx(10.0, rel=0.1)
    assert b.low < 10.0 + 800 / 2 < b.high  # if it can use both cores, which nobody has seen yet
    assert b.likely == pytest.approx(10.0 + 800 / 2, rel=0.2)


def test_what_was_done_since_the_last_report_is_not_left_any_more() -> None:
    looks = [(40.0, [at_step(trial("a"), 20, 40.0, 4.0)]), (80.0, [at_step(trial("a"), 40, 80.0, 4.0)])]
    told, later = (forecast(*seen(*looks, last), [], DEFAULT) for last in ((80.0, looks[1][1]), (82.0, looks[1][1])))

    assert end_of(later).likely == pytest.approx(end_of(told).likely, rel=0.02)


def running(*names: str) -> list[tuple[float, list[Trial]]]:
    return [(at, [at_step(trial(name), step, at, 2.0) for name in names]) for step, at in ((10, 20.0), (20, 40.0))]


def test_trials_that_wait_or_have_yet_to_come_are_taken_to_be_like_the_others() -> None:
    known = running("a", "b")
    waiting = [(at, [*trials, trial("c", None, cpu=2.0)]) for at, trials in known]
    coming = [ComingTrial(TrialId("uid.sweep.d"), 500.0, 1.0)]
    alone, one_more = forecast(*seen(*known), [], DEFAULT), forecast(*seen(*waiting), [], DEFAULT)
    late = forecast(*seen(*known), coming, DEFAULT)

    assert end_of(one_more).likely > end_of(alone).likely
    assert TrialId("uid.sweep.c") in one_more.trials
    assert end_of(late).likely > 550.0
    assert TrialId("uid.sweep.d") not in late.trials


def test_a_trial_of_unknown_length_has_a_wider_range_than_one_that_tells_it() -> None:
    looks = [
        (
            at,
            [
                at_step(trial("a"), step, at, 2.0),
                at_step(trial("b"), step, at, 2.0),
                at_step(trial("c"), step, at, 2.0, None),
            ],
        )
        for step, at in ((10, 20.0), (20, 40.0))
    ]
    found = forecast(*seen(*looks), [], DEFAULT).trials
    told, guessed = (found[TrialId(f"uid.sweep.{name}")] for name in "ac")

    assert guessed.high - guessed.low > 1.5 * (told.high - told.low)


def test_a_trial_that_moves_is_foreseen_by_what_it_told_before() -> None:
    before = running("a")
    trials = [replace(before[-1][1][0], nodes=(N2,), attempt=2)]
    stayed, moved = (forecast(*seen(*looks), [], DEFAULT) for looks in (before, [*before, (41.0, trials)]))

    assert end_of(moved).likely == pytest.approx(end_of(stayed).likely, rel=0.1)


def test_each_sweep_of_a_workflow_has_an_end_of_its_own() -> None:
    looks = [
        (
            at,
            [
                at_step(trial("a"), step, at, 2.0),
                replace(at_step(trial("b", N2), step, at, 20.0), id=TrialId("uid.other.b")),
            ],
        )
        for step, at in ((10, 20.0), (20, 40.0))
    ]
    found = forecast(*seen(*looks), [], DEFAULT)

    assert found.sweeps["uid.sweep"].likely < found.sweeps["uid.other"].likely
    assert end_of(found).likely == pytest.approx(found.sweeps["uid.other"].likely, rel=0.02)


@pytest.mark.parametrize(
    ("policy", "steering"),
    [
        ("default", PolicyTraits()),
        ("flowcon", PolicyTraits(reweighs=True)),
        ("specon+flowcon", PolicyTraits(reweighs=True, most_moves=2)),
    ],
)
def test_what_a_policy_does_is_read_off_its_rules(policy: str, steering: PolicyTraits) -> None:
    assert PolicyTraits.by(parse_policy(policy)) == steering


def test_a_policy_that_lets_the_shortest_go_first_says_so() -> None:
    assert PolicyTraits.by(parse_policy("ahead")).shortest_first
    assert not PolicyTraits.by(parse_policy("ahead")).reweighs


def test_a_gang_that_may_grow_and_shrink_has_a_wider_range_under_a_policy_that_scales_gangs() -> None:
    def gang(step: int, at: float) -> Trial:
        return replace(at_step(trial("a"), step, at, 2.0), workers=2, min_workers=1, max_workers=4)

    looks = ((10, 20.0), (20, 40.0))
    known = seen(*((at, [gang(step, at), at_step(trial("b", N2), step, at, 2.0)]) for step, at in looks))
    scaling = PolicyTraits.by(parse_policy("dragon+ahead"))
    assert scaling.scales_gangs
    told = forecast(*known, [], scaling).trials
    fixed = forecast(*known, [], replace(scaling, scales_gangs=False)).trials
    widths = [{name[-1]: one.high - one.low for name, one in found.items()} for found in (told, fixed)]
    assert widths[0]["a"] > 1.5 * widths[1]["a"]
    assert widths[0]["b"] == pytest.approx(widths[1]["b"], rel=0.2)


NUMBERS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**60), 2**60).map(float))


@given(st.lists(st.tuples(st.integers(-5, 2**60), NUMBERS, st.one_of(st.none(), st.integers(-5, 2**60))), max_size=6))
def test_whatever_reports_hold_ranges_are_in_order_and_in_the_future(reports: list[tuple[int, float, Any]]) -> None:
    looks = []
    for number, (step, cpu_seconds, total) in enumerate(reports):
        now = 10.0 * number
        one = at_step(trial("a"), step, now, 0.0, total)
        assert one.progress is not None
        one = replace(one, progress=replace(one.progress, cpu_seconds=cpu_seconds))
        looks.append((now, [one, trial("b", NodeName("gone")), trial("c", None)]))
    for known in (looks[: end + 1] for end in range(len(looks))):
        snapshot, measured = seen(*known)
        found = forecast(snapshot, measured, [], PolicyTraits(shortest_first=True, most_moves=2))
        for told in (*found.trials.values(), *found.sweeps.values(), *([found.end] if found.end else [])):
            assert snapshot.now <= told.low <= told.likely <= told.high


def test_a_node_that_gives_less_than_its_cores_may_go_on_so_or_give_them_all() -> None:
    looks = [
        (10.0 * step, [at_step(trial(name), step, 10.0 * step, 4.0) for name in ("a", "b")]) for step in range(1, 9)
    ]
    found = end_of(forecast(*seen(*looks), [], DEFAULT)).left(80.0)

    # Of their core each, both use 0.4, and need 92 * 4 core seconds more.
    assert found.low < 368 * 1.3
    assert found.high > 368 / 0.4 * 0.8


def test_of_trials_that_wait_the_shortest_starts_first_where_the_policy_does_so() -> None:
    running = [
        (at, [at_step(trial("a", cpu=2.0), 10 * look, at, 4.0), at_step(trial("b", N2, cpu=2.0), 5 * look, at, 8.0)])
        for look, at in ((1, 20.0), (2, 40.0))
    ]
    waiting = [at_step(trial(name, None, cpu=2.0), step, 10.0, 4.0) for name, step in (("c", 10), ("d", 90))]
    known = seen(*((at, [*trials, *waiting]) for at, trials in running))
    in_order, shortest = (forecast(*known, [], PolicyTraits(shortest_first=first)) for first in (False, True))
    last = TrialId("uid.sweep.d")

    assert shortest.trials[last].high < in_order.trials[last].low
