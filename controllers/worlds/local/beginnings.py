"""Where in a trial's log its attempts began without telling that they go on: what they print tells whether they did."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from mlflow_hooks.foreign_files import small_text
from mlflow_hooks.state_folder import write_whole

_BEGAN: Final = "printed-from"
"""A line for each such attempt but the first: how many bytes the log had when it began."""


def note_beginning(folder: Path, log: Path) -> None:
    """Note that the attempt about to start of the trial in ``folder`` may begin from nothing; it adds to ``log``.

    On a disk that takes nothing, what was printed before counts too: that is no reason to train nothing.
    """
    if log.exists():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            known = dict.fromkeys((*beginnings(folder), log.stat().st_size))
            write_whole(folder / _BEGAN, "".join(f"{offset}\n" for offset in known))


def beginnings(folder: Path) -> tuple[int, ...]:
    """Return how many bytes its log had as each such attempt of the trial in ``folder`` began."""
    try:
        return tuple(int(line) for line in small_text(folder / _BEGAN).split())
    except (OSError, ValueError):
        return ()
