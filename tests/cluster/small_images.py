"""Image archives made of a few files each: what the cluster itself needs, and a shell for tests."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.cluster import versions
from tests.cluster.building import binary
from tests.cluster.commands import run
from tests.cluster.layout import cache_folder

# Fixed, so that the same files always make the same image.
MADE_AT: Final = "2020-01-01T00:00:00Z"
USERS: Final = "root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/home/nonroot:/bin/sh\n"


def own_archives() -> list[Path]:
    """The archives of the images that every cluster here has: pause, Argo's executor, and a shell."""
    return [_pause(), _argoexec(), _shell()]


def _pause() -> Path:
    return write_archive(versions.CONTAINER_SANDBOX_IMAGE, {"pause": binary("pause")}, ("/pause",))


def _argoexec() -> Path:
    return write_archive(versions.ARGOEXEC_IMAGE, {"bin/argoexec": binary("argoexec")}, ("argoexec",))


def _shell() -> Path:
    busybox = _busybox()
    names = run(busybox, "--list").split()
    return write_archive(versions.SHELL_IMAGE, {"bin/busybox": busybox}, ("/bin/sh",), dict.fromkeys(names, "busybox"))


def _busybox() -> Path:
    folder = cache_folder() / "busybox"
    program = folder / "bin/busybox"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        run("apt-get", "download", "busybox-static", folder=folder)
        (package,) = folder.glob("busybox-static_*.deb")
        run("dpkg-deb", "--extract", package, folder)
    return program


def write_archive(
    name: str, files: Mapping[str, Path], entrypoint: Sequence[str], links: Mapping[str, str] | None = None
) -> Path:
    """Write an archive as `docker save` does, of one layer with these files and links of /bin; return its path."""
    layer = _layer(files, links or {})
    digest = hashlib.sha256(layer).hexdigest()
    stem = name.rpartition("/")[2].replace(":", "-")
    path = cache_folder() / "images" / f"{stem}-{digest[:12]}.tar"
    if not path.exists():
        for outdated in path.parent.glob(f"{stem}-*.tar"):
            outdated.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        config = {
            "architecture": "amd64",
            "os": "linux",
            "created": MADE_AT,
            "config": {"Entrypoint": list(entrypoint), "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
        manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
        parts = {"manifest.json": json.dumps(manifest), "config.json": json.dumps(config)}
        partial = path.with_suffix(".partial")
        with tarfile.open(partial, "w") as archive:
            for part, text in parts.items():
                _add(archive, part, text.encode(), 0o644)
            _add(archive, "layer.tar", layer, 0o644)
        partial.rename(path)
    return path


def _layer(files: Mapping[str, Path], links: Mapping[str, str]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as layer:
        for folder, mode in {"bin": 0o755, "etc": 0o755, "tmp": 0o1777}.items():
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            layer.addfile(entry)
        _add(layer, "etc/passwd", USERS.encode(), 0o644)
        for target, source in files.items():
            _add(layer, target, source.read_bytes(), 0o755)
        for link, target in links.items():
            entry = tarfile.TarInfo(f"bin/{link}")
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            if link != target:
                layer.addfile(entry)
    return content.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
