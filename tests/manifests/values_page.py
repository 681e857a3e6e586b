"""The table of docs/reference/helm-values.md, made of manifests/values.yaml and the comments in it.

``python -m tests.manifests.values_page`` writes it again, below its line ``<!-- table -->``.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from tests.manifests.kustomize import MANIFESTS

PAGE: Final = MANIFESTS.parent / "docs" / "reference" / "helm-values.md"
_MARKED: Final = re.compile(r"<!-- table -->\n(?:\n|\|.*\n)*")
_KEY: Final = re.compile(r"^(?P<indent> *)(?P<name>\w+):(?P<value>.*)$")


@dataclass(frozen=True)
class Value:
    """A value of the chart.

    Attributes:
        name: with dots, as ``--set`` takes it.
        default: what the chart takes where nothing is said.
        meaning: the comment above it.
    """

    name: str
    default: Any
    meaning: str


def values() -> Iterator[Value]:
    """Yield the values of values.yaml in its order; a map that has no values of its own counts as one."""
    path: list[str] = []
    meaning = ""
    for line in (MANIFESTS / "values.yaml").read_text(encoding="utf-8").splitlines():
        found = _KEY.match(line)
        if found:
            path = [*path[: len(found["indent"]) // 2], found["name"]]
            if found["value"]:
                yield Value(".".join(path), yaml.safe_load(found["value"]), meaning)
            meaning = ""
        else:
            meaning = line.strip().removeprefix("# ")


def with_table(page: str) -> str:
    """Return ``page`` with the table as it should be."""
    rows = [f"| `{one.name}` | {_written(one.default)} | {one.meaning} |" for one in values()]
    made = "\n".join(("| value | default | meaning |", "|---|---|---|", *rows))
    return _MARKED.sub(lambda _: f"<!-- table -->\n\n{made}\n\n", page)


def _written(default: object) -> str:
    if default in (None, ""):
        return "empty"
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
