"""The GPUs of this machine: which there are, and which node of a run has which."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from controllers.core.devices import Devices
from controllers.worlds.local.workflow.fields import GPU

_DEVICE: Final = re.compile(r"nvidia(\d+)")


def gpus_here(env: Mapping[str, str] = os.environ, devices: Path = Path("/dev")) -> tuple[str, ...]:
    """Return the GPUs that programs of this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    chosen = env.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return tuple(name for part in chosen.split(",") if (name := part.strip()) not in {"", "-1"})
    numbers = sorted(int(match[1]) for path in devices.glob("nvidia*") if (match := _DEVICE.fullmatch(path.name)))
    return tuple(map(str, numbers))


def shared_out(gpus: Sequence[str], nodes: Sequence[str], most: int) -> dict[str, tuple[str, ...]]:
    """Return the GPUs of each node: in turn as many as one trial asks for at ``most``, so that some node holds it."""
    by_node: dict[str, tuple[str, ...]] = dict.fromkeys(nodes, ())
    for turn, begin in enumerate(range(0, len(gpus), max(1, most))):
        node = nodes[turn % len(nodes)]
        by_node[node] += tuple(gpus[begin : begin + max(1, most)])
    return by_node


def devices_of(gpus: int) -> Devices:
    """Return so many GPUs as the devices that policies count."""
    return Devices.of({GPU: gpus})
