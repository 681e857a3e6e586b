"""The attempts whose parent this process is: asked, killed, and buried when they are over."""

import signal
import time
from collections.abc import Callable, Iterable
from typing import Final

from controllers.worlds.local.processes import proctree
from controllers.worlds.local.processes.attempt_tree import AttemptId, AttemptTree
from controllers.worlds.local.processes.messages import Exit

LOOK_S: Final = 0.1
"""Seconds between two looks at attempts whose end may bring no signal."""
_BURIAL_TIMEOUT_S: Final = 10.0


class Trees:
    """All attempts that are children of this process, which must adopt their orphans."""

    def __init__(self) -> None:
        self._trees: dict[int, AttemptTree] = {}

    @property
    def lingering(self) -> bool:
        """Whether some attempt has lost its first process only: then the end of the rest may bring no signal."""
        return any(tree.lingers for tree in self._trees.values())

    def add(self, known: AttemptId) -> None:
        """Take an attempt on."""
        self._trees[known.root] = AttemptTree(known)

    def drop(self, root: int) -> None:
        """Forget an attempt that never came to run."""
        del self._trees[root]

    def signal(self, key: str, number: signal.Signals) -> None:
        """Ask an attempt to leave (SIGTERM), or kill it (SIGKILL), if it is not over."""
        for tree in self._trees.values():
            if tree.known.key == key:
                tree.kill() if number is signal.SIGKILL else tree.ask()

    def reap(self) -> list[Exit]:
        """Bury the dead, kill what attempts that are over have left behind, and return these attempts."""
        self._look_at_children()
        if any(tree.over for tree in self._trees.values()):
            # A process that had to save may have ended since the look at it, and its exit code counts.
            self._look_at_children()
        over = [tree for tree in self._trees.values() if tree.over]
        for tree in over:
            # Before waiting: until then nobody else can get the number of its first process.
            tree.kill()
            proctree.bury(tree.known.root)
            del self._trees[tree.known.root]
        # Any other child became ours because its attempt, which had adopted it as an orphan, is over.
        left = [child for child in proctree.own_children() if child not in self._trees]
        proctree.send((pid for pid in left if proctree.alive(pid) and self._owner_of(pid) is None), signal.SIGKILL)
        return [tree.exit() for tree in over]

    def end(self, grace_s: float, wait: Callable[[float], object]) -> list[Exit]:
        """End every attempt: ask it to leave, and kill it after ``grace_s`` seconds.

        Args:
            grace_s: for each attempt and all its processes.
            wait: returns after so many seconds, or as soon as a child has ended.
        """
        exits: list[Exit] = []
        deadline = time.monotonic() + grace_s
        while self._trees and time.monotonic() < deadline:
            for tree in self._trees.values():
                tree.ask()
            wait(min(LOOK_S, max(0.0, deadline - time.monotonic())))
            exits += self.reap()
        deadline = time.monotonic() + _BURIAL_TIMEOUT_S
        while (self._trees or proctree.own_children()) and time.monotonic() < deadline:
            for tree in self._trees.values():
                tree.kill()
            wait(LOOK_S)
            exits += self.reap()
        return exits

    def _look_at_children(self) -> None:
        for child in dict.fromkeys((*proctree.own_children(), *self._trees)):
            self._look_at(child)

    def _look_at(self, child: int) -> None:
        tree, ended = self._trees.get(child), proctree.has_ended(child)
        owner = self._owner_of(child) if tree is None else tree if ended else None
        if owner is not None:
            # Before the exit code is asked for: until then, nobody else can have its number.
            owner.look()
        code = proctree.exit_code(child) if ended else None
        if code is None:
            return
        if tree is not None:
            tree.first_ended(code)
            return
        if owner is not None:
            owner.other_ended(child, code)
        proctree.bury(child)

    def _owner_of(self, orphan: int) -> AttemptTree | None:
        return next((tree for tree in self._trees.values() if tree.owns(orphan)), None)


def end_others(attempts: Iterable[AttemptId], grace_s: float) -> None:
    """End attempts whose parent has died: each is asked to leave, and killed after ``grace_s`` seconds."""
    trees = [AttemptTree(known) for known in attempts]
    deadline = time.monotonic() + grace_s
    while any(tree.alive for tree in trees) and time.monotonic() < deadline:
        for tree in trees:
            tree.ask()
        time.sleep(LOOK_S)
    for tree in trees:
        tree.kill()
