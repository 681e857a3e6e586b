"""Every path, module and relative link that a page names exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / ".github").glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])
OURS = "benchmarks|controllers|docs|hera_specon|manifests|mlflow_hooks|tests|workflows"

_PATH = re.compile(rf"(?<![\w./-])(?:{OURS})/[\w./-]*\w/?")
# Argo's resource is called like a package of ours.
_MODULE = re.compile(rf"(?<![\w./-])(?!workflows\.argoproj\.io)(?:{OURS})(?:\.[A-Za-z_]\w*)+")
_LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s]*)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def test_the_pages_are_found() -> None:
    assert REPOSITORY / "README.md" in PAGES
    assert REPOSITORY / "docs" / "reference" / "policies.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_every_path_and_link_in_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert list(missing_paths(text)) == []
    assert list(missing_modules(text)) == []
    assert list(broken_links(page, text)) == []


def test_every_page_is_in_the_index() -> None:
    index = REPOSITORY / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text(encoding="utf-8"))}
    assert [page.name for page in PAGES if page.is_relative_to(index.parent) and page not in {index, *linked}] == []


def test_what_does_not_exist_is_found() -> None:
    page = REPOSITORY / "README.md"
    assert list(missing_paths("see `controllers/engine.py`, docs/gone/ and docs/how-to/.")) == [
        "controllers/engine.py",
        "docs/gone/",
    ]
    assert list(missing_modules("`controllers.engine.Engine` and `python -m benchmarks.experiments`")) == [
        "controllers.engine.Engine"
    ]
    text = "# A title\n[a](docs/gone.md) [b](#a-title) [c](#none) [d](docs/reference/policies.md#growth)"
    assert list(broken_links(page, text)) == ["docs/gone.md", "#none"]


def missing_paths(text: str) -> Iterator[str]:
    """Yield the paths of ours that do not exist; NAME in one stands for a name that the reader chooses."""
    for found in _PATH.findall(text):
        if "NAME" not in found and not (REPOSITORY / found).exists():
            yield found


def missing_modules(text: str) -> Iterator[str]:
    """Yield the dotted names of ours whose module does not exist, or does not mention the name after it."""
    for found in _MODULE.findall(text):
        if not _named(found.split(".")):
            yield found


def _named(parts: list[str]) -> bool:
    place = REPOSITORY
    for number, part in enumerate(parts):
        if (place / part).is_dir():
            place /= part
            continue
        source = place / f"{part}.py"
        rest = parts[number + 1 :]
        if not source.exists():
            source, rest = place / "__init__.py", parts[number:]
        return source.exists() and all(re.search(rf"\b{name}\b", source.read_text(encoding="utf-8")) for name in rest)
    return True


def broken_links(page: Path, text: str) -> Iterator[str]:
    """Yield the relative links that lead to no file, or to no heading of a page."""
    for link in _LINK.findall(text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield link
        elif anchor and target.suffix == ".md":
            linked = target.read_text(encoding="utf-8") if path else text
            if anchor not in {_anchor(heading) for heading in _HEADING.findall(_CODE_BLOCK.sub("", linked))}:
                yield link


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
