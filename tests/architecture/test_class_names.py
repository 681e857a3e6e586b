"""One name for one thing: no two public classes have the same name, wherever they are."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("controllers", "hera_specon", "mlflow_hooks", "workflows")
ONE_ROLE: Final = frozenset({"TrialCallback"})
"""The callback of each training library stands in that library's module, and plays one role: a script uses one only."""


def public_classes(source: str) -> Iterator[str]:
    """Yield the names of the public classes that ``source`` defines, at whatever depth."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def defined_twice(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each name of public classes of several, with the files of these."""
    files: dict[str, list[str]] = defaultdict(list)
    for file, source in sources.items():
        for name in public_classes(source):
            files[name].append(file)
    return {name: where for name, where in files.items() if len(where) > 1}


def test_no_public_class_has_the_name_of_another() -> None:
    sources = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    assert "controllers/core/model.py" in sources
    twice = defined_twice(sources)
    assert twice.keys() == ONE_ROLE, twice


def test_a_name_that_two_files_or_one_give_twice_is_found() -> None:
    one, other = "class Trial: ...\nclass _Own: ...\n", "def f() -> None:\n    class Trial: ...\nclass _Own: ...\n"
    assert defined_twice({"a.py": one, "b.py": other}) == {"Trial": ["a.py", "b.py"]}
    assert defined_twice({"a.py": one + one}) == {"Trial": ["a.py", "a.py"]}
