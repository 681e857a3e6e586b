"""The parent of a fork server. When that dies, however that happens, its attempts become children of the keeper.

The kernel sends each of them SIGTERM then. The keeper lets go on what was stopped, which could not act on that. After
the grace period it kills what has not ended, daemons that left the tree of their attempt included.
"""

import os
import signal
import time
from collections.abc import Iterable
from typing import Final

from controllers.worlds.local.processes import proctree

_LOOK_S: Final = 0.02
_BURIAL_S: Final = 10.0


def keep(grace_s: float, sockets: Iterable[int]) -> None:
    """Fork. Returns in the child, which is to serve; this process stays as its keeper until nothing is left.

    Args:
        grace_s: seconds between the server's death and SIGKILL.
        sockets: descriptors of the server, which must close when it dies.
    """
    keeper = os.getpid()
    proctree.adopt_orphans()
    server = os.fork()
    if server:
        for number in sockets:
            os.close(number)
        os._exit(_stay(server, grace_s))
    # A keeper that is killed takes the server along, and the controller ends the attempts.
    proctree.signal_when_parent_dies(signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(1)


def _stay(server: int, grace_s: float) -> int:
    """Wait for the server to end and end what it leaves; return its exit code as a shell gives it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: proctree.send([server], signal.Signals(received)))
    _, status = os.waitpid(server, 0)
    code = os.waitstatus_to_exitcode(status)
    _end_the_rest(time.monotonic() + grace_s)
    return code if code >= 0 else 128 - code


def _end_the_rest(deadline: float) -> None:
    while left := _living():
        now = time.monotonic()
        if now > deadline + _BURIAL_S:
            return
        proctree.send(left, signal.SIGCONT if now < deadline else signal.SIGKILL)
        time.sleep(_LOOK_S)


def _living() -> list[int]:
    """Return the living descendants of this process; bury the dead among its children."""
    own = os.getpid()
    for child in proctree.children(own):
        if not proctree.alive(child):
            os.waitpid(child, os.WNOHANG)
    return [pid for pid in proctree.tree(own) if pid != own and proctree.alive(pid)]
