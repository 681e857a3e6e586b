"""Which process has a trial: one of each attempt, also where several see the same environment."""

import fcntl
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from mlflow_hooks.foreign_json import parsed
from mlflow_hooks.no_links import open_file

_FILE: Final = "holder.json"
_MOST_BYTES: Final = 4096
_PATIENCE_S: Final = 0.2
"""How long a process that has just locked the file may take to write its name."""
_LOOK_AGAIN_S: Final = 0.02


class Holder:
    """This process's hold on one attempt of a trial: a lock that ends with the process, on a file with its name.

    Locks of this kind (``fcntl.lockf``) belong to a process: a forked child does not inherit them, and the system gives
    them back however the process ends. A disk that fails, or one without locks, is used without.

    Args:
        folder: of the trial.
        attempt: token of the attempt.

    Attributes:
        other: the process of this attempt that has the trial now, None where there is none.
        trained: whether another process of this attempt has trained the trial to a good end before.
    """

    def __init__(self, folder: Path, attempt: str) -> None:
        self._attempt = attempt
        self._handle = -1
        self.other: int | None = None
        self.trained = False
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            self._handle = open_file(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o644)
            self._take()

    def _take(self) -> None:
        give_up = time.monotonic() + _PATIENCE_S
        while not self._locked():
            told = self._told()
            if told.get("attempt") == self._attempt:
                self.other = int(told.get("pid", 0))
                return
            if time.monotonic() > give_up:
                return  # an older attempt, which will see that it was replaced
            time.sleep(_LOOK_AGAIN_S)
        told = self._told()
        self.trained = told.get("attempt") == self._attempt and told.get("trained") is True
        self._tell(trained=self.trained)

    def _locked(self) -> bool:
        try:
            fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # which of the two is up to the system: lockf(3)
            return False
        return True

    def _told(self) -> dict[str, Any]:
        try:
            told = parsed(os.pread(self._handle, _MOST_BYTES, 0))
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}

    def _tell(self, *, trained: bool) -> None:
        word = json.dumps({"attempt": self._attempt, "pid": os.getpid(), "trained": trained}).encode()
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, word, 0)

    def give_back(self, *, trained: bool) -> None:
        """Let the trial go, and tell later processes of this attempt whether it is trained."""
        if self._handle < 0:
            return
        with suppress(OSError):
            if trained and not self.trained:
                self._tell(trained=True)
        os.close(self._handle)
        self._handle = -1
