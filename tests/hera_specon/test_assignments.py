"""Hyperparameters as they are written on a command line."""

import pytest

from hera_specon import SpaceError, choice, integer, log_uniform, uniform
from hera_specon.assignments import read_assignments
from hera_specon.space import Distribution, Value

TRUTHS = (True, False)


@pytest.mark.parametrize(
    ("values", "meant"),
    [
        ("32,64,128", choice(32, 64, 128)),
        ("0.1, 1e-3", choice(0.1, 0.001)),
        ("relu,tanh", choice("relu", "tanh")),
        ("true,False", choice(*TRUTHS)),
        ("16,auto", choice(16, "auto")),
        ("007,1_000", choice("007", "1_000")),
        ("nan,inf", choice("nan", "inf")),
        ("1.10,3.10", choice(1.1, 3.1)),
        ("3.1,3.10", choice("3.1", "3.10")),
        ("1,1.0", choice("1", "1.0")),
        ("1,true", choice("1", "true")),
        ("-0,0", choice("-0", "0")),
        ("1e10,0x1f", choice("1e10", "0x1f")),
        ("1\u0662,\uff11", choice("1\u0662", "\uff11")),
        ("1e400,-1e400", choice("1e400", "-1e400")),
        (f"{'9' * 5000},1", choice("9" * 5000, 1)),
        ("log:1e-4:1e-1", log_uniform(0.0001, 0.1)),
        ("log:16:1024", integer(16, 1024, log=True)),
        ("0:0.5", uniform(0, 0.5)),
        ("-1.5:1", uniform(-1.5, 1)),
        ("32:256", integer(32, 256)),
        ("32:256:32", integer(32, 256, step=32)),
        ("0:0.5:0.1", uniform(0, 0.5, step=0.1)),
    ],
)
def test_values_are_typed_as_a_person_expects(values: str, meant: Distribution) -> None:
    found = read_assignments([f"x={values}"]).space["x"]
    assert found == meant
    # 1 and True, 1 and 1.0 are equal to Python.
    assert [type(value) for value in (found.values() or ())] == [type(value) for value in (meant.values() or ())]


@pytest.mark.parametrize(
    ("values", "meant"),
    [
        ("[1e-3,1e-2]", choice(0.001, 0.01)),
        ("[1e-3]", choice(0.001)),
        ("[-2:2]", integer(-2, 2)),
        ("choice(a,b)", choice("a", "b")),
        ("range(1,10)", integer(1, 9)),
        ("range(0,10,4)", integer(0, 8, step=4)),
        ("interval(1,5)", uniform(1, 5)),
        ("tag(log, interval(1e-4, 1e-1))", log_uniform(0.0001, 0.1)),
        ("uniform[0:0.5]", uniform(0, 0.5)),
        ("loguniform[1e-4:1e-1]", log_uniform(0.0001, 0.1)),
    ],
)
def test_the_forms_of_guild_ai_and_hydra_are_understood(values: str, meant: Distribution) -> None:
    assert read_assignments([f"x={values}"]).space == {"x": meant}


@pytest.mark.parametrize(
    ("values", "value"),
    [
        ("3", 3),
        ("9" * 400, "9" * 400),
        ("1e-3", 0.001),
        ("true", True),
        ("adam", "adam"),
        ("s3://bucket/x", "s3://bucket/x"),
        ("a=b", "a=b"),
    ],
)
def test_a_single_value_is_the_same_in_all_trials(values: str, value: Value) -> None:
    found = read_assignments(["lr=1,2", f"x={values}"])
    assert (found.fixed, list(found.space)) == ({"x": value}, ["lr"])


def test_texts_are_kept_of_values_that_are_written_differently() -> None:
    found = read_assignments(["lr=0.1,1e-3", "amp=True,false", "n=+5", "x=16,auto"])
    assert found.texts == {"lr": {0.001: "1e-3"}, "amp": {True: "True"}, "n": {5: "+5"}}


def test_names_may_have_dots_and_dashes() -> None:
    assert list(read_assignments(["optim.lr=1,2", "weight-decay=0:1.0"]).space) == ["optim.lr", "weight-decay"]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("lr", "'lr' is not NAME=VALUES"),
        ("lr=", "a value is missing"),
        ("lr=1,,2", "a value is missing in '1,,2'"),
        ("lr=1:2:", "'' in '1:2:' is no number"),
        ("lr=1e-4:1e-l", "'1e-l' in '1e-4:1e-l' is no number"),
        ("lr=1:2:3:4", "no LOW:HIGH or LOW:HIGH:STEP"),
        ("lr=log:0:1.0", "starts above 0"),
        ("lr=log:1", "no LOW and HIGH"),
        ("lr=5:1", "low must be below high"),
        ("lr=1,1", "more than once"),
        ("lr=1e3,1000,1e3", "more than once"),
        ("lr=0:1e400", "'1e400' in '0:1e400' is no number"),
        ("lr=0.1:1:5", "step="),
        ("lr=normal(0,1)", r"there is no normal\(\)"),
        ("lr=range(0,1,0.1)", "range.. takes whole numbers"),
        ('lr=a,"b"', "no string with quotes"),
        ("class=1,2", "not 'class'"),
        ("trial=1,2", "every trial has an input of that name"),
    ],
)
def test_what_makes_no_sense_is_named(word: str, told: str) -> None:
    with pytest.raises(SpaceError, match=told):
        read_assignments([word])


@pytest.mark.parametrize("words", [["lr=1,2", "lr=3,4"], ["lr=1,2", "lr=3"]])
def test_a_name_is_set_once(words: list[str]) -> None:
    with pytest.raises(SpaceError, match="'lr' is set twice"):
        read_assignments(words)


def test_names_that_are_one_in_argo_are_refused_also_where_one_is_fixed() -> None:
    with pytest.raises(SpaceError, match="too alike"):
        read_assignments(["a.b=1,2", "a-b=3"])
