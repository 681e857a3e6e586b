"""What a page says to install installs: each line is typed with plain pip, which knows no setting of uv.

No index is asked. In its place stands a folder with an empty wheel for everything that our packages need, but for
themselves; so a line that counts on an index that has them fails, and nobody waits for PyTorch.
"""

import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.release.repository import ROOT, tracked_files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RELEASED: Final = Path("packages/hooks/README.md")
"""The page that an index shows; all others speak of a copy of the repository."""
DOCTOR: Final = Path("hera_specon/doctor/checks/tryout.py")
_ON_A_PAGE: Final = re.compile(r"(?<=[`\n ])pip install ([^`\n#]+)")
_IN_ADVICE: Final = re.compile(r"\"pip install ([^\"]+)\"")
_EXPORT: Final = re.compile(r"^export [^\n]*$", re.MULTILINE)
_WORD: Final = re.compile(r"(?<= )[a-z][a-z-]*(?= |$)")
_IN_AN_IMAGE: Final = "/tmp/hera-specon"  # noqa: S108 - as the page has it


@dataclass(frozen=True)
class InstallLine:
    """A line of ``page``, with the variables that the same page sets."""

    page: Path
    exports: tuple[str, ...]
    words: str


def install_lines() -> Iterator[InstallLine]:
    """Yield each line that installs something of ours."""
    for page in map(Path, tracked_files(ROOT)):
        if page == DOCTOR or (page.suffix == ".md" and page.parts[0] in {"README.md", "docs", "packages"}):
            text = (ROOT / page).read_text(encoding="utf-8")
            for words in (_IN_ADVICE if page == DOCTOR else _ON_A_PAGE).findall(text):
                if "hera" in words.lower() and "decisions" not in page.parts:
                    yield InstallLine(page, tuple(_EXPORT.findall(text)), words.strip())


LINES: Final = tuple(install_lines())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a copy of the repository, wheels of others and of ours, and an environment that can build."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "hera-specon").symlink_to(ROOT)
    venv.create(folder / "venv", with_pip=True)
    named = {word for line in LINES for word in _WORD.findall(f" {line.words}")}
    (folder / "others").mkdir()
    (folder / "ours").mkdir()
    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run([*pip, "--python", folder / "venv" / "bin" / "python", "install", "hatchling"], check=True)
    for name, version in needed(named).items():
        write_empty_wheel(folder / "others", name, version)
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", folder / "ours", ROOT / "packages/hooks", ROOT], check=True
    )
    return folder


def needed(named: Iterable[str]) -> dict[str, str]:
    """Return the packages that ours need, and those ``named`` beside them, by name with a version that fits."""
    pinned = dict(
        re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    )
    found = dict.fromkeys(named, "1")
    for folder in (ROOT, ROOT / "packages" / "hooks"):
        about: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for text in (
            *about["dependencies"],
            *(one for extra in about["optional-dependencies"].values() for one in extra),
        ):
            requirement = Requirement(text)
            least = next((one.version for one in requirement.specifier if one.operator == ">="), "1")
            found[canonicalize_name(requirement.name)] = pinned.get(requirement.name, least)
    return {name: version for name, version in found.items() if not name.startswith("hera-specon")}


def write_empty_wheel(folder: Path, name: str, version: str) -> None:
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for file, text in {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }.items():
            wheel.writestr(f"{stem}.dist-info/{file}", text)


def typed(home: Path, line: InstallLine, folders: Iterable[str]) -> str:
    """Return what pip would install, as it says at the end, where somebody types ``line`` in a fresh environment."""
    options = " ".join(f"--find-links {home / folder}" for folder in folders)
    words = line.words.replace(_IN_AN_IMAGE, str(home / "hera-specon"))
    script = "\n".join([*line.exports, f"pip install --dry-run --no-index --no-build-isolation {options} {words}"])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON", "HERA_"))}
    env = {**kept, "HOME": str(home), "PATH": f"{home / 'venv' / 'bin'}:{os.environ['PATH']}"}
    bash = ("/bin/bash", "-euc", script)
    done = subprocess.run(bash, cwd=home, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.page.stem}: {line.words}")
def test_a_line_of_a_page_installs_as_it_stands(home: Path, line: InstallLine) -> None:
    told = typed(home, line, ("others", "ours") if line.page == RELEASED else ("others",))
    assert "hera-specon-hooks-" in told


def test_every_page_that_says_how_to_install_is_typed() -> None:
    pages = {str(line.page) for line in LINES}
    assert {"docs/tutorial/first-sweep.md", "docs/how-to/recipes/hydra.md", str(RELEASED), str(DOCTOR)} <= pages
    assert len(LINES) > 12


@pytest.mark.parametrize("words", ["hera-specon", "'hera-specon[pytorch]'", "'hera-specon-hooks[stores]'"])
def test_a_release_on_an_index_needs_no_more_than_its_name(home: Path, words: str) -> None:
    told = typed(home, InstallLine(RELEASED, (), words), ("others", "ours"))
    assert "hera-specon-hooks-" in told
