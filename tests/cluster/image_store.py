"""Images imported once: prepared containerd folders, from which each node's own is made by hard links.

Files of image layers are never changed in place (overlayfs writes elsewhere), so nodes may share them; only
containerd's data bases are copied.
"""

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.cluster import containerd
from tests.cluster.commands import run
from tests.cluster.layout import cache_folder
from tests.cluster.machine import Machine
from tests.cluster.versions import CONTAINER_SANDBOX_IMAGE

STORE: Final = Path("var/lib/containerd")
MADE_FROM: Final = "made-from"


def prepare(archives: Sequence[Path], tell: Callable[[str], None]) -> Path:
    """Return a containerd folder with the images of these archives, after removing stores of archives now gone."""
    for made_from in _folder().glob(f"*/{MADE_FROM}"):
        if not all(Path(archive).exists() for archive in made_from.read_text().splitlines()):
            shutil.rmtree(made_from.parent)
    return _prepare(archives, tell) / STORE


def clone(store: Path, folder: Path) -> None:
    """Make a containerd folder like the store's, which may be changed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    run("cp", "--archive", "--link", store, folder, seconds=300)
    for shared in _databases(folder):
        own = shared.with_suffix(".own")
        shutil.copyfile(shared, own)
        own.replace(shared)


def _databases(folder: Path) -> list[Path]:
    return [*folder.glob("*/*.db")]


def _prepare(archives: Sequence[Path], tell: Callable[[str], None]) -> Path:
    """Make the store, on top of the one for all archives but the last, unless it is there."""
    folder = _folder() / _key(archives)
    if archives and not folder.exists():
        before = _prepare(archives[:-1], tell)
        tell(f"importing {archives[-1].name} (once)")
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        if before.exists():
            clone(before / STORE, partial / STORE)
        _import(archives[-1], partial)
        (partial / MADE_FROM).write_text("\n".join(map(str, archives)))
        partial.rename(folder)
    return folder


def _import(archive: Path, folder: Path) -> None:
    machine = Machine("image-store", folder, folder / "logs")
    machine.boot()
    try:
        containerd.start(machine)
        containerd.import_archive(machine, archive)
        if CONTAINER_SANDBOX_IMAGE in containerd.images(machine):
            containerd.pin(machine, CONTAINER_SANDBOX_IMAGE)
        machine.kill("containerd", containerd.STOP)
    finally:
        machine.lose()


def _folder() -> Path:
    return cache_folder() / "image-stores"


def _key(archives: Sequence[Path]) -> str:
    told = [f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in archives]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
