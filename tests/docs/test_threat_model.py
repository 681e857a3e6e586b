"""Every row of the threat model names a test that exists."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "explanation" / "threat-model.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[str]:
    """Return the rows of the table whose last column names tests."""
    _, _, table = PAGE.read_text(encoding="utf-8").partition("| shown by |\n")
    lines = table.partition("\n\n")[0].splitlines()
    return lines[1:]


def test_the_table_is_found() -> None:
    assert len(rows()) > 30


def test_every_row_names_a_test_that_exists() -> None:
    wrong = []
    for row in rows():
        found = _TEST.findall(row)
        missing = [name for file, name in found if not _has_test(REPOSITORY / file, name)]
        if not found or missing:
            wrong.append(row)
    assert wrong == []


def _has_test(file: Path, name: str) -> bool:
    return file.exists() and f"def {name}(" in file.read_text(encoding="utf-8")
