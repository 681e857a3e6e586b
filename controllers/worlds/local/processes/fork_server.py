"""A process that has the expensive imports done and forks an attempt per request.

Started by ``Launcher``. When the controller's end of the control socket closes, however that
happens, every attempt is ended and then the server itself. So it does where its keeper is killed. When the server
itself is killed, its keeper ends them.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any, Final

from controllers.core.own_program import path_before
from controllers.worlds.local.processes import keeper, proctree
from controllers.worlds.local.processes.attempt_tree import AttemptId
from controllers.worlds.local.processes.children import Children
from controllers.worlds.local.processes.messages import Exit, LaunchError, Lines, ProcessSpec, line
from controllers.worlds.local.processes.trees import LOOK_S, Trees

_READ_BYTES: Final = 65_536


class ForkServer:
    """Serves one controller."""

    def __init__(self, control: socket.socket, events: socket.socket, keeper: socket.socket, grace_s: float) -> None:
        self._control, self._events, self._keeper = control, events, keeper
        self._grace_s = grace_s
        self._wakeup, self._written = os.pipe()
        for end in (self._wakeup, self._written):
            os.set_blocking(end, False)
        self._trees = Trees()
        self._children = Children(path_before(), self._enter_child, self._tell_keeper, self._trees)
        self._ended = False

    def serve(self) -> None:
        """Start attempts and report exits until the controller is gone or says so."""
        signal.set_wakeup_fd(self._written, warn_on_full_buffer=False)
        # Without a handler the signal would not be written to the wake-up descriptor.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        lines = Lines()
        while not self._ended:
            patience_s = LOOK_S if self._trees.lingering else None
            heard = [self._control.fileno(), self._keeper.fileno(), self._wakeup]
            ready = select.select(heard, [], [], patience_s)[0]
            self._drain(ready)
            if self._control.fileno() in ready:
                self._hear(lines)
            # The keeper says nothing: it has ended. Linux sends a signal, too, which ends this before it serves.
            if self._keeper.fileno() in ready:
                self._ended = True
            self._report(self._trees.reap())
        self._report(self._trees.end(self._grace_s, self._wait))

    def _wait(self, seconds: float) -> None:
        self._drain(select.select([self._wakeup], [], [], seconds)[0])

    def _drain(self, ready: Sequence[int]) -> None:
        if self._wakeup in ready:
            os.read(self._wakeup, _READ_BYTES)

    def _hear(self, lines: Lines) -> None:
        try:
            data = self._control.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        self._ended = self._ended or not data
        for request in lines.feed(data):
            self._obey(request)

    def _obey(self, request: dict[str, Any]) -> None:
        match request:
            case {"start": spec}:
                self._tell(self._control, self._start(ProcessSpec.unpacked(spec)))
            case {"ready": True}:
                self._tell(self._control, {"ready": True})
            case {"signal": number, "key": key}:
                self._trees.signal(key, signal.Signals(number))
            case {"close": grace_s}:
                self._grace_s, self._ended = grace_s, True

    def _start(self, spec: ProcessSpec) -> dict[str, Any]:
        try:
            return {"started": self._children.start(spec).packed()}
        except (OSError, LaunchError) as error:
            return {"error": str(error), "errno": getattr(error, "errno", None)}

    def _report(self, exits: Sequence[Exit]) -> None:
        for ended in exits:
            self._tell(self._events, ended.packed())

    def _tell(self, to: socket.socket, message: dict[str, Any]) -> None:
        try:
            to.sendall(line(message))
        except ConnectionError:
            self._ended = True

    def _tell_keeper(self, known: AttemptId) -> None:
        """Tell the keeper of an attempt; where that is gone, this server is to end soon, and needs nobody after it."""
        with contextlib.suppress(ConnectionError):
            self._keeper.sendall(line(known.packed()))

    def _enter_child(self) -> None:
        signal.set_wakeup_fd(-1)
        for own in (self._control, self._events, self._keeper):
            own.close()
        os.close(self._wakeup)
        os.close(self._written)

    def _stop(self, *_: object) -> None:
        self._ended = True


def warm_up(steps: Sequence[str]) -> None:
    """Take the steps of a ``Warmth``; name on stderr the modules that cannot be imported."""
    for step in steps:
        name, is_setting, value = step.partition("=")
        if is_setting:
            os.environ[name] = value
            continue
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - a preload only saves time
            sys.stderr.write(f"not preloaded: {name}: {error!r}\n")
    # What is there by now is kept out of the collector's way, so that children share its memory.
    gc.collect()
    gc.freeze()
    sys.stdout.flush()
    sys.stderr.flush()


def main() -> None:
    """Serve as the first argument says."""
    settings = json.loads(sys.argv[1])
    told = keeper.keep(settings["grace_s"], settings["control"], settings["events"])
    proctree.adopt_orphans()
    warm_up(settings["steps"])
    with socket.socket(fileno=settings["control"]) as control, socket.socket(fileno=settings["events"]) as events, told:
        ForkServer(control, events, told, settings["grace_s"]).serve()
