"""The controller's side of the fork servers, and servers that never outlive their controller."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from controllers.worlds.local.processes import proctree
from controllers.worlds.local.processes.attempt_tree import AttemptId
from controllers.worlds.local.processes.messages import Exit, LaunchError, ProcessSpec
from controllers.worlds.local.processes.preload import Plans
from controllers.worlds.local.processes.server import PATIENCE_S, Server
from controllers.worlds.local.processes.trees import end_others
from controllers.worlds.local.processes.warmth import Warmth, warmth_of

_CODE_UNKNOWN: Final = 128 + signal.SIGKILL


class Launcher:
    """Starts attempts out of processes that have the expensive imports done already.

    An attempt that would notice what a fork server has done for it gets a new process of its own.

    A fork server that dies takes its attempts along, which are asked to save before, and is replaced.

    Args:
        warmths: what fork servers do ahead, one for each; by default one that has done nothing in this environment.
        grace_s: seconds between SIGTERM and SIGKILL for attempts whose controller or fork server died.
        log: file for what the fork servers themselves say, such as which modules cannot be imported.
    """

    def __init__(self, warmths: Sequence[Warmth], grace_s: float, log: Path) -> None:
        self._grace_s, self._log = grace_s, log
        self._running: dict[str, AttemptId] = {}
        self._exits: list[Exit] = []
        self._plans = Plans()
        self._closed = False
        # Where no attempt goes on in a fork, a server need not do anything ahead.
        ahead = warmths if proctree.RUNS_FORKED else ()
        self._servers = [self._served(warmth) for warmth in ahead or (Warmth(dict(os.environ)),)]
        self._of: dict[str, int] = {}

    def wait_ready(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Wait until the imports are done, so that the first attempt starts as cheaply as all others.

        Once ``stopped``, nobody waits: nothing but ``close`` is to follow then.
        """
        for server in self._servers:
            server.ask({"ready": True}, stopped)

    def start(self, spec: ProcessSpec) -> int:
        """Start an attempt and return its pid, which leads a session and process group of its own.

        Raises:
            LaunchError: it could not be started; it comes from the ``OSError`` where that is why.
        """
        if spec.key in self._running or self._closed:
            msg = f"{spec.key!r} is running already or the launcher is closed"
            raise LaunchError(msg)
        number, spec = self._suited(spec)
        for _ in range(2):
            reply = self._servers[number].ask({"start": spec.packed()})
            if not self._servers[number].lost:
                break
            self._replace_server(number)
        if "started" not in reply:
            msg = f"cannot start {spec.key!r}: {reply.get('error', 'the fork server died, twice')}"
            raise LaunchError(msg) from (OSError(reply["errno"], msg) if reply.get("errno") else None)
        self._running[spec.key] = AttemptId.unpacked(reply["started"])
        self._of[spec.key] = number
        return self._running[spec.key].root

    def exits(self) -> list[Exit]:
        """Return the attempts that ended since the last call.

        Does not wait, unless a fork server died: then up to the grace period for its attempts to end.
        """
        if not self._closed:
            for number, server in enumerate(self._servers):
                self._collect(server)
                if server.lost:
                    self._replace_server(number)
        exits, self._exits = self._exits, []
        return exits

    def terminate(self, key: str) -> None:
        """Ask the attempt to leave: SIGTERM to the process that trains; nothing happens if it has ended."""
        self._signal(key, signal.SIGTERM)

    def kill(self, key: str) -> None:
        """Send SIGKILL to every process of the attempt; nothing happens if it has ended."""
        self._signal(key, signal.SIGKILL)

    def wait(self, within_s: float | None = None) -> None:
        """Wait until ``exits`` has something, ``within_s`` seconds at most."""
        select.select([server.events for server in self._servers], [], [], within_s)

    def close(self, grace_s: float) -> None:
        """End every attempt (asked, after ``grace_s`` seconds killed) and the fork servers. May be called twice."""
        if self._closed:
            return
        self._closed = True
        for server in self._servers:
            server.begin_end(grace_s)
        for server in self._servers:
            server.wait_end(grace_s + PATIENCE_S)
            self._collect(server)
        self._end_lost(self._running, 0.0)
        for server in self._servers:
            server.close()

    def _served(self, warmth: Warmth) -> Server:
        return Server(warmth, self._grace_s, self._log)

    def _suited(self, spec: ProcessSpec) -> tuple[int, ProcessSpec]:
        """Return the server that has done the most of what the attempt would do, and how it is to start there."""
        if not proctree.RUNS_FORKED:
            return 0, replace(spec, fresh=True)
        wanted = warmth_of(self._plans, spec.command, spec.env, spec.cwd)
        if wanted is None:
            return 0, spec
        suited = [
            (len(server.warmth.steps), -number)
            for number, server in enumerate(self._servers)
            if server.warmth.fits(wanted)
        ]
        return (-max(suited)[1], spec) if suited else (0, replace(spec, fresh=True))

    def _signal(self, key: str, number: signal.Signals) -> None:
        if key in self._running and not self._closed:
            self._servers[self._of[key]].tell({"signal": int(number), "key": key})

    def _collect(self, server: Server) -> None:
        for ended in server.exits():
            # An attempt whose start was never answered was reported as not started: its exit is no news.
            if self._running.pop(ended.key, None) is not None:
                self._exits.append(ended)

    def _replace_server(self, number: int) -> None:
        """Wait until what is left of a lost server, or its keeper, has ended the attempts, and start another."""
        lost = self._servers[number]
        lost.wait_end(self._grace_s + PATIENCE_S)
        self._collect(lost)
        self._end_lost([key for key in self._running if self._of[key] == number], self._grace_s)
        lost.close()
        self._servers[number] = self._served(lost.warmth)

    def _end_lost(self, keys: Iterable[str], grace_s: float) -> None:
        """End the attempts that nobody has ended, since server and keeper were both killed."""
        left = [self._running.pop(key) for key in list(keys)]
        end_others(left, grace_s)
        self._exits += [Exit(known.key, known.root, _CODE_UNKNOWN, asked=True) for known in left]


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
            self._launcher.wait(left)
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
