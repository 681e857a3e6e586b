"""A PyTorch wheel without the libraries of the GPU, where no index offers a build for the CPU.

The index's own build loads two GB of CUDA libraries when it is imported, on machines without a GPU too. Here it is
PyTorch's own code, not asking for the libraries that compute on a GPU. Those that look for one come beside it: without
a driver they find none, and nothing of the others is called.
"""

import base64
import hashlib
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.cluster.commands import ClusterError, run
from tests.cluster.images import needed_libraries
from tests.cluster.images.archives import CONSTRAINTS, digest
from tests.cluster.images.package_index import setting

_MARK: Final = "nogpu"
_COMPUTES_ON_GPU: Final = re.compile(
    r"lib(cublas|cublasLt|cudnn|cufft|cufile|cusolver|cusparse|cusparseLt|nccl|nvrtc|nvshmem_host)\.so\.\d+"
)
_ITS_FUNCTIONS: Final = re.compile(rb"(cublas|cudnn|cufft|cuFile|cusolver|cusparse|nccl|nvrtc|nvshmem)\w+\0")
_LOOKS_FOR_GPU: Final = ("libcudart.so.*", "libcupti.so.*")
_THEIR_PACKAGES: Final = re.compile(r"^nvidia-(?:cuda-runtime|cuda-cupti)\S*==\S+$", re.MULTILINE)
_FOR_GPU: Final = re.compile(r"Requires-Dist: (cuda-|nvidia-|triton)")
_SECONDS: Final = 900


def make_pytorch_wheel(wheels: Path) -> Path:
    """Make the wheel of the pinned PyTorch in a folder of ``wheels``, unless it is there, and return its path.

    The folder's name tells how the wheel was made; what was made otherwise is removed.

    Raises:
        ClusterError: PyTorch can't be fetched.
    """
    version = _pinned()
    folder = wheels / digest([Path(__file__), Path(needed_libraries.__file__), CONSTRAINTS])
    made = sorted(folder.glob(f"torch-{version}+{_MARK}-*.whl"))
    if made:
        return made[0]
    shutil.rmtree(wheels, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        unpacked = Path(temporary)
        _fetch(unpacked, f"torch=={version}", *_THEIR_PACKAGES.findall(CONSTRAINTS.read_text()))
        for name in _LOOKS_FOR_GPU:
            for library in unpacked.glob(f"nvidia/*/lib/{name}"):
                library.rename(unpacked / "torch/lib" / library.name)
        for library in unpacked.glob("torch/lib/*.so*"):
            needed_libraries.forget_libraries(library, _COMPUTES_ON_GPU, _ITS_FUNCTIONS)
        return _pack(unpacked, version, folder)


def _pinned() -> str:
    found = re.search(r"^torch==(\S+)$", CONSTRAINTS.read_text(), re.MULTILINE)
    if found is None:
        message = "constraints.txt pins no torch"
        raise ClusterError(message)
    return found[1]


def _fetch(folder: Path, *requirements: str) -> None:
    """Install packages, but not what they depend on; copied out of uv's cache, for the files will be changed."""
    index = setting("index-url")
    environment = {**os.environ, "UV_SYSTEM_CERTS": "1", **({"UV_DEFAULT_INDEX": index} if index else {})}
    run(
        sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--link-mode=copy",
        "--python-version=3.11", "--target", folder, *requirements,
        environment=environment, seconds=_SECONDS,
    )  # fmt: skip


def _pack(unpacked: Path, version: str, folder: Path) -> Path:
    """Pack what is installed as a wheel again; not compressed, for it goes no further than this machine."""
    information = next(unpacked.glob("torch-*.dist-info"))
    tag = _field(information / "WHEEL", "Tag")
    marked = unpacked / f"torch-{version}+{_MARK}.dist-info"
    information.rename(marked)
    _edit_metadata(marked / "METADATA", version)
    wheel = folder / f"torch-{version}+{_MARK}-{tag}.whl"
    unfinished = wheel.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as packed:
        record = "".join(_add(packed, unpacked, file) for file in _contents(unpacked, marked))
        packed.writestr(f"{marked.name}/RECORD", f"{record}{marked.name}/RECORD,,\n")
    return unfinished.rename(wheel)


def _field(file: Path, name: str) -> str:
    return next(line.partition(": ")[2] for line in file.read_text().splitlines() if line.startswith(f"{name}: "))


def _edit_metadata(file: Path, version: str) -> None:
    lines = [line for line in file.read_text().splitlines() if not _FOR_GPU.match(line)]
    text = re.sub(r"^Version: .*$", f"Version: {version}+{_MARK}", "\n".join(lines), count=1, flags=re.MULTILINE)
    file.write_text(text + "\n")


def _contents(unpacked: Path, information: Path) -> Iterator[Path]:
    packages = {line.split("/")[0] for line in (information / "RECORD").read_text().splitlines() if "/" in line}
    for name in sorted(packages & {folder.name for folder in unpacked.iterdir()} - {"bin"} | {information.name}):
        for file in sorted((unpacked / name).rglob("*")):
            if file.is_file() and file.name not in {"RECORD", "INSTALLER", "REQUESTED"}:
                yield file


def _add(packed: zipfile.ZipFile, root: Path, file: Path) -> str:
    name = file.relative_to(root).as_posix()
    packed.write(file, name)
    with file.open("rb") as opened:
        code = base64.urlsafe_b64encode(hashlib.file_digest(opened, "sha256").digest()).rstrip(b"=").decode()
    return f"{name},sha256={code},{file.stat().st_size}\n"
