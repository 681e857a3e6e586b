"""The wheels and source distributions of a release: how they are built, and what must be in them."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any, Final

from tests.release.repository import ROOT, tracked_files

PROJECTS: Final = (ROOT, ROOT / "packages" / "hooks")
"""The folder of each distribution."""
MARKER: Final = "py.typed"
"""Tells type checkers to read the annotations of a package (PEP 561)."""


class BuildError(Exception):
    """A program that a release needs has failed; the message has what it printed."""


def build(folder: Path) -> list[Path]:
    """Return the source distributions and, made of these, the wheels of all projects, built into ``folder``.

    Raises:
        BuildError: one cannot be built.
    """
    for project in PROJECTS:
        call_uv("build", "--quiet", "--out-dir", str(folder), str(project))
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def call_uv(*words: str, given: str = "") -> str:
    """Return what uv prints when it is called with ``words``, and ``given`` as its standard input.

    Raises:
        BuildError: it fails.
    """
    uv = str(Path(sys.executable).with_name("uv"))
    done = subprocess.run(
        [uv, *words], cwd=ROOT, env=os.environ, input=given, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        message = f"uv {' '.join(words)}: {done.stdout}{done.stderr}".strip()
        raise BuildError(message)
    return done.stdout


def settings(project: Path) -> dict[str, Any]:
    """Return pyproject.toml of a distribution."""
    return tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))


def packages(project: Path) -> list[str]:
    """Return the packages that a distribution is made of."""
    found: list[str] = settings(project)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return found


def wheel_problems(wheel: Path, project: Path) -> list[str]:
    """Return what is missing in the wheel of the distribution in the folder ``project``, and what is too much there."""
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        about = {name.partition("/")[2]: name for name in names if ".dist-info/" in name}
        metadata = message_from_bytes(file.read(about["METADATA"]))
    files = names - set(about.values())
    tops = set(packages(project))
    # Those of the hooks are reached by a link, which git does not follow.
    wanted = {str(path) for path in tracked_files(ROOT) if path.parts[0] in tops}
    problems = [
        *_told(wheel, "lacks", wanted - files),
        *_told(wheel, "lacks", {f"{top}/{MARKER}" for top in tops} - files - wanted),
        *_told(wheel, "has, and the repository has not:", files - wanted),
        *(f"{wheel.name} {told}" for told in _metadata_problems(metadata, settings(project)["project"])),
    ]
    if "licenses/LICENSE" not in about:
        problems.append(f"{wheel.name} lacks the licence")
    return problems


def source_problems(archive: Path, project: Path) -> list[str]:
    """Return what is missing in the source distribution of the folder ``project``."""
    with tarfile.open(archive) as file:
        names = {member.name.partition("/")[2] for member in file.getmembers() if member.isfile()}
    tops = set(packages(project))
    wanted = {str(path) for path in tracked_files(ROOT) if path.parts[0] in tops}
    return _told(archive, "lacks", (wanted | {"pyproject.toml", "README.md", "LICENSE"}) - names)


def _metadata_problems(metadata: Message, wanted: dict[str, Any]) -> list[str]:
    addresses = {line.partition(", ")[2] for line in metadata.get_all("Project-URL", [])}
    problems = []
    if metadata["Version"] != wanted["version"]:
        problems.append(f"is of version {metadata['Version']}")
    if missing := set(wanted["urls"].values()) - addresses:
        problems.append(f"does not name {', '.join(sorted(missing))}")
    if not (metadata.get_payload() or ""):
        problems.append("lacks the README")
    return problems


def _told(archive: Path, what: str, names: Iterable[str]) -> list[str]:
    return [f"{archive.name} {what} {name}" for name in sorted(names)]
