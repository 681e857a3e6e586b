"""Debian's buildah with a store of its own, without registry, daemon or systemd."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cluster.commands import run
from tests.cluster.images.archives import CONTAINERFILE, REPOSITORY

_SECONDS: Final = 1800


@dataclass(frozen=True)
class Buildah:
    """Builds images and keeps their layers in ``folder``; what it mounts is seen by nobody else."""

    folder: Path

    def has(self, name: str) -> bool:
        """Return whether the store holds an image of that name."""
        return bool(self._run("images", "--quiet", "--filter", f"reference={name}").strip())

    def commit(self, root: Path, name: str) -> None:
        """Make an image of one layer out of a root file system."""
        container = self._run("from", "scratch").strip()
        try:
            self._run("add", "--quiet", container, root, "/")
            self._run("commit", "--quiet", container, name)
        finally:
            self._run("rm", container)

    def build(
        self,
        stage: str,
        name: str,
        arguments: Mapping[str, str],
        secrets: Mapping[str, Path],
        volumes: Mapping[Path, str],
    ) -> None:
        """Build one stage of the project's Containerfile, as a user would.

        Args:
            stage: the stage that becomes the image.
            name: what the image is called in the store.
            arguments: build arguments.
            secrets: files that are there while the image is built and are not part of it, by their ids.
            volumes: folders that are there while the image is built, and where.
        """
        options = [f"--build-arg={key}={value}" for key, value in arguments.items()]
        options += [f"--secret=id={key},src={file}" for key, file in secrets.items()]
        options += [f"--volume={folder}:{place}:ro" for folder, place in volumes.items()]
        self._run(
            "build", "--isolation=chroot", "--network=host", "--layers", "--pull=never", f"--target={stage}",
            f"--file={CONTAINERFILE}", f"--tag={name}", *options, REPOSITORY,
        )  # fmt: skip

    def save(self, name: str, archive: Path) -> None:
        """Write an image as a Docker archive."""
        unfinished = archive.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        self._run("push", "--quiet", name, f"docker-archive:{unfinished}:{name}")
        unfinished.rename(archive)

    def _run(self, *arguments: str | Path) -> str:
        store = self.folder / "store"
        temporary = self.folder / "temporary"
        temporary.mkdir(parents=True, exist_ok=True)
        return run(
            "unshare", "--mount", "env", f"TMPDIR={temporary}",
            "buildah", f"--root={store}", f"--runroot={self.folder / 'run'}", "--storage-driver=overlay", *arguments,
            seconds=_SECONDS,
        )  # fmt: skip
