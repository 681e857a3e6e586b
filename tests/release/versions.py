"""The places where the version of the project stands: that of pyproject.toml counts, and all others follow it.

An image's tag has to be a literal where people copy it from: examples, pages, manifests. So there are many places, and
one command that changes them all.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from tests.release.repository import tracked_files

_VERSION: Final = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?(?:\.dev\d+)?"
_ANYWHERE: Final = re.compile(
    rf'(?P<before>/(?:controller|trainer):|hera-specon-hooks==|org\.opencontainers\.image\.version=")'
    rf"(?P<version>{_VERSION})"
)
_IN_FILES_NAMED: Final = {
    "pyproject.toml": re.compile(rf'^(?P<before>version = ")(?P<version>{_VERSION})', re.MULTILINE),
    "Chart.yaml": re.compile(rf"^(?P<before>(?:version|appVersion): )(?P<version>{_VERSION})", re.MULTILINE),
    "CITATION.cff": re.compile(rf"^(?P<before>version: )(?P<version>{_VERSION})", re.MULTILINE),
}
_HISTORY: Final = ("CHANGELOG.md", "tests/version_skew/files/")
"""What tells of earlier versions keeps their numbers."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file that names a version; ``file`` is relative to the repository, lines count from 1."""

    file: PurePosixPath
    line: int
    version: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.version}"


def project_version(root: Path) -> str:
    """Return the version that pyproject.toml in ``root`` names."""
    version: str = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return version


def places(root: Path) -> Iterator[Place]:
    """Yield each place of the repository in ``root`` that names the project's version, in the order of the files."""
    for file, text in _texts(root):
        for pattern in _patterns(file):
            for found in pattern.finditer(text):
                yield Place(file, text.count("\n", 0, found.start()) + 1, found["version"])


def set_version(root: Path, version: str) -> list[PurePosixPath]:
    """Write ``version`` at each place, and return the files that changed.

    Raises:
        ValueError: it is no version of the form 1.2.3, 1.2.3rc1 or 1.2.3.dev1.
    """
    if not re.fullmatch(_VERSION, version):
        message = f"{version!r} is no version such as 1.2.3, 1.2.3rc1 or 1.2.3.dev1"
        raise ValueError(message)
    changed = []
    for file, text in _texts(root):
        new = text
        for pattern in _patterns(file):
            new = pattern.sub(rf"\g<before>{version}", new)
        if new != text:
            (root / file).write_bytes(new.encode())
            changed.append(file)
    return changed


def _texts(root: Path) -> Iterator[tuple[PurePosixPath, str]]:
    for file in tracked_files(root):
        if not str(file).startswith(_HISTORY):
            try:
                yield file, (root / file).read_bytes().decode()
            except UnicodeDecodeError:  # a picture, or weights
                continue


def _patterns(file: PurePosixPath) -> list[re.Pattern[str]]:
    return [_ANYWHERE, *([_IN_FILES_NAMED[file.name]] if file.name in _IN_FILES_NAMED else [])]
