"""The process that does the pacing: apart from the controller, so that trials go on if that is killed.

It reads one JSON object per line from stdin and answers each with one; at the end of stdin every
process is continued.
"""

import json
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from controllers.worlds.local.shares.pacing import PERIOD_S, PacedNode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_READ_BYTES: Final = 65_536


class PacerLoop:
    """All nodes, and the commands that change them."""

    def __init__(self) -> None:
        self._nodes: dict[str, PacedNode] = {}
        self._commands: Mapping[str, Callable[..., float]] = {
            "node": self._add_node,
            "adopt": self._adopt,
            "resize": self._resize,
            "used": self._used,
            "node_used": lambda node: self._nodes[node].used(),
            "remove": self._remove,
        }

    def run(self) -> None:
        """Pace until stdin ends."""
        pending = b""
        try:
            while True:
                if not select.select([0], [], [], self._tick())[0]:
                    continue
                if not (data := os.read(0, _READ_BYTES)):
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._answer(json.loads(line))
        finally:
            for node in self._nodes.values():
                node.release()

    def _tick(self) -> float:
        """Return for how many seconds nothing is to be done."""
        now = time.monotonic()
        return max(0.0, min((node.tick(now) for node in self._nodes.values()), default=now + PERIOD_S) - now)

    def _answer(self, request: dict[str, Any]) -> None:
        result = self._commands[request.pop("do")](**request)
        os.write(1, json.dumps(result).encode() + b"\n")

    def _add_node(self, node: str, cpu: float) -> float:
        self._nodes[node] = PacedNode(cpu, time.monotonic())
        return 0.0

    def _adopt(self, key: str, node: str, cpu: float, pid: int) -> float:
        self._nodes[node].adopt(key, pid, cpu, time.monotonic())
        return 0.0

    def _resize(self, key: str, cpu: float) -> float:
        self._node_of(key).trials[key].paced.weight = cpu
        return 0.0

    def _used(self, key: str) -> float:
        return self._node_of(key).trials[key].tree.cpu_seconds()

    def _remove(self, key: str) -> float:
        self._node_of(key).remove(key)
        return 0.0

    def _node_of(self, key: str) -> PacedNode:
        return next(node for node in self._nodes.values() if key in node.trials)


def main() -> None:
    """Pace until the controller is gone or says so."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    PacerLoop().run()
