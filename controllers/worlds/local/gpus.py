"""The GPUs of this machine: which there are, and which node of a run has which."""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from controllers.core.devices import GPU, Devices
from controllers.core.errors import SpeconError


class GpuError(SpeconError):
    """The GPUs of this machine are named in a way that means nothing."""


_DEVICE: Final = re.compile(r"nvidia(\d+)")


def gpus_here(env: Mapping[str, str] = os.environ, devices: Path = Path("/dev")) -> tuple[str, ...]:
    """Return the GPUs that programs of this process may use, as ``CUDA_VISIBLE_DEVICES`` names them.

    One that it names several times is there as often: so many trials may share it.
    """
    chosen = env.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return tuple(name for part in chosen.split(",") if (name := part.strip()) not in {"", "-1"})
    numbers = sorted(int(match[1]) for path in devices.glob("nvidia*") if (match := _DEVICE.fullmatch(path.name)))
    return tuple(map(str, numbers))


def shared_out(gpus: Sequence[str], nodes: Sequence[str], most: int) -> dict[str, tuple[str, ...]]:
    """Return the GPUs of each node: in turn as many as one trial asks for at ``most``, so that some node holds it.

    One that is named several times is on one node, as often as that.
    """
    by_node: dict[str, tuple[str, ...]] = dict.fromkeys(nodes, ())
    times = Counter(gpus)
    each = list(times)
    for turn, begin in enumerate(range(0, len(each), max(1, most))):
        node = nodes[turn % len(nodes)]
        by_node[node] += tuple(gpu for gpu in each[begin : begin + max(1, most)] for _ in range(times[gpu]))
    return by_node


def replicas_of(gpus: Sequence[str]) -> int:
    """Return how many trials may hold each of ``gpus``.

    Raises:
        GpuError: they are not named equally often.
    """
    times = Counter(gpus)
    if len(set(times.values())) > 1:
        named = ", ".join(f"{gpu} {count} times" for gpu, count in times.items())
        message = (
            f"CUDA_VISIBLE_DEVICES names GPU {named}: name each equally often, as in 0,0,1,1 where two trials share"
        )
        raise GpuError(message)
    return max(times.values(), default=1)


def as_often(gpus: Sequence[str], times: int) -> tuple[str, ...]:
    """Return ``gpus`` with each named so many ``times``."""
    return tuple(gpu for gpu in gpus for _ in range(times))


def least_shared(gpus: Sequence[str], held: Mapping[str, int]) -> list[str]:
    """Return what is free of ``gpus``, where so many trials hold each already: first those that the fewest hold."""
    times = Counter(gpus)
    free = [(taken, gpu) for gpu, count in times.items() for taken in range(held.get(gpu, 0), count)]
    return [gpu for _, gpu in sorted(free, key=lambda one: one[0])]


def devices_of(gpus: int) -> Devices:
    """Return so many GPUs as the devices that policies count."""
    return Devices.of({GPU: gpus})
