"""Where this machine's control groups are mounted and which of them this process is in."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mounts:
    """What ``/proc/mounts`` and ``/proc/self/cgroup`` said."""

    mounts: str
    own: str

    @classmethod
    def here(cls) -> "Mounts":
        """Read them."""
        return cls(Path("/proc/mounts").read_text(), Path("/proc/self/cgroup").read_text())

    def v1(self, controller: str) -> Path | None:
        """Return this process's group in the version 1 hierarchy of ``controller``, None without one."""
        for place, kind, options in self._mounted():
            if kind == "cgroup" and controller in options:
                return _inside(place, self._own_path(controller))
        return None

    def v2(self) -> tuple[Path, ...]:
        """Return this process's version 2 group and the groups above it, as far up as is mounted."""
        for place, kind, _ in self._mounted():
            if kind == "cgroup2":
                own = _inside(place, self._own_path(""))
                return (own, *(above for above in own.parents if above.is_relative_to(place)))
        return ()

    def _mounted(self) -> Iterator[tuple[Path, str, list[str]]]:
        for line in self.mounts.splitlines():
            _, place, kind, options, *_ = line.split()
            # The kernel writes blanks in paths as octal escapes.
            yield Path(place.encode().decode("unicode_escape")), kind, options.split(",")

    def _own_path(self, controller: str) -> str:
        for line in self.own.splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return path
        return "/"


def _inside(mount: Path, path: str) -> Path:
    """Return ``path`` below ``mount``; in a container it may name what only the host can see."""
    own = mount / path.lstrip("/")
    return own if own.is_dir() and ".." not in own.parts else mount
