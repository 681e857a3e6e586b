"""Control groups are folders; their settings are files in them."""

import errno
from collections.abc import Iterator
from pathlib import Path


class GroupFolder:
    """A control group and the ones below it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def make(self, path: Path) -> None:
        """Create a group."""
        (self.root / path).mkdir()

    def write(self, path: Path, name: str, value: str) -> None:
        """Change a setting of a group."""
        (self.root / path / name).write_text(value)

    def read(self, path: Path, name: str) -> str:
        """Return a setting of a group."""
        return (self.root / path / name).read_text()

    def pids(self, path: Path) -> set[int]:
        """Return the processes in a group and below it."""
        return {int(pid) for group in self._below(self.root / path) for pid in _words_if_there(group / "cgroup.procs")}

    def drop(self, path: Path) -> bool:
        """Remove a group and the ones below it; False while one is in use."""
        try:
            for group in self._below(self.root / path):
                self._drop_one(group)
        except OSError as error:
            if error.errno in {errno.EBUSY, errno.ENOTEMPTY}:
                return False
            raise
        return True

    def _drop_one(self, group: Path) -> None:
        group.rmdir()

    def _below(self, group: Path) -> Iterator[Path]:
        """Yield the groups below and then the group itself, if it is there."""
        if group.is_dir():
            for child in sorted(group.iterdir()):
                if child.is_dir():
                    yield from self._below(child)
            yield group


def _words_if_there(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
