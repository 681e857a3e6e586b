"""Parts of a GPU: how many trials one holds, and whether NVIDIA's Multi-Process Service runs, which keeps to parts.

Sources: docs.nvidia.com/deploy/mps, chapters "Environment Variables" and "Architecture".
"""

import errno
import math
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PIPES: Final = "CUDA_MPS_PIPE_DIRECTORY"
THREADS: Final = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
"""A client of the service computes with at most this part of a device's threads, in per cent, from Volta on."""
MOST_CLIENTS: Final = 48
"""Clients that the service lets onto a device at a time, on Volta; newer devices take as many at least."""
_PIPES: Final = "/tmp/nvidia-mps"  # noqa: S108 - NVIDIA's default; nothing is written there
_CONTROL: Final = "control"
_SLACK: Final = 1e-9


def trials_for(part: float) -> int:
    """Return how many trials that each hold such a ``part`` of a GPU one holds."""
    return math.floor(1 / part + _SLACK)


def percentage_of(part: float) -> str:
    """Return ``part`` of a GPU as the service reads it, in whole per cent."""
    return str(math.floor(100 * part + _SLACK))


def why_no_mps(env: Mapping[str, str] = os.environ) -> str | None:
    """Return why no trial here would be a client of the service; None where its control daemon runs.

    CUDA asks for it at this socket, too. The daemon leaves its files behind when it dies. A socket of another type is
    told so by the kernel if somebody listens, and disturbs nobody.
    """
    control = Path(env.get(PIPES) or _PIPES) / _CONTROL
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            probe.connect(str(control))
    except OSError as error:
        if error.errno != errno.EPROTOTYPE:
            return f"no MPS control daemon listens at {control} ({error.strerror or error})"
    return None
