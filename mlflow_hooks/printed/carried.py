"""A Python for the pods of images that have none, copied from an image that has one: ``python -m ... FOLDER``.

Argo brings its own program into every pod the same way. The copy runs by its own dynamic loader and with its own C
library, so it does not matter which the program's image has, if any.
"""

import ctypes
import os
import shutil
import stat
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

FOLDER: Final = "/var/run/hera-specon-python"
"""Where pods have it."""
_LOADER: Final = "loader"
_LIBRARIES: Final = "lib"
_PYTHON: Final = "python"
_PACKAGES: Final = ("mlflow_hooks", "re2", "obstore")
_PARTS: Final = ("ssl", "_ctypes", "lzma", "bz2", "zlib", "_uuid", "select", "sqlite3")
"""Modules whose libraries go along."""
_LEFT_OUT: Final = frozenset(
    {
        *("site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3"),
        *("turtledemo", "pydoc_data", "distutils", "unittest", "venv", "curses", "wsgiref", "xmlrpc"),
    }
)


def interpreter(folder: str = FOLDER) -> list[str]:
    """Return the words that start the Python that ``carry`` has put into ``folder``."""
    # -I: variables of the program's environment such as PYTHONHOME mean another Python.
    return [
        *(f"{folder}/{_LOADER}", "--library-path", f"{folder}/{_LIBRARIES}"),
        *(f"{folder}/{_PYTHON}/bin/python3", "-I"),
    ]


def carry(folder: Path) -> None:
    """Copy this Python, its libraries and what the reader imports into ``folder``.

    Raises:
        OSError: there is no room.
        LookupError: this system's loader is not found, as on one without ELF.
    """
    for name in (*_PARTS, *_PACKAGES):
        if find_spec(name) is not None:
            __import__(name)
    home = folder / _PYTHON
    standard = Path(sysconfig.get_path("stdlib"))
    _copy_file(Path(sys.executable).resolve(), home / "bin" / "python3")
    _copy_folder(standard, home / "lib" / standard.name)
    for name in _PACKAGES:
        for package in _homes(name):
            # Beside the standard library, which is always looked in: Debian's Python looks in no site-packages.
            _copy_folder(package, home / "lib" / standard.name / name)
    # Modules are copied with their packages.
    libraries = [path for path in map(Path, _loaded()) if not {standard, *_homes()} & {*path.parents}]
    loader = next((path for path in libraries if path.name.startswith("ld-")), None)
    if loader is None:
        message = f"no dynamic loader among {', '.join(map(str, libraries))}"
        raise LookupError(message)
    _copy_file(loader, folder / _LOADER)
    for path in libraries:
        _copy_file(path, folder / _LIBRARIES / path.name)


def _homes(*names: str) -> list[Path]:
    """Return the folders of packages that go along."""
    found = (sys.modules.get(name) for name in names or _PACKAGES)
    return [Path(place) for module in found for place in getattr(module, "__path__", ())]


def _loaded() -> Iterator[str]:
    """Return the shared objects of this process, each under the name that the loader looks for (dl_iterate_phdr(3))."""
    names: list[str] = []
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Object), ctypes.c_size_t, ctypes.c_void_p)

    def note(found: "ctypes._Pointer[_Object]", _size: int, _data: object) -> int:
        names.append(os.fsdecode(found.contents.name or b""))
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(kind(note), None)
    return (name for name in names if name.startswith("/"))


class _Object(ctypes.Structure):
    """The beginning of ``struct dl_phdr_info``."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)  # with its time, by which Python knows whether bytecode is up to date
    # The program may run as another user than this.
    target.chmod(0o755 if source.stat().st_mode & stat.S_IXUSR else 0o644)


def _copy_folder(source: Path, target: Path) -> None:
    for path in sorted(source.iterdir()):
        if path.is_dir():
            if path.name not in _LEFT_OUT and not path.name.startswith("config-"):
                _copy_folder(path, target / path.name)
        elif not path.name.endswith((".opt-1.pyc", ".opt-2.pyc")):
            _copy_file(path, target / path.name)


if __name__ == "__main__":
    carry(Path(sys.argv[1] if len(sys.argv) > 1 else FOLDER))
