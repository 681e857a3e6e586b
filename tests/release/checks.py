"""Whether a release may be made of the commit that is checked out, and the files that it consists of."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from tests.release.changelog import changelog_problems, section_of
from tests.release.distributions import PROJECTS, BuildError, build, source_problems, wheel_problems
from tests.release.repository import commit_of, uncommitted
from tests.release.sbom import EXTRAS, write_sbom
from tests.release.versions import places, project_version

KEPT: Final = Path("tests", "version_skew", "files")
"""What each version writes, for later ones to read."""
DISTRIBUTIONS: Final = "dist"
NOTES: Final = "notes.md"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what was found wrong with it: nothing, where it may be released."""

    what: str
    problems: tuple[str, ...]


def checks(root: Path, folder: Path, *, tagged: bool) -> Iterator[Check]:
    """Yield one check after the other, and leave the files of the release in ``folder``, which is emptied before.

    Args:
        root: the repository.
        folder: takes the distributions, the bills of materials and the notes of the release.
        tagged: the tag is there already, and has to lead to what is checked out.
    """
    version = project_version(root)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / DISTRIBUTIONS).mkdir(parents=True)
    yield Check("nothing is left uncommitted", tuple(uncommitted(root)))
    yield Check("the tag", tuple(tag_problems(root, f"v{version}", tagged=tagged)))
    yield Check(f"every place names {version}", tuple(version_problems(root, version)))
    yield Check("the changelog", tuple(_changelog(root, version, folder / NOTES)))
    yield Check("CITATION.cff names the day of the release", tuple(citation_problems(root, version)))
    yield Check("what this version keeps is there for later ones", tuple(_kept_problems(root, version)))
    yield Check("wheels and source distributions", tuple(_distributions(folder / DISTRIBUTIONS)))
    for image in EXTRAS:
        yield Check(f"bill of materials of the {image}", tuple(_sbom(image, folder / f"{image}-{version}.cdx.json")))


def tag_problems(root: Path, tag: str, *, tagged: bool) -> Iterator[str]:
    """Yield what is wrong with ``tag``: that it is there already, or with ``tagged``, that it leads elsewhere."""
    found = commit_of(root, f"refs/tags/{tag}")
    if not tagged and found is not None:
        yield f"{tag} is there already: a version is released once"
    if tagged and (found is None or found != commit_of(root, "HEAD")):
        yield f"{tag} does not lead to the commit that is checked out"


def version_problems(root: Path, version: str) -> Iterator[str]:
    """Yield each place that names another version than ``version``, and how to change that."""
    wrong = [place for place in places(root) if place.version != version]
    yield from map(str, wrong)
    if wrong:
        yield f"change them all: python -m tests.release set-version {version}"


def citation_problems(root: Path, version: str) -> Iterator[str]:
    """Yield that CITATION.cff names another day than the changelog does for ``version``."""
    section = section_of((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    day = str(yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8")).get("date-released"))
    if section is not None and day != section.date:
        yield f"date-released is {day}, and the changelog says {section.date}"


def _changelog(root: Path, version: str, notes: Path) -> list[str]:
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if section := section_of(text, version):
        notes.write_text(f"{section.text}\n", encoding="utf-8")
    return changelog_problems(text, version)


def _kept_problems(root: Path, version: str) -> Iterator[str]:
    if not (root / KEPT / version).is_dir():
        yield f"{KEPT / version} is missing: python -m tests.version_skew {KEPT / version}, and commit it"


def _distributions(folder: Path) -> Iterator[str]:
    try:
        built = build(folder)
    except BuildError as error:
        yield str(error)
        return
    for project in PROJECTS:
        name = "hera_specon_hooks-" if project != PROJECTS[0] else "hera_specon-"
        for path in built:
            if path.name.startswith(name):
                yield from (wheel_problems if path.suffix == ".whl" else source_problems)(path, project)


def _sbom(image: str, file: Path) -> Iterator[str]:
    try:
        if write_sbom(image, file) == 0:
            yield f"{file.name} names no package"
    except BuildError as error:
        yield str(error)
