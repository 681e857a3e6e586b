"""Images imported once: prepared containerd folders, from which each node's own is made by hard links.

Files of image layers are never changed in place (overlayfs writes elsewhere), so nodes may share them; only
containerd's data bases are copied.
"""

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.cluster import containerd
from tests.cluster.commands import run
from tests.cluster.layout import cache_folder
from tests.cluster.machine import Machine
from tests.cluster.versions import CONTAINER_SANDBOX_IMAGE

STORE = "var/lib/containerd"


def prepare(archives: Sequence[Path], tell: Callable[[str], None]) -> Path:
    """Return a containerd folder that holds the images of these archives; what is there already is not made again."""
    folder = cache_folder() / "image-stores" / _key(archives)
    if not archives or folder.exists():
        return folder
    before = prepare(archives[:-1], tell)
    tell(f"importing {archives[-1].name} (once)")
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    _import(archives[-1], before, partial)
    (partial / STORE).rename(folder)
    shutil.rmtree(partial)
    return folder


def clone(store: Path, folder: Path) -> None:
    """Make a containerd folder like the store's, which may be changed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    run("cp", "--archive", "--link", store, folder, seconds=300)
    for shared in folder.rglob("*.db"):
        if "snapshots" not in shared.parts:
            own = shared.with_suffix(".own")
            shutil.copyfile(shared, own)
            own.replace(shared)


def _import(archive: Path, before: Path, folder: Path) -> None:
    machine = Machine("image-store", folder, folder / "logs")
    if before.exists():
        clone(before, folder / STORE)
    machine.boot()
    try:
        containerd.start(machine)
        containerd.import_archive(machine, archive)
        if CONTAINER_SANDBOX_IMAGE in containerd.images(machine):
            containerd.pin(machine, CONTAINER_SANDBOX_IMAGE)
        machine.kill("containerd", containerd.STOP)
    finally:
        machine.lose()


def _key(archives: Sequence[Path]) -> str:
    told = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in archives]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
