"""A base image out of Debian packages alone: what python:3.11-slim-bookworm is elsewhere."""

import shutil
import tempfile
from pathlib import Path
from typing import Final

from tests.cluster.commands import run
from tests.cluster.images.archives import digest
from tests.cluster.images.buildah import Buildah

_PACKAGES: Final = ("python3-venv", "ca-certificates")
_NOT_NEEDED: Final = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man")


def make_base(buildah: Buildah) -> str:
    """Make Debian 12 with Python 3.11 and its venv module, unless it is there, and return the image's name.

    Raises:
        ClusterError: debootstrap is not installed or found no package mirror.
    """
    name = f"localhost/hera-specon/base:{digest([Path(__file__)])}"
    if not buildah.has(name):
        with tempfile.TemporaryDirectory(dir=buildah.folder) as folder:
            root = Path(folder) / "root"
            _install(root)
            buildah.commit(root, name)
    return name


def _install(root: Path) -> None:
    included = f"--include={','.join(_PACKAGES)}"
    run("debootstrap", "--variant=minbase", included, "bookworm", root, seconds=600)
    for unneeded in _NOT_NEEDED:
        shutil.rmtree(root / unneeded)
