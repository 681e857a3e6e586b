"""One attempt as a tree of processes: who of it is asked to leave, when it is over, and with which exit code."""

import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from controllers.worlds.local.processes import proctree
from controllers.worlds.local.processes.messages import Exit
from controllers.worlds.local.processes.whom_to_ask import can_save, launched_by, who_trains
from mlflow_hooks.contract import EXIT_MIGRATE
from mlflow_hooks.presence import presences

_TERM: Final = signal.SIGTERM


@dataclass(frozen=True, slots=True)
class AttemptId:
    """What is kept of an attempt that was started: its key, its first process, and where its hooks say who trains.

    ``started`` tells when the first process began, in the unit of ``proctree.start_time``.
    """

    key: str
    root: int
    started: int
    folder: str = ""
    attempt: str = ""

    def packed(self) -> dict[str, Any]:
        """Return it as JSON's own types."""
        return asdict(self)

    @classmethod
    def unpacked(cls, packed: Mapping[str, Any]) -> "AttemptId":
        """Return what ``packed`` was made of."""
        return cls(**packed)


class AttemptTree:
    """The tree under the first process of an attempt, which leads a session and a process group of its own.

    Once the attempt was asked to leave, the end of the first process is not that of the attempt: a process that can
    still save goes on. Its orphans become children of the process that holds this tree, and the first process stays a
    zombie until all is over, so that nobody else gets its number.
    """

    def __init__(self, known: AttemptId) -> None:
        self.known = known
        self._members: dict[int, int | None] = {}
        self._asked: dict[int, int | None] = {}
        self._asked_command: tuple[str, ...] = ()
        self._caught = False
        self._said_so = False
        self._code: int | None = None
        self._codes: dict[int, int] = {}

    @property
    def asked(self) -> bool:
        """Whether it was asked to leave."""
        return bool(self._asked)

    @property
    def lingers(self) -> bool:
        """Whether its first process has ended, and others of it have not."""
        return self._code is not None

    @property
    def alive(self) -> bool:
        """Whether its first process runs, asked from a process that is not its parent."""
        return proctree.start_time(self.known.root) == self.known.started and proctree.alive(self.known.root)

    @property
    def over(self) -> bool:
        """Whether its first process has ended, and nobody is left who has to save."""
        # One that saved and left was the training: processes that outlive it only helped.
        saved = EXIT_MIGRATE in (self._code, *self._codes.values())
        return self._code is not None and (saved or not any(map(self._may_save, self._living())))

    def ask(self) -> None:
        """Ask the attempt to leave: one process gets SIGTERM, and all go on that were stopped.

        Asked again, only a process gets the signal that says since then that it trains.
        """
        self.look()
        trains = self._who_trains()
        if trains is not None and trains not in self._asked:
            self._send([trains])
            self._said_so = self._caught = True
        elif not self._asked:
            chosen = launched_by(self.known.root)
            self._caught = proctree.catches(chosen[-1], _TERM)
            self._send(chosen)
        self._send_all(signal.SIGCONT)

    def kill(self) -> None:
        """Kill every process of it."""
        self.look()
        self._send_all(signal.SIGKILL)

    def look(self) -> None:
        """Take note of who belongs to it by now."""
        known = [*self._first(), *self._living()]
        if self._has_its_number:
            known += proctree.strays(self.known.root)
        for root in known:
            self._members |= {pid: proctree.start_time(pid) for pid in proctree.tree(root) if pid not in self._members}

    def owns(self, orphan: int) -> bool:
        """Return whether a process whose parent has ended belongs to this attempt, whose first process has ended too.

        That may have ended a moment ago, and nobody has taken note of it.
        """
        if self._code is None and self.alive:
            return False
        if proctree.session(orphan) == self.known.root:
            self._members.setdefault(orphan, proctree.start_time(orphan))
        return orphan in self._members and proctree.start_time(orphan) == self._members[orphan]

    def first_ended(self, code: int) -> None:
        """Take note that the first process has ended with ``code``, and ask those behind it that it told nothing."""
        if self._code is not None:
            return
        self._code = code
        if self._asked and not self._caught:
            self._send([pid for pid in self._living() if self._may_save(pid) and pid not in self._asked])

    def other_ended(self, pid: int, code: int) -> None:
        """Take note that an orphan of it has ended with ``code``."""
        self._codes[pid] = code

    def exit(self) -> Exit:
        """Return its end: by the process that was asked to leave, where its exit code is known."""
        code = 0 if self._code is None else self._code
        behind = bool(self._asked) and self.known.root not in self._asked
        heard = [self._codes[pid] for pid in self._asked if pid in self._codes]
        if EXIT_MIGRATE in self._codes.values():
            code, behind = EXIT_MIGRATE, False
        elif behind and heard:
            code, behind = heard[-1], False
        return Exit(self.known.key, self.known.root, code, asked=self.asked, behind=behind)

    def _who_trains(self) -> int | None:
        if not self.known.folder:
            return None
        return who_trains(self._members, presences(Path(self.known.folder), self.known.attempt))

    def _send(self, pids: list[int]) -> None:
        for pid in pids:
            self._asked[pid] = proctree.start_time(pid)
            self._asked_command = proctree.command(pid)
            proctree.send([pid], _TERM)

    def _send_all(self, number: signal.Signals) -> None:
        if self._has_its_number:
            proctree.send_group(self.known.root, number)
        proctree.send(self._living(), number)

    @property
    def _has_its_number(self) -> bool:
        """Whether the number of the first process means it, or its session: nobody else gets it while one is there."""
        return bool(self._first()) or any(proctree.session(pid) == self.known.root for pid in self._living())

    def _first(self) -> list[int]:
        """Return the first process, as long as its number means that one."""
        return [self.known.root] if proctree.start_time(self.known.root) == self.known.started else []

    def _living(self) -> list[int]:
        return [
            pid
            for pid, started in self._members.items()
            if proctree.start_time(pid) == started and started is not None and proctree.alive(pid)
        ]

    def _may_save(self, pid: int) -> bool:
        """Return whether the attempt is not over while ``pid`` lives."""
        if pid in self._asked:
            return True
        # Where the hooks say who trains, processes that outlive that one only helped it.
        return bool(self._asked) and not self._said_so and can_save(pid, self._asked_command)
