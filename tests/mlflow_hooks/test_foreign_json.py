"""JSON and YAML that others write are parsed as deep as is counted, and no deeper, in every version of Python."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from controllers.core import foreign_yaml
from mlflow_hooks import foreign_json
from mlflow_hooks.bounds import MOST_DEPTH
from mlflow_hooks.foreign_json import TooDeepError

KINDS = [("[", "]"), ('{"a": ', "}"), ('{"[": ', "}")]


def nested(depth: int, kind: tuple[str, str]) -> str:
    opens, closes = kind
    return opens * depth + "1" + closes * depth


@pytest.mark.parametrize("kind", KINDS)
def test_json_is_as_deep_as_may_be_and_no_deeper(kind: tuple[str, str]) -> None:
    text = nested(MOST_DEPTH, kind)
    assert foreign_json.parsed(text) == foreign_json.parsed(text.encode()) == json.loads(text)
    for depth in (MOST_DEPTH + 1, 1_500, 9_000, 200_000):
        with pytest.raises(TooDeepError):
            foreign_json.parsed(nested(depth, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_yaml_is_as_deep_as_may_be_and_no_deeper(kind: tuple[str, str]) -> None:
    text = nested(MOST_DEPTH, kind)
    assert foreign_yaml.parsed(text) == json.loads(text)
    for depth in (MOST_DEPTH + 1, 1_500, 9_000):
        with pytest.raises(yaml.YAMLError, match="nested more than"):
            foreign_yaml.parsed(nested(depth, kind))


def test_yaml_in_lines_is_as_deep_as_may_be_and_no_deeper() -> None:
    def indented(depth: int) -> str:
        return "\n".join(" " * level + "a:" for level in range(depth))

    assert foreign_yaml.parsed(indented(MOST_DEPTH))
    with pytest.raises(yaml.YAMLError):
        foreign_yaml.parsed(indented(MOST_DEPTH + 1))


def test_marks_within_strings_are_no_levels() -> None:
    odd = ['"' + "[{" * 500, "\\" * 7 + "[" * 500, "é☃\U0001f600" + "{" * 200]
    assert foreign_json.parsed(json.dumps(odd)) == odd
    assert foreign_json.parsed(json.dumps(odd, ensure_ascii=False)) == odd


@pytest.mark.parametrize("text", ["[" * 1_000 + '"', '"' + '\\"' * 100_000, "]" * 1_000, "[" * 101 + '"\\'])
def test_what_is_no_json_is_refused_as_such(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        foreign_json.parsed(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def depth_of(value: Any) -> int:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@given(VALUES, st.integers(0, 6), st.booleans())
def test_the_depth_that_is_counted_is_the_true_one(value: Any, most: int, plain: bool) -> None:  # noqa: ANN401, FBT001
    text = json.dumps(value, ensure_ascii=plain)
    if depth_of(value) > most:
        with pytest.raises(TooDeepError):
            foreign_json.parsed(text, most)
    else:
        assert foreign_json.parsed(text, most) == value
