"""The one grammar of printed numbers: all of a text is a number, or it is none."""

import math
import time

import pytest

from mlflow_hooks.printed.numbers import number, whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-1.5E-03", -0.0015),
        ("\u22120.5", -0.5),
        ("1,234.5", 1234.5),
        ("12,345,678.9", 12345678.9),
        ("1.0D-3", 0.001),
        ("1.5f-3", 0.0015),
        ("93.1%", 93.1),
        ("0.5.", 0.5),
        ("'0.5',", 0.5),
        ("[23.]", 23.0),
        ("0.31*", 0.31),
        ("0.31+0.01", 0.31),
        ("0.5\u00b10.1", 0.5),
        ("tensor(0.9)", 0.9),
        ("tensor(0.9, grad_fn=<NllLossBackward0>)", 0.9),
        ("tensor(0.9,", 0.9),
        ("np.float64(0.9)", 0.9),
        ("Array(0.9, dtype=float32)", 0.9),
        ("Some(0.9)", 0.9),
        ("Inf", math.inf),
        ("+Inf", math.inf),
        ("-Infinity", -math.inf),
        ("Inf32", math.inf),
        ("1.#INF00", math.inf),
        ("-\u221e", -math.inf),
    ],
)
def test_numbers_are_read_as_languages_print_them(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "NAN", "nan.", "NaN32", "-1.#IND"])
def test_what_is_not_a_number_is_nan(text: str) -> None:
    assert math.isnan(number(text) or 0.0)


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", ".", "NA", "None", "oops", "0,81", "1,5e-3", "1.234,5", "1,234", "0,012.5", "1_000", "0x1F", "0.9s"),
        *("3ms/step", "1.2.3", "2026-01-01", "00:12", "10.0.0.1", "9901/10000", "1e5f3a", "deadbeef", "0.5->0.4"),
        *("1 2", "array([0.1, 0.2])", "max(0.5, 0.2)", "\u0661\u0662", "1e", "--1", "1" * 500),
    ],
)
def test_what_is_not_wholly_understood_is_no_number(text: str) -> None:
    assert number(text) is None


@pytest.mark.parametrize(
    ("text", "step"), [("3", 3), ("00012", 12), ("1.0", 1), ("1,200", 1200), ("3:", 3), ("9007199254740993", 2**53 + 1)]
)
def test_steps_are_whole_numbers(text: str, step: int) -> None:
    assert whole(text) == step


@pytest.mark.parametrize("text", ["-1", "0.5", "nan", "inf", "1e30", str(2**63), "0,5", "12,34", "x", ""])
def test_what_mlflow_keeps_no_step_of_is_none(text: str) -> None:
    assert whole(text) is None


@pytest.mark.parametrize("text", ["1" * 100_000, "1," * 50_000, "tensor(" * 20_000, "[" * 100_000, "1+" * 50_000])
def test_a_text_of_any_length_takes_no_time(text: str) -> None:
    began = time.process_time()
    assert number(text) is None
    assert time.process_time() - began < 0.2
