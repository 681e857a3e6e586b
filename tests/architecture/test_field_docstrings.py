"""Each field of what policies see, and of what a trial came to, says below itself what it is and in which unit."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

REPOSITORY: Final = Path(__file__).parents[2]
MODEL: Final = "controllers/core/model.py"
DESCRIBED: Final = {
    **dict.fromkeys(("Sample", "Progress", "Goals", "Trial", "Node", "NodeKind", "Snapshot"), MODEL),
    "TrialResult": "controllers/core/results.py",
}
SECONDS: Final = ("_s", "_at", "at", "now", "cpu_wait")
"""How the names of fields end that hold a time."""


def fields_of(name: str) -> Iterator[tuple[str, str]]:
    """Yield each public field of a class with the docstring below it, empty where there is none."""
    tree = ast.parse((REPOSITORY / DESCRIBED[name]).read_text(encoding="utf-8"))
    (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
            yield node.target.id, described(following)


def described(node: ast.stmt | None) -> str:
    """Return the text of a docstring, empty where ``node`` is none."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return ""


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_field_is_described_below_itself(name: str) -> None:
    fields = dict(fields_of(name))
    assert len(fields) >= 3
    assert [field for field, text in fields.items() if not text] == []


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_time_says_that_it_is_in_seconds_and_every_memory_in_bytes(name: str) -> None:
    fields = dict(fields_of(name))
    times = {field for field in fields if field.endswith(SECONDS)}
    assert {field for field in times if "seconds" not in fields[field].lower()} == set()
    assert "memory" not in fields or "bytes" in fields["memory"]
