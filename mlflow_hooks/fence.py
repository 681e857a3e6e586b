"""Lets one attempt at a time write a trial's points, also where two are alive and see the files of a folder late.

A shared file system may show what another node wrote only after many seconds. But it shows what stands in a file as
soon as that file is locked, and keeps what was written to one when its lock is given back. So the newest attempt writes
its name into a file that all of them lock, beside the points themselves.
"""

import errno
import fcntl
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mlflow_hooks.no_links import open_file
from mlflow_hooks.state_folder import report

_FILE: Final = "points.lock"
_LOCK_S: Final = 2.0
_LOOK_AGAIN_S: Final = 0.005


class Fence:
    """The claim of one attempt to write.

    An attempt waits a moment for a lock, and only once: a process that holds it for longer was stopped in the middle.
    A file system without locks, or without room for the name, is used without.

    Args:
        folder: of the trial.
        points: descriptor of the file with its points.
    """

    def __init__(self, folder: Path, points: int) -> None:
        self._points = points
        self._handle = -1
        self._name = b""
        try:
            self._handle = open_file(folder / _FILE, os.O_RDWR | os.O_CREAT, 0o644)
            self._name = uuid.uuid4().hex.encode()
        except OSError as error:
            self._say_without(error)
        self._patience_s = _LOCK_S
        # To the system, all threads of a process are one holder of its locks.
        self._threads = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Keep all earlier attempts from writing: for good, and from the beginning of this context."""
        with self._threads, self._locked(self._points), self._locked(self._handle):
            try:
                written = os.pwrite(self._handle, self._name, 0) if self._name else 0
            except OSError as error:
                self._say_without(error)
                self._name = b""
            else:
                # Half a name would be nobody's, and this attempt would take itself for replaced.
                if written < len(self._name):
                    self._say_without(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
                    self._name = b""
            if self._name:
                with suppress(OSError):
                    os.fsync(self._handle)
            yield

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Give whether no later attempt has taken the fence; none does while the context lasts."""
        with self._threads, self._locked(self._points), self._locked(self._handle):
            yield self._is_ours()

    def close(self) -> None:
        """Give the file back; the claim stays."""
        if self._handle >= 0:
            os.close(self._handle)

    @staticmethod
    def _say_without(error: OSError) -> None:
        report(f"cannot keep an attempt that was replaced from logging on ({error})")

    def _is_ours(self) -> bool:
        if not self._name:
            return True
        try:
            return os.pread(self._handle, len(self._name), 0) == self._name
        except OSError:
            return True  # a file system that stutters is not another attempt

    @contextmanager
    def _locked(self, handle: int) -> Iterator[None]:
        held, give_up = False, time.monotonic() + self._patience_s
        while not held and handle >= 0:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                if time.monotonic() > give_up:
                    self._patience_s = 0.0  # a process that was stopped may stay so for hours
                    break
                time.sleep(_LOOK_AGAIN_S)
            except OSError:
                break
        try:
            yield
        finally:
            if held:
                fcntl.flock(handle, fcntl.LOCK_UN)
