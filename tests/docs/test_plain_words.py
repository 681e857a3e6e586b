"""The code and the pages are in plain English: words that make a reader look back are not in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

REPOSITORY: Final = Path(__file__).parents[2]
FOLDERS: Final = ("benchmarks", "controllers", "docs", "hera_specon", "manifests", "mlflow_hooks", "tests", "workflows")
NOT_PROSE: Final = ("tests/version_skew/files/", "docs/experiments/data/")
"""What earlier versions wrote, and figures that a program wrote."""
INSTEAD: Final = {
    "of which": "begin another sentence, or say whose, where or that",
    "whoever": "say who: a trial, a process, a reader, the caller",
    "anew": "say again, or once more",
    "for ever": "say what never ends, or never comes",
    "thereby": "say so, or begin another sentence",
}
"""The words, each with what to write instead."""
_WORDS: Final = re.compile(
    r"\b(" + "|".join(words.replace(" ", r"(?:\s+|\s+#\s+|\s*\"\s+f?\")") for words in INSTEAD) + r")\b", re.IGNORECASE
)


def files() -> Iterator[Path]:
    """Yield the files of code and the pages, but for this one, which names the words."""
    for folder in FOLDERS:
        for path in sorted((REPOSITORY / folder).rglob("*")):
            name = path.relative_to(REPOSITORY).as_posix()
            if path.suffix in {".py", ".md"} and path != Path(__file__) and not name.startswith(NOT_PROSE):
                yield path
    yield from sorted(REPOSITORY.glob("*.md"))


def found_in(text: str) -> list[tuple[int, str]]:
    """Return the line and the words of each place, also where a line or a literal ends between two of them."""
    return [(text.count("\n", 0, found.start()) + 1, found[0]) for found in _WORDS.finditer(text)]


def test_the_code_and_the_pages_are_in_plain_words() -> None:
    places = [
        f"{path.relative_to(REPOSITORY)}:{line}: {words!r}"
        for path in files()
        for line, words in found_in(path.read_text(encoding="utf-8"))
    ]
    assert places == [], f"write instead: {INSTEAD}"


def test_the_files_are_found() -> None:
    names = {path.relative_to(REPOSITORY).as_posix() for path in files()}
    assert {"README.md", "docs/explanation/concepts.md", "controllers/core/model.py", "tests/conftest.py"} <= names


@pytest.mark.parametrize(
    "text",
    [
        "trials, of which two wait",
        "Whoever asks",
        "ten trials, of\nwhich two wait",
        "# ten trials, of\n    # which two wait",
        '"ten trials, of "\n    f"which two wait"',
        "it starts anew.",
        "it waits for ever",
        "and thereby ends",
    ],
)
def test_such_words_are_found_also_where_a_line_ends_between_them(text: str) -> None:
    assert len(found_in(text)) == 1


@pytest.mark.parametrize("text", ["forever", "renewed", "of the sweep, which ends", "on which node"])
def test_other_words_are_not(text: str) -> None:
    assert found_in(text) == []
