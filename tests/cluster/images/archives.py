"""What images there are, what each is made of, and where its archive is kept."""

import hashlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.layout import cache_folder

REPOSITORY: Final = Path(__file__).parents[3]
CONTAINERFILE: Final = REPOSITORY / "manifests/images/Containerfile"
CONSTRAINTS: Final = REPOSITORY / "constraints.txt"
VERSION: Final[str] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]

_INSTALLED = ("constraints.txt", "pyproject.toml", "manifests/images/Containerfile", "manifests/images/requirements.py")
_CODE = ("README.md", "LICENSE", "packages", "mlflow_hooks", "controllers", "hera_specon", "workflows")
_HOW = "tests/cluster/images"
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Image:
    """An image: the stage of the Containerfile that it is, and the name that pods give."""

    stage: str

    @property
    def name(self) -> str:
        """The name as pods give it."""
        return f"hera-specon/{self.stage}:{VERSION}"

    @property
    def full_name(self) -> str:
        """The name as container runtimes keep it."""
        return f"docker.io/{self.name}"


CONTROLLER: Final = Image("controller")
TRAINER: Final = Image("trainer")
IMAGES: Final = (CONTROLLER, TRAINER)


def images_folder() -> Path:
    """Where archives and all that makes building them again quick are kept."""
    return cache_folder() / "images"


def archive(image: Image) -> Path:
    """Where the Docker archive of ``image``, made of the repository's files as they are now, is or will be."""
    return images_folder() / f"{image.stage}-{_key()}.tar"


def outdated(image: Image) -> list[Path]:
    """Archives of ``image`` made of other files than the repository's, but for the newest: it may be in use.

    Archives that nobody finished are outdated, too.
    """
    others = [path for path in images_folder().glob(f"{image.stage}-*.tar") if path != archive(image)]
    unfinished = sorted(images_folder().glob(f"{image.stage}-*.unfinished"))
    return sorted(others, key=lambda path: path.stat().st_mtime)[:-1] + unfinished


def digest(files: Iterable[Path]) -> str:
    """Return a short name for the names and contents of ``files``."""
    content = hashlib.sha256()
    for file in sorted(files):
        content.update(f"{file.relative_to(REPOSITORY)}\0{file.stat().st_size}\0".encode())
        content.update(file.read_bytes())
    return content.hexdigest()[:_SHOWN]


def _key() -> str:
    return digest(file for name in (*_INSTALLED, *_CODE, _HOW) for file in _files(REPOSITORY / name))


def _files(path: Path) -> Iterable[Path]:
    if path.is_file():
        return [path]
    return (file for file in path.rglob("*") if file.is_file() and not _is_no_part(file))


def _is_no_part(file: Path) -> bool:
    return "__pycache__" in file.parts or file.name.startswith("test_")
