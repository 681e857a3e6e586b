"""The controller's side of the fork server, and servers that never outlive their controller."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from controllers.worlds.local.processes import proctree
from controllers.worlds.local.processes.attempt_tree import AttemptId
from controllers.worlds.local.processes.messages import Exit, LaunchError, Lines, ProcessSpec, line
from controllers.worlds.local.processes.trees import end_others

_SERVER: Final = "controllers.worlds.local.processes.fork_server"
_PACKAGE_ROOT: Final = Path(__file__).resolve().parents[4]
_READ_BYTES: Final = 65_536
_CODE_UNKNOWN: Final = 128 + signal.SIGKILL
_PATIENCE_S: Final = 15.0


class Launcher:
    """Starts attempts out of a process that has the expensive imports done already.

    A fork server that dies takes its attempts along, which are asked to save before, and is replaced.

    Args:
        preload: modules to import before the first fork; ``log`` names those that cannot be imported.
        grace_s: seconds between SIGTERM and SIGKILL for attempts whose controller or fork server died.
        log: file for what the fork server itself says.
    """

    def __init__(self, preload: Sequence[str], grace_s: float, log: Path) -> None:
        self._preload, self._grace_s, self._log = tuple(preload), grace_s, log
        self._running: dict[str, AttemptId] = {}
        self._exits: list[Exit] = []
        self._closed = False
        self._server = _Server(self._preload, grace_s, log)

    def wait_ready(self) -> None:
        """Wait until the imports are done, so that the first attempt starts as cheaply as all others."""
        self._server.ask({"ready": True})

    def start(self, spec: ProcessSpec) -> int:
        """Start an attempt and return its pid, which leads a session and process group of its own.

        Raises:
            LaunchError: it could not be started.
        """
        if spec.key in self._running or self._closed:
            msg = f"{spec.key!r} is running already or the launcher is closed"
            raise LaunchError(msg)
        for _ in range(2):
            reply = self._server.ask({"start": spec.packed()})
            if not self._server.lost:
                break
            self._replace_server()
        if "started" not in reply:
            msg = f"cannot start {spec.key!r}: {reply.get('error', 'the fork server died, twice')}"
            raise LaunchError(msg)
        self._running[spec.key] = AttemptId.unpacked(reply["started"])
        return self._running[spec.key].root

    def exits(self) -> list[Exit]:
        """Return the attempts that ended since the last call.

        Does not wait, unless the fork server died: then up to the grace period for its attempts to end.
        """
        if not self._closed:
            self._collect()
            if self._server.lost:
                self._replace_server()
        exits, self._exits = self._exits, []
        return exits

    def terminate(self, key: str) -> None:
        """Ask the attempt to leave: SIGTERM to the process that trains; nothing happens if it has ended."""
        self._signal(key, signal.SIGTERM)

    def kill(self, key: str) -> None:
        """Send SIGKILL to every process of the attempt; nothing happens if it has ended."""
        self._signal(key, signal.SIGKILL)

    def fileno(self) -> int:
        """Return a descriptor that is readable when ``exits`` has something; ask anew before each wait."""
        return self._server.events.fileno()

    def close(self, grace_s: float) -> None:
        """End every attempt (asked, after ``grace_s`` seconds killed) and the fork server. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self._server.end(grace_s)
        self._collect()
        self._end_lost(0.0)
        self._server.close()

    def _signal(self, key: str, number: signal.Signals) -> None:
        if key in self._running and not self._closed:
            self._server.tell({"signal": int(number), "key": key})

    def _collect(self) -> None:
        for ended in self._server.exits():
            # An attempt whose start was never answered was reported as not started: its exit is no news.
            if self._running.pop(ended.key, None) is not None:
                self._exits.append(ended)

    def _replace_server(self) -> None:
        """Wait until what is left of a lost server, or its keeper, has ended the attempts, and start another."""
        self._server.wait_end(self._grace_s + _PATIENCE_S)
        self._collect()
        self._end_lost(self._grace_s)
        self._server.close()
        self._server = _Server(self._preload, self._grace_s, self._log)

    def _end_lost(self, grace_s: float) -> None:
        """End the attempts that nobody has ended, since server and keeper were both killed."""
        end_others(self._running.values(), grace_s)
        for known in self._running.values():
            self._exits.append(Exit(known.key, known.root, _CODE_UNKNOWN, asked=True))
        self._running.clear()


class _Server:
    """One fork server's keeper, which is the process that is started, and the sockets to the server."""

    def __init__(self, preload: Sequence[str], grace_s: float, log: Path) -> None:
        self._control, control = socket.socketpair()
        self.events, events = socket.socketpair()
        self._replies, self._lines = Lines(), Lines()
        self._exits: list[Exit] = []
        self.lost = self._gone = False
        settings = {"preload": preload, "grace_s": grace_s, "control": control.fileno(), "events": events.fileno()}
        with control, events, log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _SERVER, json.dumps(settings)],
                cwd=_PACKAGE_ROOT,
                # Read by the libraries when they are imported; a trial is rarely given a whole core.
                env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
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

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the reply; an empty one if the server died."""
        self.tell(message)
        while not self.lost:
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

    def end(self, grace_s: float) -> None:
        """Let the server end its attempts and itself."""
        self.tell({"close": grace_s})
        self.wait_end(grace_s + _PATIENCE_S)

    def close(self) -> None:
        """Make sure that the server is gone. Its keeper ends what it has left behind, and then by itself."""
        if not self._gone:
            proctree.send(proctree.children(self._process.pid), signal.SIGKILL)
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._control.close()
        self.events.close()


_KEY: Final = "tethered"


class Tethered:
    """A running command that ends, with all its processes, when this process does, however that happens.

    Its parent is a fork server of its own, which sees this process's end.
    """

    def __init__(self, launcher: Launcher, spec: ProcessSpec, grace_s: float) -> None:
        self.command = spec.command
        self._launcher, self._grace_s = launcher, grace_s
        self._code: int | None = None
        self.pid = launcher.start(spec)

    def poll(self) -> int | None:
        """Return the exit code as a shell gives it, None while it runs."""
        if self._code is None and (exits := self._launcher.exits()):
            self._code = exits[0].code
            self._launcher.close(0.0)
        return self._code

    def terminate(self) -> None:
        """End all its processes: SIGTERM, after the grace period SIGKILL. Returns when they are gone."""
        self._launcher.close(self._grace_s)
        self.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs after ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if timeout is not None and left is not None and left <= 0:
                raise subprocess.TimeoutExpired(list(self.command), timeout)
            select.select([self._launcher], [], [], left)
        return code


def start_tethered(
    command: Sequence[str], env: Mapping[str, str], log: Path, *, cwd: Path | None = None, grace_s: float = 5.0
) -> Tethered:
    """Start ``command`` with the whole environment ``env``, stdout and stderr appended to ``log``.

    Raises:
        LaunchError: it could not be started.
    """
    launcher = Launcher((), grace_s, log)
    try:
        return Tethered(launcher, ProcessSpec(_KEY, tuple(command), env, cwd or Path.cwd(), log), grace_s)
    except BaseException:
        launcher.close(0.0)
        raise
