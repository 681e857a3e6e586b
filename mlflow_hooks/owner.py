"""Fencing: the newest attempt of a trial owns its state folder, every older one must let go."""

from pathlib import Path

from mlflow_hooks.files import write_whole


class Ownership:
    """The claim of one attempt on the state folder, by a token in the file ``owner``."""

    def __init__(self, folder: Path, token: str) -> None:
        self._path = folder / "owner"
        self._token = token
        self._seen: tuple[int, int] | None = None
        self.lost = False

    def claim(self) -> None:
        """Take the folder over from whichever attempt had it."""
        write_whole(self._path, self._token)

    def held(self) -> bool:
        """Return whether the folder is still ours; once lost it stays lost.

        Asks the file system each time and reads the file only when it was replaced, so it is
        cheap enough to ask before every write.
        """
        if not self.lost:
            self.lost = not self._still_ours()
        return not self.lost

    def _still_ours(self) -> bool:
        try:
            stat = self._path.stat()
            mark = (stat.st_ino, stat.st_mtime_ns)
            if mark != self._seen and self._path.read_text() != self._token:
                return False
        except FileNotFoundError:
            return False
        except OSError:
            return True  # a file system that stutters is not another attempt
        self._seen = mark
        return True
