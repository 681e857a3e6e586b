"""Where the programs of a control plane are: etcd from the system, the rest as tests/cluster builds them."""

import os
import shutil
from pathlib import Path


class MissingProgramError(Exception):
    """A program that is needed is not there. The message says how to get it."""


def etcd() -> str:
    """Return the path of etcd.

    Raises:
        MissingProgramError: it is not installed.
    """
    found = shutil.which("etcd")
    if found is None:
        message = "etcd is not installed; on Debian: apt-get install etcd-server"
        raise MissingProgramError(message)
    return found


def kubernetes(component: str) -> tuple[str, str]:
    """Return the beginning of the command line of a component of Kubernetes.

    Raises:
        MissingProgramError: it was not built yet.
    """
    return _built("kubernetes"), component


def kwok() -> str:
    """Return the path of KWOK.

    Raises:
        MissingProgramError: it was not built yet.
    """
    return _built("kwok")


def _built(name: str) -> str:
    path = Path(os.environ.get("HERA_SPECON_CACHE", "~/.cache/hera-specon")).expanduser() / "bin" / name
    if not path.exists():
        message = f"{path} is missing; build it in tests/cluster/{name}"
        raise MissingProgramError(message)
    return str(path)
