"""Every row of a page's tables that are "shown by" tests names tests that exist."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = {"docs/explanation/threat-model.md": 30, "docs/reference/what-scripts-may-do.md": 25}
"""The pages that have such tables, with fewer rows than each has."""
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows(page: str) -> list[str]:
    """Return the rows of the tables whose last column names tests."""
    tables = (REPOSITORY / page).read_text(encoding="utf-8").split("| shown by |\n")[1:]
    return [line for table in tables for line in table.partition("\n\n")[0].splitlines()[1:]]


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_are_found(page: str) -> None:
    assert len(rows(page)) > PAGES[page]


@pytest.mark.parametrize("page", PAGES)
def test_every_row_names_a_test_that_exists(page: str) -> None:
    wrong = []
    for row in rows(page):
        found = _TEST.findall(row)
        missing = [name for file, name in found if not _has_test(REPOSITORY / file, name)]
        if not found or missing:
            wrong.append(row)
    assert wrong == []


def _has_test(file: Path, name: str) -> bool:
    return file.exists() and f"def {name}(" in file.read_text(encoding="utf-8")
