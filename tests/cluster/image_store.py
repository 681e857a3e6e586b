"""Images imported once: a prepared containerd folder, from which each node's own is made at once.

Image layers are never changed in place (overlayfs writes elsewhere), so the nodes share the store's; only containerd's
data bases are copied. A store is replaced only while no cluster is up.
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.cluster import containerd
from tests.cluster.commands import run
from tests.cluster.layout import cache_folder
from tests.cluster.machine import Machine
from tests.cluster.versions import CONTAINER_SANDBOX_IMAGE

CONTAINERD: Final = Path("var/lib/containerd")
# Which archive each image in the store came from: a JSON object of image name and identity of the archive.
ORIGINS: Final = "origins.json"
LAYERS: Final = "io.containerd.snapshotter.v1.overlayfs/snapshots/*"


def prepare(archives: Sequence[Path], tell: Callable[[str], None]) -> Path:
    """Return a containerd folder that holds the images of these archives, importing those that it lacks."""
    store = cache_folder() / "image-store"
    origins = _origins(store)
    missing = [archive for archive in archives if _identity(archive) not in origins.values()]
    if missing:
        partial = store.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        if origins:
            _clone(store / CONTAINERD, partial / CONTAINERD)
        origins |= _import(missing, partial, tell)
        (partial / ORIGINS).write_text(json.dumps(origins, indent=2))
        shutil.rmtree(store, ignore_errors=True)
        partial.rename(store)
    return store / CONTAINERD


def share(store: Path, folder: Path) -> None:
    """Make a containerd folder like the store's, whose layers are links to the store's."""
    shutil.copytree(store, folder, ignore=_layers, copy_function=_copy)
    for layer in store.glob(LAYERS):
        (folder / layer.relative_to(store)).symlink_to(layer)


def _layers(folder: str, names: list[str]) -> list[str]:
    return names if Path(folder).name == Path(LAYERS).parent.name else []


def _copy(source: str, target: str) -> None:
    """Copy what containerd changes, and link what is named by its content."""
    if source.endswith(".db"):
        shutil.copyfile(source, target)
    else:
        os.link(source, target)


def _clone(store: Path, folder: Path) -> None:
    """Make a containerd folder like the store's, which may be changed and needs the store no more."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    run("cp", "--archive", "--link", store, folder, seconds=300)
    for database in folder.glob("*/*.db"):
        database.unlink()
        shutil.copyfile(store / database.relative_to(folder), database)


def _import(archives: Sequence[Path], folder: Path, tell: Callable[[str], None]) -> dict[str, str]:
    machine = Machine("image-store", folder, folder / "logs")
    origins: dict[str, str] = {}
    machine.boot()
    try:
        containerd.start(machine)
        for archive in archives:
            tell(f"importing {archive.name} (once)")
            origins |= dict.fromkeys(containerd.import_archive(machine, archive), _identity(archive))
        containerd.pin(machine, CONTAINER_SANDBOX_IMAGE)
        machine.kill("containerd", containerd.STOP)
    finally:
        machine.lose()
    return origins


def _origins(store: Path) -> dict[str, str]:
    file = store / ORIGINS
    found: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    return found


def _identity(archive: Path) -> str:
    written = archive.stat()
    return f"{archive} {written.st_size} {written.st_mtime_ns}"
