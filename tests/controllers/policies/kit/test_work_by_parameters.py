"""The regression: worked examples, what must not matter, and what hostile parameters can do."""

import math
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.model import Parameters
from controllers.core.parameters import bound_parameters
from controllers.policies.kit.work_by_parameters import (
    MOST_COLUMNS,
    MOST_EXAMPLES,
    Example,
    Law,
    _columns,
    law_of,
    left_beyond,
    log_of,
)
from tests.property_examples import examples


def example(number: float, **parameters: float | str) -> Example:
    return bound_parameters(parameters), log_of(number)


def law(*examples: Example) -> Law:
    found = law_of(examples)
    assert found is not None
    return found


def told(by: Law, **parameters: float | str) -> float:
    return math.exp(by.of(bound_parameters(parameters))[0])


def test_without_examples_there_is_no_law() -> None:
    assert law_of([]) is None


def test_steps_that_a_parameter_gives_are_found_exactly_enough_and_beyond_what_was_seen() -> None:
    by = law(
        *(example(epochs * 100, epochs=epochs, lr=lr) for epochs, lr in ((2, 0.1), (4, 0.01), (8, 0.03), (16, 0.2)))
    )
    assert [term.column.name for term in by.terms] == ["epochs"]
    assert told(by, epochs=8, lr=0.5) == pytest.approx(800, rel=0.02)
    assert told(by, epochs=32, lr=0.5) == pytest.approx(3200, rel=0.06)
    assert by.spread < 0.1


def test_a_cost_that_follows_from_width_and_batch_is_found_among_others() -> None:
    chance = Random(1)  # noqa: S311 - repeatable
    examples = [
        example(width**1.5 / batch**0.5 * math.exp(chance.gauss(0, 0.05)), width=width, batch=batch, lr=chance.random())
        for width, batch in product((64, 128, 256), (16, 32, 64))
    ]
    by = law(*examples)
    assert [term.column.name for term in by.terms] == ["width", "batch"]
    assert told(by, width=512, batch=32, lr=0.5) == pytest.approx(512**1.5 / 32**0.5, rel=0.15)
    assert by.spread < 0.15


def test_a_text_counts_by_whether_it_is_there() -> None:
    by = law(*(example(30 if kind == "cnn" else 10, kind=kind) for kind in ("cnn", "mlp", "rnn") * 3))
    assert [(term.column.name, term.column.text) for term in by.terms] == [("kind", "cnn")]
    assert told(by, kind="cnn") == pytest.approx(30, rel=0.05)
    assert told(by, kind="mlp") == told(by, kind="never seen") == pytest.approx(10, rel=0.05)


def test_a_number_that_may_be_zero_counts_as_it_is() -> None:
    by = law(*(example(math.exp(depth), depth=depth) for depth in range(6)))
    assert told(by, depth=3) == pytest.approx(math.exp(3), rel=0.1)


def test_parameters_that_explain_nothing_leave_the_mean_and_its_spread() -> None:
    chance = Random(2)  # noqa: S311 - repeatable
    numbers = [math.exp(chance.gauss(3, 1)) for _ in range(12)]
    by = law(*(example(number, a=chance.random(), b=chance.choice("xyz")) for number in numbers))
    assert by.terms == ()
    assert told(by, a=0.5, b="x") == pytest.approx(math.prod(numbers) ** (1 / 12))
    assert by.spread == pytest.approx(1, rel=0.4)


def test_worthless_parameters_are_seldom_taken_for_a_law() -> None:
    chance = Random(3)  # noqa: S311 - repeatable
    found = 0
    for _ in range(200):
        examples = [
            example(math.exp(chance.gauss(0, 1)), **{name: chance.random() for name in "abcde"}) for _ in range(7)
        ]
        found += bool(law(*examples).terms)
    assert found <= 0.06 * 200


def test_three_trials_are_too_few_for_a_law() -> None:
    assert law(*(example(width, width=width) for width in (1, 2, 4))).terms == ()
    assert law(*(example(width, width=width) for width in (1, 2, 4, 8))).terms != ()


def test_a_guess_far_from_all_examples_is_bounded_and_less_sure() -> None:
    by = law(*(example(width**1.5, width=width) for width in (10, 20, 30, 40, 50)))
    (near, sure), (far, unsure) = by.of((("width", 30.0),)), by.of((("width", 1e300),))
    assert near < far <= by.high
    assert sure < unsure
    assert by.of((("width", -5.0),))[0] == by.of(())[0] == by.of((("width", "wide"),))[0] == by.mean


def test_the_standard_deviation_told_is_that_of_the_errors() -> None:
    chance = Random(4)  # noqa: S311 - repeatable
    errors = []
    for _ in range(100):
        rows = [(chance.choice((64, 128, 256, 512)), math.exp(chance.gauss(0, 0.2))) for _ in range(13)]
        examples = [example(width**1.5 * noise, width=width, lr=chance.random()) for width, noise in rows]
        guess, spread = law(*examples[:12]).of(examples[12][0])
        errors.append(abs(guess - examples[12][1]) / spread)
    assert sorted(errors)[89] == pytest.approx(1.645, rel=0.35)


NUMBERS = st.floats(1e-3, 1e6)
ROWS = st.lists(
    st.tuples(
        NUMBERS, st.fixed_dictionaries({}, optional={"a": NUMBERS, "b": st.floats(-5, 5), "c": st.sampled_from("xy")})
    ),
    min_size=2,
    max_size=12,
)


@given(ROWS, st.randoms())
def test_the_order_of_the_trials_changes_nothing(
    rows: list[tuple[float, dict[str, float | str]]], chance: Random
) -> None:
    examples = [example(number, **parameters) for number, parameters in rows]
    shuffled = list(examples)
    chance.shuffle(shuffled)
    assert law_of(examples) == law_of(shuffled)


@given(ROWS, st.floats(0.01, 100))
def test_the_unit_of_a_parameter_changes_nothing(rows: list[tuple[float, dict[str, float | str]]], unit: float) -> None:
    examples = [example(number, **parameters) for number, parameters in rows]
    scaled = [
        example(
            number, **{name: value if isinstance(value, str) else value * unit for name, value in parameters.items()}
        )
        for number, parameters in rows
    ]
    for (before, _), (after, _) in zip(examples, scaled, strict=True):
        assert law(*scaled).of(after) == pytest.approx(law(*examples).of(before), rel=1e-6, abs=1e-6)


@given(ROWS, st.floats(-1e9, 1e9), st.text(max_size=5))
def test_parameters_that_are_the_same_everywhere_change_nothing(
    rows: list[tuple[float, dict[str, float | str]]], number: float, text: str
) -> None:
    plain = [example(value, **parameters) for value, parameters in rows]
    more = [example(value, **parameters, seed=number, task=text) for value, parameters in rows]
    for (before, _), (after, _) in zip(plain, more, strict=True):
        assert law(*plain).of(before) == law(*more).of(after)


HOSTILE: st.SearchStrategy[Parameters] = st.dictionaries(
    st.sampled_from("abcd"),
    st.floats() | st.sampled_from([0.0, 1e300, -1e300, 5e-324, 1e-300]) | st.text(max_size=3),
    max_size=4,
).map(bound_parameters)


@given(
    st.lists(st.tuples(HOSTILE, st.floats(0, allow_nan=False)), min_size=1, max_size=10), HOSTILE, st.floats(0, 1e12)
)
def test_whatever_trials_say_a_guess_is_finite(
    rows: list[tuple[Parameters, float]], of: Parameters, done: float
) -> None:
    by = law(*((parameters, log_of(number)) for parameters, number in rows))
    guess, spread = by.of(of)
    assert math.isfinite(guess)
    assert 0 < spread <= 3
    left, unsure = left_beyond(guess, spread, done)
    assert 0 < left < math.inf
    assert 0 < unsure < math.inf


def test_of_very_many_trials_and_parameters_a_bounded_number_counts() -> None:
    chance = Random(5)  # noqa: S311 - repeatable
    rows = [
        bound_parameters(
            {f"p{number:02}": chance.random() if number % 2 else f"text {chance.random()}" for number in range(40)}
        )
        for _ in range(500)
    ]
    assert len(list(_columns([dict(row) for row in rows]))) == MOST_COLUMNS
    examples = [(row, chance.random()) for row in rows]
    assert law_of(examples) == law_of(examples[-MOST_EXAMPLES:])


@settings(max_examples=examples(200))
@given(st.floats(-20, 20), st.floats(0.02, 3), st.floats(0.0, 1e9))
def test_the_longer_a_trial_has_run_beyond_its_guess_the_more_it_has_left(
    total: float, spread: float, done: float
) -> None:
    left, _ = left_beyond(total, spread, done)
    more, _ = left_beyond(total, spread, done * 2 + 10 * math.exp(total))
    assert left > 0
    if done > math.exp(total) * math.exp(3 * spread):
        assert more >= left


def test_what_is_left_is_the_median_of_what_is_greater() -> None:
    chance = Random(6)  # noqa: S311 - repeatable
    totals = [math.exp(chance.gauss(5, 0.5)) for _ in range(100_000)]
    for done in (0.0, 50.0, 150.0, 300.0, 500.0):
        longer = sorted(total - done for total in totals if total > done)
        left, spread = left_beyond(5.0, 0.5, done)
        assert left == pytest.approx(longer[len(longer) // 2], rel=0.05)
        assert spread == pytest.approx(math.log(longer[int(len(longer) * 0.8413)] / left), rel=0.1)
