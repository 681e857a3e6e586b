"""The controller's side of one fork server: its process, its keeper, and the sockets to it."""

import json
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from controllers.core.own_program import own_command, own_environment
from controllers.worlds.local.processes import proctree
from controllers.worlds.local.processes.messages import Exit, Lines, line
from controllers.worlds.local.processes.warmth import Warmth

_SERVER: Final = "controllers.worlds.local.processes.fork_server"
_READ_BYTES: Final = 65_536
_LOOK_S: Final = 0.2
PATIENCE_S: Final = 15.0
"""Seconds beyond the grace period for a server, or its keeper, to end what it has started."""


class Server:
    """One fork server's keeper, which is the process that is started, and the sockets to the server.

    Args:
        warmth: what it does before the first fork.
        grace_s: seconds between SIGTERM and SIGKILL for attempts whose controller or fork server died.
        log: file for what it says.
    """

    def __init__(self, warmth: Warmth, grace_s: float, log: Path) -> None:
        self.warmth = warmth
        self._control, control = socket.socketpair()
        self.events, events = socket.socketpair()
        self._replies, self._lines = Lines(), Lines()
        self._exits: list[Exit] = []
        self.lost = self._gone = False
        settings = {"grace_s": grace_s, "control": control.fileno(), "events": events.fileno(), "steps": warmth.steps}
        with control, events, log.open("ab") as output:
            self._process = subprocess.Popen(
                own_command(_SERVER, json.dumps(settings)),
                env=own_environment(warmth.env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(control.fileno(), events.fileno()),
                start_new_session=True,
            )

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message."""
        try:
            self._control.sendall(line(message))
        except ConnectionError:
            self.lost = True

    def ask(self, message: dict[str, Any], stopped: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """Send a message and return the reply; an empty one if the server died, or nobody waits any more."""
        self.tell(message)
        while not self.lost:
            if not select.select([self._control], [], [], _LOOK_S)[0]:
                if stopped():
                    return {}
                continue
            try:
                data = self._control.recv(_READ_BYTES)
            except ConnectionError:
                data = b""
            self.lost = not data
            for reply in self._replies.feed(data):
                return reply
        return {}

    def exits(self) -> list[Exit]:
        """Return the exits reported since the last call."""
        self._look_for_end()
        while True:
            try:
                data = self.events.recv(_READ_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except ConnectionError:
                data = b""
            if not data:
                self.lost = self._gone = True
                break
            self._exits += [Exit(**ended) for ended in self._lines.feed(data)]
        exits, self._exits = self._exits, []
        return exits

    def _look_for_end(self) -> None:
        """Take note of a server that has died: its keeper still has the other socket."""
        try:
            self.lost = self.lost or not self._control.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except BlockingIOError:
            return
        except ConnectionError:
            self.lost = True

    def wait_end(self, within_s: float) -> None:
        """Wait until neither the server nor its keeper can tell of any exit more."""
        deadline = time.monotonic() + within_s
        while not self._gone and (left := deadline - time.monotonic()) > 0:
            select.select([self.events], [], [], left)
            self._exits = self.exits()

    def begin_end(self, grace_s: float) -> None:
        """Let the server end its attempts and itself."""
        self.tell({"close": grace_s})

    def close(self) -> None:
        """Make sure that the server is gone. Its keeper ends what it has left behind, and then by itself."""
        if not self._gone:
            proctree.send(proctree.children(self._process.pid), signal.SIGKILL)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._control.close()
        self.events.close()
