"""Properties of how DQoES splits a node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.model import Goals, Trial, TrialId
from controllers.policies.dqoes import split
from tests.controllers.policies.policy_fakes import trial

TOLERANCE = 0.1
cores = st.just(0.0) | st.floats(0.05, 4.0)
seconds = st.floats(0.01, 10.0)


@st.composite
def nodes(draw: st.DrawFn) -> tuple[list[Trial], dict[TrialId, float]]:
    """Trials of a node with and without a time per step, some of them measured."""
    names = [f"t{number}" for number in range(draw(st.integers(1, 8)))]
    goals = {name: Goals(seconds_per_step=draw(st.none() | seconds)) for name in names}
    members = [trial(name, "n", cpu=draw(cores), base_cpu=draw(cores), goals=goals[name]) for name in names]
    return members, {TrialId(name): draw(seconds) for name in names if draw(st.booleans())}


def needs_of(members: list[Trial], took: dict[TrialId, float]) -> dict[TrialId, float]:
    total = sum(member.cpu for member in members)
    return {
        member.id: (member.cpu / total if total else 1 / len(members)) * took[member.id] / member.goals.seconds_per_step
        for member in members
        if member.goals.seconds_per_step is not None and member.id in took
    }


def parts_of(members: list[Trial], took: dict[TrialId, float]) -> dict[TrialId, float]:
    return dict(split(members, took, needs_of(members, took), TOLERANCE).parts)


@given(nodes())
def test_all_of_a_node_is_given_to_its_trials_and_no_more(node: tuple[list[Trial], dict[TrialId, float]]) -> None:
    members, took = node
    parts = parts_of(members, took)
    assert set(parts) == {member.id for member in members}
    assert min(parts.values()) >= 0
    if needs_of(members, took) or any(member.goals.seconds_per_step is None for member in members):
        assert sum(parts.values()) == pytest.approx(1)


@given(nodes())
def test_who_needs_less_is_never_short_while_one_who_needs_more_is_served(
    node: tuple[list[Trial], dict[TrialId, float]],
) -> None:
    members, took = node
    parts, needs = parts_of(members, took), needs_of(members, took)
    short = {name for name, need in needs.items() if parts[name] * (1 + TOLERANCE) < need * (1 - 1e-9)}
    served = needs.keys() - short
    for name in short:
        assert all(needs[other] <= needs[name] * (1 + 1e-9) for other in served)


@given(nodes())
def test_one_without_a_time_per_step_keeps_what_was_asked_for_where_all_were_measured(
    node: tuple[list[Trial], dict[TrialId, float]],
) -> None:
    members, took = node
    measured = {member.id: took.get(member.id, 1.0) for member in members}
    parts, asked = parts_of(members, measured), sum(member.base_cpu for member in members)
    for member in members:
        if member.goals.seconds_per_step is None and asked:
            assert parts[member.id] >= member.base_cpu / asked - 1e-9


@given(nodes())
def test_where_there_is_enough_all_but_one_are_just_as_fast_as_they_shall_be(
    node: tuple[list[Trial], dict[TrialId, float]],
) -> None:
    members, took = node
    members = [member for member in members if member.goals.seconds_per_step is not None]
    measured = {member.id: took.get(member.id, 1.0) for member in members}
    needs = needs_of(members, measured)
    if not members or sum(needs.values()) > 1:
        return
    parts = parts_of(members, measured)
    faster = [name for name, need in needs.items() if parts[name] > need + 1e-9]
    assert len(faster) <= 1
    assert all(parts[name] >= need - 1e-9 for name, need in needs.items())
