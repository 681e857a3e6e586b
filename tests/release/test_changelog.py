"""A release has a section of the changelog to itself, and leaves nothing unreleased."""

import pytest

from tests.release.changelog import changelog_problems, section_of, sections
from tests.release.repository import ROOT
from tests.release.versions import project_version

OLD = "## [1.1.0] - 2026-01-02\n\n### Fixed\n\n- Something.\n"
NEW = "## [1.2.0] - 2026-03-04\n\n### Added\n\n- Something else.\n\n"


def test_the_newest_section_is_that_of_the_version_that_is_worked_on() -> None:
    found = sections((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert [section.name for section in found[:2]] == ["Unreleased", project_version(ROOT)]


def test_a_section_of_its_own_below_an_empty_unreleased_is_right() -> None:
    text = f"# Changelog\n\n## [Unreleased]\n\n{NEW}{OLD}"
    assert changelog_problems(text, "1.2.0") == []
    section = section_of(text, "1.2.0")
    assert section is not None
    assert section.text == "### Added\n\n- Something else."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"## [Unreleased]\n\n{OLD}", "no section ## [1.2.0]"),
        (f"## [Unreleased]\n\n- Left.\n\n{NEW}{OLD}", "is not empty"),
        (f"{NEW}{OLD}", "the first sections are 1.2.0, 1.1.0"),
        (f"## [Unreleased]\n\n{OLD}\n{NEW}", "the first sections are Unreleased, 1.1.0"),
        (f"## [Unreleased]\n\n{NEW.replace('2026-03-04', '2026-03-34')}{OLD}", "no date such as"),
        (f"## [Unreleased]\n\n{NEW.replace(' - 2026-03-04', '')}{OLD}", "no date such as"),
        (f"## [Unreleased]\n\n## [1.2.0] - 2026-03-04\n\n{OLD}", "says nothing"),
    ],
)
def test_what_keeps_a_changelog_from_a_release_is_told(text: str, shown: str) -> None:
    (problem,) = changelog_problems(text, "1.2.0")
    assert shown in problem
