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


def location() -> Path:
    """Where the store is."""
    return cache_folder() / "image-store"


def prepare(archives: Sequence[Path], tell: Callable[[str], None]) -> Path:
    """Return a store that holds the images of these archives, importing those that it lacks."""
    prepared = location()
    missing = [archive for archive in archives if not holds(prepared, archive)]
    if missing:
        abandon()
        importer = _importer()
        if prepared.exists():
            _clone(prepared, importer.folder)
        _import(missing, importer, tell)
        shutil.rmtree(prepared, ignore_errors=True)
        importer.folder.rename(prepared)
    return prepared


def abandon() -> None:
    """Remove what an import that was cut short left behind."""
    importer = _importer()
    importer.lose()
    shutil.rmtree(importer.folder, ignore_errors=True)


def _importer() -> Machine:
    folder = cache_folder() / "image-store.partial"
    return Machine("image-store", folder, folder / "logs")


def share(store: Path, machine: Machine) -> None:
    """Give a machine the store's images; its layers are links to the store's."""
    source, target = store / CONTAINERD, machine.folder / CONTAINERD
    shutil.copytree(source, target, ignore=_layers, copy_function=_copy)
    for layer in source.glob(LAYERS):
        (target / layer.relative_to(source)).symlink_to(layer)
    shutil.copyfile(store / ORIGINS, machine.folder / ORIGINS)


def holds(folder: Path, archive: Path) -> bool:
    """Whether a store, or a machine by its folder, has the images of an archive, as the archive is now."""
    return _identity(archive) in _origins(folder).values()


def add(machine: Machine, archive: Path) -> None:
    """Import an archive into a machine's containerd."""
    names = containerd.import_archive(machine, archive)
    origins = _origins(machine.folder) | dict.fromkeys(names, _identity(archive))
    (machine.folder / ORIGINS).write_text(json.dumps(origins, indent=2))


def _layers(folder: str, names: list[str]) -> list[str]:
    return names if Path(folder).name == Path(LAYERS).parent.name else []


def _copy(source: str, target: str) -> None:
    """Copy what containerd changes, and link what is named by its content."""
    if source.endswith(".db"):
        shutil.copyfile(source, target)
    else:
        os.link(source, target)


def _clone(store: Path, folder: Path) -> None:
    """Make a folder like the store, which may be changed and needs the store no more."""
    run("cp", "--archive", "--link", store, folder, seconds=300)
    for changing in (ORIGINS, *(str(path.relative_to(folder)) for path in (folder / CONTAINERD).glob("*/*.db"))):
        (folder / changing).unlink()
        shutil.copyfile(store / changing, folder / changing)


def _import(archives: Sequence[Path], machine: Machine, tell: Callable[[str], None]) -> None:
    machine.boot()
    try:
        containerd.start(machine)
        for archive in archives:
            tell(f"importing {archive.name} (once)")
            add(machine, archive)
        containerd.pin(machine, CONTAINER_SANDBOX_IMAGE)
        containerd.forget_unnamed_images(machine)
        machine.kill("containerd", containerd.STOP)
    finally:
        machine.lose()


def _origins(folder: Path) -> dict[str, str]:
    file = folder / ORIGINS
    found: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    return found


def _identity(archive: Path) -> str:
    written = archive.stat()
    return f"{archive} {written.st_size} {written.st_mtime_ns}"
