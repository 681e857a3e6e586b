"""Where the workers of one attempt leave words for each other: in a folder that all see, or in a store of objects."""

import shutil
import tempfile
from pathlib import Path
from typing import Final, Protocol

from mlflow_hooks.objects import ObjectStore, StoreError
from mlflow_hooks.state_folder import write_whole

GANG: Final = "gang"
"""What all words of a trial's gangs lie below."""


class MeetingPlace(Protocol):
    """Small texts by name, each written once by one worker.

    Every method raises ``OSError`` or ``StoreError`` where the place is away, and may be called again.
    """

    @property
    def where(self) -> str:
        """The place, in words for people."""
        ...

    @property
    def look_again_s(self) -> float:
        """Seconds until it is worth another look."""
        ...

    def tell(self, name: str, word: str) -> None:
        """Leave a word."""
        ...

    def names(self) -> set[str]:
        """Return the names of the words that are there."""
        ...

    def word(self, name: str) -> str:
        """Return a word that is there."""
        ...

    def forget_others(self) -> None:
        """Remove what earlier attempts left."""
        ...


class FolderMeeting:
    """A folder that all workers see.

    Args:
        folder: the trial's.
        attempt: token of the attempt.
    """

    look_again_s = 0.05

    def __init__(self, folder: Path, attempt: str) -> None:
        self.folder = folder / GANG / attempt

    @property
    def where(self) -> str:
        """The folder."""
        return str(self.folder)

    def tell(self, name: str, word: str) -> None:
        """Write a file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / name, word)

    def names(self) -> set[str]:
        """List the folder, since a network file system may remember for long that a single file was missing."""
        return {path.name for path in self.folder.glob("*")}

    def word(self, name: str) -> str:
        """Read a file."""
        return (self.folder / name).read_text()

    def forget_others(self) -> None:
        """Remove the folders of earlier attempts."""
        for old in self.folder.parent.glob("*"):
            if old != self.folder:
                shutil.rmtree(old, ignore_errors=True)


class StoreMeeting:
    """Objects of a store, for workers that share no disk.

    Args:
        store: of objects.
        trial: the trial's id.
        attempt: token of the attempt.
    """

    look_again_s = 1.0

    def __init__(self, store: ObjectStore, trial: str, attempt: str) -> None:
        self._store = store
        self._all = f"{trial}/{GANG}/"
        self._ours = f"{self._all}{attempt}/"

    @property
    def where(self) -> str:
        """The prefix of the objects."""
        return f"{self._ours} of the store"

    def tell(self, name: str, word: str) -> None:
        """Write an object. One that is there already is ours, by a request whose answer was lost."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(word)
            self._store.upload(self._ours + name, path)

    def names(self) -> set[str]:
        """List the objects."""
        return {found.key.removeprefix(self._ours) for found in self._store.list(self._ours)}

    def word(self, name: str) -> str:
        """Read an object."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            self._store.download(self._ours + name, path)
            try:
                return path.read_text()
            except UnicodeDecodeError as error:
                message = f"{self._ours}{name} is no word of a worker ({error})"
                raise StoreError(message) from error

    def forget_others(self) -> None:
        """Remove the objects of earlier attempts."""
        old = [found.key for found in self._store.list(self._all) if not found.key.startswith(self._ours)]
        self._store.remove(old)
