"""Whom SIGTERM must reach so that a training can save, whatever has launched it.

A cluster signals the first process of a container and no other: workers that got the signal too would die under the
training. But a shell that waits for its command dies of it at once, and many launchers do the same. So it goes to the
process whose hooks say that it trains, and else to the one that looks most like it.
"""

import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from controllers.worlds.local.processes import proctree
from mlflow_hooks.presence import Presence

_TERM: Final = signal.SIGTERM
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox", "csh", "tcsh"})
_HELPERS: Final = ("multiprocessing", "resource_tracker", "forkserver", "loky")
"""Words in the command lines of worker processes that Python's libraries start."""


def who_trains(members: Iterable[int], said: Iterable[Presence]) -> int | None:
    """Return which of ``members`` said that it trains, None where none did; of several workers the lowest rank.

    A number alone names nobody: by now another process may have it.
    """
    here = {(proctree.number_inside(pid), proctree.start_time(pid)): pid for pid in members if proctree.alive(pid)}
    return next(
        (here[presence.pid, presence.started] for presence in said if (presence.pid, presence.started) in here), None
    )


def launched_by(root: int) -> list[int]:
    """Return whom to ask below ``root`` where no process says that it trains, the outermost first.

    That is one process that catches SIGTERM, if one does: the program below shells, and below launchers that do not
    pass the signal on. Where none does, nobody can save, and the launchers must end before they start what comes next.
    """
    chain = [root]
    while (inner := _inner(chain[-1])) is not None:
        chain.append(inner)
    catching = [pid for pid in chain if proctree.catches(pid, _TERM)]
    # A shell may catch it only to clean up behind its program. Where all are shells, the first steers the others.
    return [pid for pid in catching if not _is_shell(pid)][-1:] or catching[:1] or chain


def can_save(pid: int, asked: tuple[str, ...]) -> bool:
    """Return whether a process that outlives the one that was asked, of the command line ``asked``, may yet save."""
    return proctree.catches(pid, _TERM) and not _is_helper(pid, asked)


def _inner(pid: int) -> int | None:
    """Return the child that ``pid`` only waits for, None where it does the work itself."""
    command = proctree.command(pid)
    inside = [child for child in proctree.children(pid) if proctree.alive(child)]
    if _is_shell(pid):
        return max(inside, key=lambda child: (_leads_to_catcher(child), _work(child)), default=None)
    if proctree.catches(pid, _TERM):
        return None  # it passes the signal on, or saves
    programs = [child for child in inside if not _is_helper(child, command) and _leads_to_catcher(child)]
    busiest = max(programs, key=_work, default=None)
    # A training that runs a small server beside it computes more than that does.
    return busiest if busiest is not None and _work(busiest) > proctree.cpu_seconds([pid]) else None


def _leads_to_catcher(pid: int) -> bool:
    return any(proctree.catches(member, _TERM) for member in proctree.tree(pid))


def _work(pid: int) -> float:
    return proctree.cpu_seconds(proctree.tree(pid))


def _is_shell(pid: int) -> bool:
    return proctree.program(pid) in _SHELLS


def _is_helper(pid: int, parent: tuple[str, ...]) -> bool:
    """Return whether a process is a worker: forked without another command, or started by a library for that."""
    command = proctree.command(pid)
    return command == parent or any(word in " ".join(map(_short, command)) for word in _HELPERS)


def _short(word: str) -> str:
    # The names of folders say nothing of a program.
    return Path(word).name if word.startswith("/") else word
