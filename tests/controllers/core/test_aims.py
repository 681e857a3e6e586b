"""Objectives beside the first and constraints, as texts that anybody may write, and the front by brute force."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core import labels
from controllers.core.aims import (
    LONGEST_METRIC,
    MOST_COMPARED,
    MOST_CONSTRAINTS,
    MOST_OBJECTIVES,
    Aims,
    Constraint,
    Direction,
    FurtherObjective,
    pareto_front,
    read_aims,
)
from controllers.core.goals import GoalError, aims_in

LATENCY = FurtherObjective("latency", Direction.MINIMIZE)
MEMORY = Constraint("memory_mb", "<=", 512.0)
_METRICS = st.from_regex(r"[a-z][a-z0-9_/ .:-]{0,20}[a-z0-9]", fullmatch=True)
_BOUNDS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(
        st.builds(FurtherObjective, _METRICS, st.sampled_from(Direction)), max_size=3, unique_by=lambda o: o.metric
    ),
    st.lists(st.builds(Constraint, _METRICS, st.sampled_from(["<=", ">="]), _BOUNDS), max_size=8),
)
def test_what_is_written_is_read_again(further: list[FurtherObjective], constraints: list[Constraint]) -> None:
    aims = Aims(tuple(further), tuple(constraints))
    assert read_aims(*aims.written) == aims


def test_the_texts_are_those_that_a_person_would_write() -> None:
    assert Aims((LATENCY,), (MEMORY, Constraint("acc", ">=", 0.9))).written == (
        "minimize latency",
        "memory_mb <= 512, acc >= 0.9",
    )


@pytest.mark.parametrize(
    ("further", "constraints"),
    [
        ("latency", ""),
        ("lower latency", ""),
        ("minimize ", ""),
        ("minimize a, minimize a", ""),
        (f"minimize {'x' * (LONGEST_METRIC + 1)}", ""),
        (", ".join(f"minimize m{number}" for number in range(MOST_OBJECTIVES)), ""),
        ("", "memory_mb < 512"),
        ("", "memory_mb <= nan"),
        ("", "memory_mb <= much"),
        ("", "<= 512"),
        ("", ", ".join(["memory_mb <= 512"] * (MOST_CONSTRAINTS + 1))),
        ("minimize a,minimize b,", "x"),
    ],
)
def test_texts_that_say_nothing_of_the_kind_or_too_much_are_errors_of_a_few_words(
    further: str, constraints: str
) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        read_aims(further, constraints)
    assert len(str(refused.value)) < 300


def test_the_first_objective_does_not_come_again() -> None:
    notes = {labels.ANNOTATION_OBJECTIVE: "loss", labels.ANNOTATION_FURTHER_OBJECTIVES: "maximize loss"}
    with pytest.raises(GoalError, match="names the first objective 'loss' again"):
        aims_in(notes)


@given(_BOUNDS, _BOUNDS, st.sampled_from(["<=", ">="]))
def test_a_violation_is_above_0_just_where_the_bound_is_broken_and_finite(
    value: float, bound: float, relation: str
) -> None:
    by = Constraint("m", relation, bound).violation(value)
    assert (by <= 0) == (value <= bound if relation == "<=" else value >= bound)
    assert math.isfinite(by)


def test_the_largest_violation_is_a_number_that_samplers_take() -> None:
    assert MEMORY.violation(sys.float_info.max) < math.inf


@pytest.mark.parametrize("logged", [{}, {"memory_mb": math.nan}, {"memory_mb": math.inf}])
def test_a_model_that_does_not_tell_its_metric_is_not_known_to_keep_a_constraint(logged: dict[str, float]) -> None:
    assert Aims((), (MEMORY,)).violations(logged) is None


def test_of_trials_without_number_that_no_other_beats_so_many_are_compared_as_take_a_second() -> None:
    many = 100_000
    assert len(pareto_front([(float(number), float(-number)) for number in range(many)])) == many
    wide = [(float(number), float(-number), 0.0, 0.0) for number in range(many)]
    assert len(pareto_front(wide)) == MOST_COMPARED


_FEW = st.sampled_from([-0.0, 0.0, 1.0, 2.0, 3.0])


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[_FEW] * width), max_size=12)))
def test_the_front_is_what_a_look_at_all_pairs_gives(losses: list[tuple[float, ...]]) -> None:
    def beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        pairs = list(zip(one, other, strict=True))
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

    unbeaten = [place for place, one in enumerate(losses) if not any(beats(other, one) for other in losses)]
    assert pareto_front(losses) == unbeaten
