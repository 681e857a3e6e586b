"""The parent of a fork server. When that dies, however that happens, its attempts become children of the keeper.

The keeper asks each of them to leave, as the server would have done, and tells the controller how they ended. After the
grace period it kills what has not ended, daemons that left the tree of their attempt included. A keeper that is killed
itself has its server do the same: whichever of the two is left, nobody is left behind.
"""

import os
import signal
import socket
import time
from contextlib import suppress
from typing import Final

from controllers.worlds.local.processes import proctree
from controllers.worlds.local.processes.attempt_tree import AttemptId, AttemptTree
from controllers.worlds.local.processes.messages import Lines, line
from controllers.worlds.local.processes.trees import Trees, end_others

_READ_BYTES: Final = 65_536


def keep(grace_s: float, control: int, events: int) -> socket.socket:
    """Fork. Returns in the child, which is to serve; this process stays as its keeper until nothing is left.

    Args:
        grace_s: seconds between the server's death and SIGKILL.
        control: descriptor of the server, which must close when it dies.
        events: descriptor on which exits are told.

    Returns:
        Where the server tells its keeper of each attempt that it starts.
    """
    keeper = os.getpid()
    proctree.adopt_orphans()
    ours, theirs = socket.socketpair()
    server = os.fork()
    if server:
        os.close(control)
        theirs.close()
        with socket.socket(fileno=events) as told:
            os._exit(_stay(server, ours, told, grace_s))
    ours.close()
    # It ends its attempts then, and itself.
    proctree.signal_when_parent_dies(signal.SIGTERM)
    if os.getppid() != keeper:
        os._exit(1)
    return theirs


def _stay(server: int, told: socket.socket, events: socket.socket, grace_s: float) -> int:
    """Wait for the server to end and end what it leaves; return its exit code as a shell gives it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: proctree.send([server], signal.Signals(received)))
    started = _attempts_of(told)
    _, status = os.waitpid(server, 0)
    code = os.waitstatus_to_exitcode(status)
    trees = Trees()
    # Only by now are its children ours.
    for child in proctree.children(os.getpid()):
        if child in started:
            trees.add(started[child])
    for ended in trees.end(grace_s, time.sleep):
        with suppress(ConnectionError):
            events.sendall(line(ended.packed()))
    # Where nobody adopts orphans, none of them became ours.
    end_others((known for known in started.values() if AttemptTree(known).alive), grace_s)
    return code if code >= 0 else 128 - code


def _attempts_of(told: socket.socket) -> dict[int, AttemptId]:
    """Return the attempts that the server has started, by their first process, once it has ended."""
    lines = Lines()
    started = {}
    while data := told.recv(_READ_BYTES):
        for message in lines.feed(data):
            attempt = AttemptId.unpacked(message)
            started[attempt.root] = attempt
    return started
