"""What the changelog says of a version."""

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

UNRELEASED: Final = "Unreleased"
_HEADING: Final = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\S+))?[ ]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the changelog: ``date`` as it stands there, empty where it has none; ``text`` without heading."""

    name: str
    date: str
    text: str


def sections(changelog: str) -> list[Section]:
    """Return the sections of a changelog, the newest first, as they stand there."""
    headings = list(_HEADING.finditer(changelog))
    ends = [heading.start() for heading in headings[1:]] + [len(changelog)]
    return [
        Section(heading["name"], heading["date"] or "", changelog[heading.end() : end].strip())
        for heading, end in zip(headings, ends, strict=True)
    ]


def section_of(changelog: str, version: str) -> Section | None:
    """Return the section of ``version``, None where there is none."""
    return next((section for section in sections(changelog) if section.name == version), None)


def changelog_problems(changelog: str, version: str) -> list[str]:
    """Return what keeps a changelog from being that of a release of ``version``."""
    names = [section.name for section in sections(changelog)]
    newest = section_of(changelog, version)
    if newest is None:
        return [f"no section ## [{version}] - DATE: cut it out of ## [{UNRELEASED}]"]
    problems = []
    if names[:2] != [UNRELEASED, version]:
        problems.append(f"the first sections are {', '.join(names[:2])}, not {UNRELEASED}, {version}")
    if any(section.name == UNRELEASED and section.text for section in sections(changelog)):
        problems.append(f"## [{UNRELEASED}] is not empty: move what is in it into ## [{version}]")
    if not newest.text:
        problems.append(f"the section of {version} says nothing")
    if not _is_day(newest.date):
        problems.append(f"the section of {version} has no date such as 2026-11-26: {newest.date!r}")
    return problems


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
