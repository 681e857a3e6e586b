"""A checkpoint on its way to the disk: what belongs into the step is done, and the rest may be done by a thread."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlflow_hooks.checkpoints import Checkpoints, MadeAt
from mlflow_hooks.states import Content, State


class CopyError(Exception):
    """A state could not be copied: mostly there is no memory for it."""


@dataclass(frozen=True)
class Draft:
    """A checkpoint in a folder that nobody takes for one yet.

    ``copied`` are the contents that are still to be written, by the state's name; ``states`` are the names of all.
    """

    checkpoints: Checkpoints
    made_at: MadeAt
    folder: Path
    states: tuple[str, ...]
    copied: Mapping[str, Content]

    @classmethod
    def of(
        cls,
        states: Mapping[str, State],
        contents: Mapping[str, Content],
        checkpoints: Checkpoints,
        made_at: MadeAt,
        *,
        copies: bool,
    ) -> "Draft":
        """Write the states, but for ``contents`` where it ``copies`` these.

        Whatever a state or the disk raises passes through.

        Raises:
            CopyError: a state cannot be copied.
        """
        folder = checkpoints.begin(made_at.step)
        for name, state in states.items():
            (folder / name).mkdir()
            if name not in contents:
                state.save(folder / name)
            elif copies:
                _copy(contents[name])
            else:
                contents[name].write(folder / name)
        return cls(checkpoints, made_at, folder, tuple(states), contents if copies else {})

    @property
    def nbytes(self) -> int:
        """How many bytes the disk has not got for sure."""
        written = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        return written + sum(content.nbytes for content in self.copied.values())

    def keep(self, allowed: Callable[[], bool]) -> bool:
        """Write the rest, and make a checkpoint of it if that is ``allowed``; return whether it was."""
        for name, content in self.copied.items():
            content.write(self.folder / name)
        return self.checkpoints.keep(self.made_at, self.folder, self.states, allowed)


def _copy(content: Content) -> None:
    try:
        content.copy()
    except (MemoryError, RuntimeError) as error:  # the second is what PyTorch raises without memory
        raise CopyError(str(error)) from error


class Writing(threading.Thread):
    """Keeps a draft while the training goes on.

    Args:
        draft: the checkpoint.
        allowed: asked just before it becomes visible.
        began: when the step began to save, on the monotonic clock.

    Attributes:
        step: the step that the checkpoint goes on with.
        kept: whether it is there.
        error: why it is not, where something failed.
        took_s: seconds from the beginning to the end.
    """

    def __init__(self, draft: Draft, allowed: Callable[[], bool], began: float) -> None:
        # It does not hold up the end of the process, which has waited for it as long as there was time.
        super().__init__(name="mlflow-hooks-checkpoint", daemon=True)
        self._draft: Draft | None = draft
        self._allowed = allowed
        self.began = began
        self.step = draft.made_at.step
        self.kept = False
        self.error: Exception | None = None
        self.took_s = math.inf

    def run(self) -> None:
        """Keep it, and let the copies go."""
        try:
            if self._draft is not None:
                self.kept = self._draft.keep(self._allowed)
        except Exception as error:  # noqa: BLE001 - the training's own thread hears of it
            self.error = error
        finally:
            self._draft = None
            self.took_s = time.monotonic() - self.began
