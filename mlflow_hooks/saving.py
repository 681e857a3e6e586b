"""What a trial tracks, where it goes on, and when it saves."""

import time
from pathlib import Path
from typing import Final

from mlflow_hooks.checkpoints import Checkpoint, Checkpoints
from mlflow_hooks.errors import StateMismatchError
from mlflow_hooks.files import report
from mlflow_hooks.journal import Journal
from mlflow_hooks.metrics import Metrics
from mlflow_hooks.owner import Ownership
from mlflow_hooks.states import State

SAVING_SHARE: Final = 0.05
"""Greatest share of the time that periodic checkpoints take."""


class Saving:
    """The tracked states of one attempt and their checkpoints.

    ``found`` is the checkpoint that the attempt goes on from, if there is one.
    """

    def __init__(self, checkpoints: Checkpoints, owner: Ownership, every_s: float) -> None:
        self._checkpoints = checkpoints
        self._owner = owner
        self._every_s = every_s
        self._states: dict[str, State] = {}
        self.found: Checkpoint | None = checkpoints.newest()
        checkpoints.clean(self.found)
        self._saved_step = self.found.step if self.found else 0
        self._due_at = time.monotonic() + every_s
        self._warned = False

    def track(self, state: State, name: str | None) -> None:
        """Track ``state`` and give it back what the checkpoint holds under its name."""
        name = name or f"state-{len(self._states)}"
        if self.found and name in self.found.states:
            state.load(self.found.folder / name)
        self._states[name] = state

    def check_complete(self) -> None:
        """Make sure that all of the checkpoint was taken back.

        Raises:
            StateMismatchError: the script tracks other states than the checkpoint holds.
        """
        if self.found and set(self.found.states) != self._states.keys():
            tracked, held = sorted(self._states), sorted(self.found.states)
            message = f"{self.found.folder} holds the states {held}, but the script tracks {tracked}"
            raise StateMismatchError(message)

    def due(self) -> bool:
        """Return whether it is time for a periodic checkpoint."""
        return time.monotonic() >= self._due_at

    def save(self, step: int, journal: Journal, metrics: Metrics) -> None:
        """Keep all states as they are before ``step``; a disk that fails is reported, not raised."""
        began = time.monotonic()
        if step > self._saved_step and self._worth_saving():
            journal.sync()  # the points up to a checkpoint must outlive whatever the checkpoint outlives
            try:
                if self._checkpoints.save(step, self._write, metrics.cpu_seconds(), self._owner.held):
                    self._saved_step = step
            except OSError as error:
                report(f"no checkpoint at step {step} ({error}); the one before stays")
        now = time.monotonic()
        self._due_at = now + max(self._every_s, (now - began) / SAVING_SHARE)

    def _worth_saving(self) -> bool:
        if not self._states and not self._warned:
            report("nothing is tracked, so an interrupted training starts again at step 0")
            self._warned = True
        return bool(self._states) and self._owner.held()

    def _write(self, folder: Path) -> tuple[str, ...]:
        for name, state in self._states.items():
            (folder / name).mkdir()
            state.save(folder / name)
        return tuple(self._states)
