"""A process tree that can be stopped, continued and measured."""

import signal
from typing import Final

from controllers.worlds.local.processes import proctree

STOP, CONTINUE, KILL = signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL
_NOBODY: Final[tuple[int, ...]] = ()


class PacedTree:
    """The tree under one root process, for as long as that pid means that process."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._started = proctree.started(root)
        self._pids: list[int] = []
        self._cpu_seconds = 0.0
        self._waiting = 0.0
        self.stopped = False
        self.look()

    def look(self) -> None:
        """Find out which processes belong to the tree by now."""
        gone = self._started is None or proctree.started(self._root) != self._started
        self._pids = [] if gone else proctree.tree(self._root)

    def cpu_seconds(self) -> float:
        """Return the CPU seconds used so far; they stay when the processes are gone."""
        self._cpu_seconds = max(self._cpu_seconds, proctree.cpu_seconds(self._pids))
        return self._cpu_seconds

    def waited(self) -> float:
        """Return for how many seconds threads waited for a core since the last call."""
        before, self._waiting = self._waiting, proctree.waiting_seconds(self._pids)
        return max(0.0, self._waiting - before)

    def stop(self, stopped: bool) -> None:  # noqa: FBT001 - says what is to be
        """Stop or continue every process of it, unless that is how it is already."""
        if stopped != self.stopped:
            self.stopped = stopped
            self.signal(STOP if stopped else CONTINUE)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the root's process group and to what has left it."""
        if self._pids:
            proctree.send_group(self._root, number)
            proctree.send(self._pids, number)
