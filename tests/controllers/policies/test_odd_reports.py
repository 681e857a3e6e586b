"""What trials report is theirs to say: whatever it is, every policy answers, and with numbers that are finite."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controllers.core.actions import Decision
from controllers.core.model import Direction, Goals, NodeName, Phase, Sample, Snapshot, Trial, TrialId
from controllers.core.parameters import bound_parameters
from controllers.core.policy import Policy, dump_state, load_state
from controllers.core.progress import merge
from controllers.forecast.ranges import PolicyTraits, forecast
from controllers.policies import Ahead
from controllers.policies.comparison.clairvoyant import inform
from controllers.policies.kit.work_left import SweepMeasurements, measure_sweep
from controllers.policies.registry import POLICIES
from tests.controllers.policies.policy_fakes import node, snapshot, trial
from tests.property_examples import examples

EVERY: list[Policy[Any]] = [
    inform(kind(), {TrialId(f"t{number}"): 100.0 for number in range(6)})  # type: ignore[arg-type]  # it is a policy
    for kind in POLICIES.values()
]
every_policy = pytest.mark.parametrize("policy", EVERY, ids=lambda policy: policy.name)

ODD = (0.0, -0.0, -1.0, 5e-324, 1e-9, 1e12, -1e12, 1e308, -1e308, math.inf, -math.inf, math.nan)
ODD_STEPS = (0, -1, -(10**30), 10**6, 10**12, 10**18, 10**30)
ODD_AGES = (0.0, -1e-9, 1e-9, -30.0, 30.0, 1e12, -1e12, 1e308, -1e308, math.inf, math.nan)
"""Seconds for which a report has been there: times are equal, go back, or lie ahead of the sweep's clock."""
numbers = st.one_of(st.floats(0.0, 100.0), st.sampled_from(ODD))
told = st.tuples(
    numbers,
    st.one_of(st.integers(0, 20), st.sampled_from(ODD_STEPS)),
    st.one_of(st.just(0.0), st.floats(0.0, 5.0), st.sampled_from(ODD_AGES)),
    st.one_of(numbers, st.none()),
    st.one_of(st.none(), st.integers(1, 30), st.sampled_from([10**6, 2**53 - 1])),
    numbers,
)
"""A report's value, step, age, CPU seconds, steps in all and first value."""
looks_apart = st.sampled_from([0.0, 1e-9, 1.0, 15.0, 15.0, 40.0, 3600.0])
happening = st.tuples(st.sampled_from(["", "", "", "move", "arrive", "end", "fail"]), st.integers(0, 3))
stories = st.lists(
    st.tuples(looks_apart, st.tuples(*[st.one_of(told, st.none())] * 4), happening), min_size=3, max_size=12
)
Told = tuple[float, int, float, float | None, int | None, float]
Story = list[tuple[float, tuple[Told | None, ...], tuple[str, int]]]
GOALS = (Goals(deadline_at=90.0), Goals(target=0.5), Goals(seconds_per_step=2.0), Goals())


def told_by_first(*reports: Told) -> Story:
    """Return the story of a trial that tells ``reports``, 15 s apart, beside others that tell nothing."""
    nothing = (None,) * 4
    return [(0.0, nothing, ("", 0)), *((15.0, (report, None, None, None), ("", 0)) for report in reports)]


BEYOND_COUNTING = told_by_first(
    (1.0, 0, 0.0, 1e12, 30, 1.0), (0.9, 1, 0.0, 1e12, 30, 1.0), (0.8, 2, 0.0, 1e12, 30, 1.0)
)
"""So many CPU seconds that a few more are none."""
WITHIN_AN_INSTANT = told_by_first(*((1.0, step, 15.0 * (step + 1) - 1e12, 1.0 + step, 30, 1.0) for step in range(3)))
"""All at one instant, so far ahead that a few seconds more are none."""


def sweep() -> dict[TrialId, Trial]:
    """Return four trials that run on two nodes, one that waits for a place, and one of another sweep."""
    running = [
        trial(
            f"t{n}",
            "xy"[n % 2],
            cpu=1.0 + n % 2,
            goals=GOALS[n],
            parameters=bound_parameters({"width": (1e300, 5e-324)[n % 2]}),
        )
        for n in range(4)
    ]
    waiting = trial("t4", phase=Phase.PENDING, attempt=0, gated=True, parameters=bound_parameters({"width": 3.0}))
    other = trial("t5", "y", direction=Direction.MAXIMIZE, sweep="other")
    return {one.id: one for one in (*running, waiting, other)}


def looks(story: Story) -> Iterator[Snapshot]:
    """Yield what a policy sees after each turn of ``story``."""
    trials, now = sweep(), 0.0
    for seconds, each, (happens, number) in story:
        now += seconds
        for which, report in enumerate(each):
            if report is not None:
                trials[TrialId(f"t{which}")] = with_report(trials[TrialId(f"t{which}")], report, now)
        name = TrialId(f"t{number}")
        trials[name] = after(trials[name], happens)
        yield snapshot(now, trials.values(), [node("x", 4.0), node("y", 6.0)])


def with_report(known: Trial, report: Told, now: float) -> Trial:
    value, step, age, cpu, total, first = report
    sample = Sample(value, step, now - age, cpu, first, total)
    return replace(known, progress=merge(known.progress, sample, known.direction), diverged=not math.isfinite(value))


def after(known: Trial, happens: str) -> Trial:
    if happens == "move" and known.phase is Phase.RUNNING:
        there = NodeName("x" if known.node == "y" else "y")
        return replace(known, phase=Phase.MOVING, destination=(there,))
    if happens == "arrive" and known.phase is Phase.MOVING and known.moving_to:
        nodes, attempt = (known.moving_to,), known.attempt + 1
        return replace(known, phase=Phase.RUNNING, nodes=nodes, destination=(), attempt=attempt, moves=known.moves + 1)
    if happens in {"end", "fail"} and known.phase is Phase.RUNNING:
        return replace(known, phase=Phase.SUCCEEDED if happens == "end" else Phase.FAILED, nodes=())
    return known


def numbers_in(what: object) -> Iterator[float]:
    """Yield every float in something, however deep."""
    if isinstance(what, float):
        yield what
    elif isinstance(what, Mapping):
        for key, value in what.items():
            yield from (*numbers_in(key), *numbers_in(value))
    elif isinstance(what, tuple | list | set | frozenset):
        for one in what:
            yield from numbers_in(one)
    elif dataclasses.is_dataclass(what):
        for field in dataclasses.fields(what):
            yield from numbers_in(getattr(what, field.name))


def answers(decision: Decision[Any]) -> object:
    """Return all of a decision that others act on or are shown."""
    return decision.proposals, decision.wake_at, decision.assessments, decision.vetoed


@every_policy
@settings(max_examples=examples(40), deadline=None)
@given(story=stories)
@example(story=BEYOND_COUNTING)
@example(story=WITHIN_AN_INSTANT)
def test_whatever_trials_report_a_policy_answers_with_finite_numbers(policy: Policy[Any], story: Story) -> None:
    state = policy.initial()
    for seen in looks(story):
        decision = policy.decide(seen, state)
        assert all(map(math.isfinite, numbers_in(answers(decision))))
        state = load_state(policy, dump_state(policy, decision.state))
        assert state == decision.state


@settings(max_examples=examples(40), deadline=None)
@given(story=stories)
@example(story=BEYOND_COUNTING)
@example(story=WITHIN_AN_INSTANT)
def test_whatever_trials_report_forecasts_are_finite(story: Story) -> None:
    known, steering = SweepMeasurements(), PolicyTraits.by(Ahead())
    for seen in looks(story):
        known = measure_sweep(seen, known)
        assert all(map(math.isfinite, numbers_in(forecast(seen, known, (), steering, 0.0))))
