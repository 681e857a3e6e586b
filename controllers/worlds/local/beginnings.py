"""Where in a trial's log its training began: what attempts printed before it began again does not count."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from mlflow_hooks.foreign_files import small_text
from mlflow_hooks.state_folder import write_whole

_BEGAN: Final = "printed-from"


def note_beginning(folder: Path, log: Path) -> None:
    """Note that the attempt of the trial in ``folder`` that is about to start begins from nothing; it adds to ``log``.

    On a disk that takes nothing, what was printed before counts too: that is no reason to train nothing.
    """
    if log.exists():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / _BEGAN, str(log.stat().st_size))


def beginning(folder: Path) -> int:
    """Return how many bytes of its log the trial in ``folder`` had when its training began."""
    try:
        return int(small_text(folder / _BEGAN))
    except (OSError, ValueError):
        return 0
