"""Where the programs of a control plane are: etcd from the system, the rest as tests/cluster builds them."""

import shutil

from tests.cluster.building import binary


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


def built(name: str) -> str:
    """Return the path of a program that is built here: ``kubernetes`` (every component) or ``kwok``.

    Raises:
        MissingProgramError: it was not built yet.
    """
    path = binary(name)
    if not path.exists():
        message = f"{path} is missing; build it once with: python -m tests.cluster build"
        raise MissingProgramError(message)
    return str(path)
