"""The life of an attempt, from just after the fork to its end."""

import os
import random
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Final, NoReturn

from controllers.worlds.local.processes import interpreter, kernel
from controllers.worlds.local.processes.messages import ProcessSpec

_NOT_FOUND, _NOT_RUNNABLE = 127, 126
_BROKEN: Final = 70
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)


def live(spec: ProcessSpec, log: int, parent: socket.socket, site_path: Sequence[str]) -> NoReturn:
    """Become the attempt. Signals are blocked until the parent has put this process where it belongs."""
    code = _BROKEN
    try:
        _become_leader(parent)
        _take_over(spec, log)
        code = _run(spec, site_path)
    finally:
        # Never return into the server's code, whatever happened.
        os._exit(code)


def _become_leader(parent: socket.socket) -> None:
    """Found a session, tell the parent, and wait for its word; without it (it died) end."""
    os.setsid()
    kernel.signal_when_parent_dies(signal.SIGTERM)
    kernel.adopt_orphans()
    parent.sendall(b"r")
    if not parent.recv(1):
        os._exit(_BROKEN)
    parent.close()


def _take_over(spec: ProcessSpec, log: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((null, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, number)
    os.close(null)
    os.close(log)
    os.chdir(spec.cwd)
    _default_signals()


def _default_signals() -> None:
    for number in signal.valid_signals():
        if signal.getsignal(number) not in {signal.SIG_DFL, None} and number not in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _run(spec: ProcessSpec, site_path: Sequence[str]) -> int:
    program = interpreter.parsed(spec.command, spec.env)
    os.environ.clear()
    os.environ.update(spec.env)
    if program is None:
        _replace(spec)
    time.tzset()
    _reseed()
    _use_threads(spec.env.get("OMP_NUM_THREADS", ""))
    _forget_server()
    return interpreter.run(program, site_path)


def _replace(spec: ProcessSpec) -> NoReturn:
    """Turn into the command, with this interpreter where it says Python."""
    # Python finds its virtual environment by the name it was started under.
    first = sys.executable if interpreter.means_this_python(spec.command) else spec.command[0]
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(first, [first, *spec.command[1:]], spec.env)  # noqa: S606 - no shell
    except OSError as error:
        sys.stderr.write(f"{spec.command[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUNNABLE)


def _reseed() -> None:
    """Give this process chance of its own; all children of a server would draw the same numbers."""
    random.seed(os.urandom(32))
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(list(os.urandom(32)))


def _use_threads(count: str) -> None:
    """Let PyTorch have the threads it would have read from the environment when it was imported."""
    if count.isdecimal() and int(count) and (torch := sys.modules.get("torch")):
        torch.set_num_threads(int(count))


def _forget_server() -> None:
    """Forget the server's own modules: the program may have its own of the same name."""
    top = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == top]:
        del sys.modules[name]
