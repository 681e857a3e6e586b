"""A bound on the memory of a command with all that it starts: a control group that bounds nothing else.

The command's processes are in a group below the one with the bound. So ``specon run``, which makes groups for its
trials beside its own, makes them below that bound, too.
"""

import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from controllers.core.errors import SpeconError
from controllers.worlds.local.shares.cgroup_files import GroupFolder, Mounts

_COMMAND: Final = Path("command")
_HERE: Final = Path()
_JOIN: Final = 'echo $$ > "$0" && exec "$@"'
_REMOVAL_S: Final = 10.0


class BoundError(SpeconError):
    """Memory cannot be bounded here."""


class MemoryBound:
    """Bounds what joins it to ``most`` bytes while its context lasts.

    Raises:
        BoundError: No control group for memory may be made here.
    """

    def __init__(self, name: str, most: int, mounts: Mounts | None = None) -> None:
        self._name, self._most, self._mounts = name, most, mounts or Mounts.here()

    def __enter__(self) -> Self:
        refusals = []
        for place, file in self._places():
            self._group = GroupFolder(place / self._name)
            try:
                self._group.make(_HERE)
                self._group.write(_HERE, file, str(self._most))
                self._group.make(_COMMAND)
                subprocess.run(self.joined(["true"]), check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError) as error:
                refusals.append(str(error))
                self._remove()
            else:
                return self
        told = "; ".join(refusals) or "none is mounted"
        message = f"no control group can bound memory here: {told}"
        raise BoundError(message)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def joined(self, command: list[str]) -> list[str]:
        """Return ``command`` as it begins within the bound."""
        return ["/bin/sh", "-c", _JOIN, str(self._group.root / _COMMAND / "cgroup.procs"), *command]

    def _places(self) -> list[tuple[Path, str]]:
        """Return where a group may be made, the innermost first, and the file that bounds one there."""
        old = self._mounts.v1("memory")
        if old is not None:
            return [(old, "memory.limit_in_bytes")]
        # Elsewhere a file of this name would be refused, or be no bound.
        return [(place, "memory.max") for place in self._mounts.v2() if _passes_memory_on(place)]

    def _remove(self) -> None:
        deadline = time.monotonic() + _REMOVAL_S
        while not self._group.drop(_HERE):
            # A killed process keeps its group busy until the kernel has taken it down.
            if time.monotonic() > deadline:
                message = f"processes {sorted(self._group.pids(_HERE))} do not leave the group {self._group.root}"
                raise BoundError(message)
            time.sleep(0.01)


def _passes_memory_on(place: Path) -> bool:
    return "memory" in (place / "cgroup.subtree_control").read_text().split()
