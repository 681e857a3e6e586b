"""Build the project's images out of its own Containerfile, where there is neither a registry nor a Docker daemon."""

import fcntl
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.cluster.commands import ClusterError
from tests.cluster.images.archives import IMAGES, Image, archive, images_folder, outdated
from tests.cluster.images.base import make_base
from tests.cluster.images.buildah import Buildah
from tests.cluster.images.package_index import write_secrets
from tests.cluster.images.pytorch_wheel import make_pytorch_wheel

_PROGRAMS: Final = {"buildah": "buildah", "debootstrap": "debootstrap", "unshare": "util-linux"}
_WHEELS_INSIDE: Final = "/mnt"


def build_images(images: Sequence[Image] = IMAGES, tell: Callable[[str], None] = print) -> dict[Image, Path]:
    """Return the Docker archive of each image, after building those that are not there yet.

    Args:
        images: which to build.
        tell: takes a line about each thing that is done.

    Raises:
        ClusterError: a Debian package is missing, or something could not be built.
    """
    with _alone():
        missing = [image for image in images if not archive(image).exists()]
        if missing:
            _check_programs()
            _build(missing, tell)
    return {image: archive(image) for image in images}


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until nobody else on this machine builds."""
    images_folder().mkdir(parents=True, exist_ok=True)
    with (images_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_programs() -> None:
    missing = sorted({package for program, package in _PROGRAMS.items() if shutil.which(program) is None})
    if missing:
        message = f"building images needs Debian packages that are not installed: apt-get install {' '.join(missing)}"
        raise ClusterError(message)


def _build(images: Sequence[Image], tell: Callable[[str], None]) -> None:
    buildah = Buildah(images_folder() / "buildah")
    with _told("Debian base", tell):
        base = make_base(buildah)
    with _told("PyTorch without GPU libraries", tell):
        wheel = make_pytorch_wheel(images_folder() / "wheels")
    # The name of the folder makes buildah install another wheel instead of the one in its cache.
    wheels_inside = f"{_WHEELS_INSIDE}/{wheel.parent.name}"
    arguments = {"BASE": base, "PYTORCH_WHEELS": wheels_inside}
    with tempfile.TemporaryDirectory() as folder:
        secrets = write_secrets(Path(folder))
        for image in images:
            with _told(f"{image.name}: build", tell):
                buildah.build(image.stage, image.full_name, arguments, secrets, {wheel.parent: wheels_inside})
            with _told(f"{image.name}: archive", tell):
                _save(buildah, image)


def _save(buildah: Buildah, image: Image) -> None:
    buildah.save(image.full_name, archive(image))
    for path in outdated(image):
        path.unlink()


@contextmanager
def _told(what: str, tell: Callable[[str], None]) -> Iterator[None]:
    tell(f"images: {what} ...")
    begun = time.monotonic()
    yield
    tell(f"images: {what}: {time.monotonic() - begun:.0f} s")
