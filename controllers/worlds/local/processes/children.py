"""The attempts that a fork server starts: from the fork to the program that each of them runs."""

import contextlib
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from controllers.worlds.local.processes import interpreter, proctree, pythons
from controllers.worlds.local.processes.attempt_tree import AttemptId
from controllers.worlds.local.processes.messages import LaunchError, ProcessSpec
from controllers.worlds.local.processes.trees import Trees
from mlflow_hooks.no_links import open_file


class Children:
    """Starts attempts as children of this process.

    Args:
        site_path: see ``interpreter.run``.
        enter_child: closes in a child what belongs to the server only.
        begun: told of each attempt before it runs; where that fails with an OSError, the attempt ends.
        trees: takes them on.
    """

    def __init__(
        self,
        site_path: Sequence[str],
        enter_child: Callable[[], None],
        begun: Callable[[AttemptId], None],
        trees: Trees,
    ) -> None:
        self._site_path = site_path
        self._enter_child = enter_child
        self._begun = begun
        self._trees = trees

    def start(self, spec: ProcessSpec) -> AttemptId:
        """Fork an attempt; return when it is in its groups, before it runs.

        Raises:
            OSError: the log cannot be opened or a group cannot be joined.
            LaunchError: there is no command or no such folder.
        """
        if not spec.command or not spec.cwd.is_dir():
            msg = f"cannot start {spec.command!r} in {str(spec.cwd)!r}: no command or no such folder"
            raise LaunchError(msg)
        log = open_file(spec.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        ours, theirs = socket.socketpair()
        with ours, theirs, contextlib.ExitStack() as stack:
            stack.callback(os.close, log)
            pid = self._fork(spec, log, ours, theirs)
            known = AttemptId(spec.key, pid, proctree.start_time(pid) or 0, str(spec.folder or ""), spec.attempt)
            self._trees.add(known)
            self._release(known, spec, ours)
        return known

    def _fork(self, spec: ProcessSpec, log: int, ours: socket.socket, theirs: socket.socket) -> int:
        # With signals blocked no handler of the server can run in the child.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._enter_child()
            _live(spec, log, theirs, self._site_path)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return pid

    def _release(self, known: AttemptId, spec: ProcessSpec, ours: socket.socket) -> None:
        """Wait for the child to lead its session, put it into its groups, and let it go.

        A child that ended before that breaks the pipe, or shows as an exit like any other.
        """
        try:
            ours.recv(1)
            for file in spec.join:
                Path(file).write_text(str(known.root), encoding="ascii")
            self._begun(known)
            ours.sendall(b"g")
        except OSError:
            self._trees.drop(known.root)
            proctree.send([known.root], signal.SIGKILL)
            raise


_NOT_FOUND, _NOT_RUNNABLE = 127, 126
_BROKEN: Final = 70
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)


def _live(spec: ProcessSpec, log: int, parent: socket.socket, site_path: Sequence[str]) -> NoReturn:
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
    # It gets no signal when the server dies: a shell would end of it at once, and what runs in it would not hear of it.
    proctree.adopt_orphans()
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
    # The server's handlers came along with the fork; a fresh interpreter has its own two exceptions only.
    for number in signal.valid_signals():
        if signal.getsignal(number) not in {signal.SIG_DFL, None} and number not in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _run(spec: ProcessSpec, site_path: Sequence[str]) -> int:
    top = __name__.partition(".")[0]
    is_python = pythons.is_this_python(spec.command, spec.env)
    program = None if spec.fresh or not is_python else interpreter.program_of(spec.command)
    if program is not None and interpreter.would_find_others(program, spec.cwd, spec.env, top):
        program = None
    os.environ.clear()
    os.environ.update(spec.env)
    if program is None:
        _replace(spec)
    # From here on: what a fresh interpreter would have done at its start, and the fork has not.
    time.tzset()
    _draw_other_numbers()
    sys.orig_argv[:] = spec.command
    # The program may have modules of its own by the names of the server's.
    for name in [name for name in sys.modules if name.partition(".")[0] == top]:
        del sys.modules[name]
    return interpreter.run(program, site_path)


def _draw_other_numbers() -> None:
    """Seed each generator that was made before the fork: all children of a server would draw the same numbers.

    Keras takes its seeds from that of Python, and TensorFlow makes its own when the first operation runs.
    """
    random.seed(os.urandom(32))
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(list(os.urandom(32)))
    if torch := sys.modules.get("torch"):
        torch.default_generator.seed()


def _replace(spec: ProcessSpec) -> NoReturn:
    """Turn into the command, with this interpreter where it says Python."""
    # Python finds its virtual environment by the name it was started under.
    first = pythons.interpreter_of(spec.command, spec.env) or spec.command[0]
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(first, [first, *spec.command[1:]], spec.env)  # noqa: S606 - no shell
    except OSError as error:
        sys.stderr.write(f"{spec.command[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUNNABLE)
