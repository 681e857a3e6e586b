"""The thread that keeps a store of objects up to date while the training goes on."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mlflow_hooks.checkpoints import pause_after
from mlflow_hooks.interruption import Ownership
from mlflow_hooks.mirror import Mirror, ReplacedError
from mlflow_hooks.state_folder import report

LEAST_COMMIT_S: Final = 2.0
MOST_COMMIT_S: Final = 30.0
_COMMIT_PART: Final = 0.01
"""Points are committed this part of the attempt's age apart, within the bounds above: a store takes money for requests,
and MLflow gets only points that it holds."""
CHECKPOINT_S: Final = 10.0
LONGEST_PAUSE_S: Final = 30.0
_TOLD_AGAIN_S: Final = 600.0


class Uploads(threading.Thread):
    """Commits points every few seconds, and the newest checkpoint now and then, or when asked.

    Args:
        mirror: the trial's, taken over.
        owner: learns it where another attempt has taken the trial over.
        newest: returns the folder of the newest checkpoint on this machine, None without any.
        grace_s: seconds between SIGTERM and SIGKILL.
    """

    def __init__(self, mirror: Mirror, owner: Ownership, newest: Callable[[], Path | None], grace_s: float) -> None:
        super().__init__(name="mlflow-hooks-uploads", daemon=True)
        self._mirror = mirror
        self._owner = owner
        self._newest = newest
        self._grace_s = grace_s
        self._began_at = time.monotonic()
        self._checkpoint_at = self._began_at + CHECKPOINT_S
        self._asked = threading.Event()
        self._wanted = self._done = 0
        self._settled = threading.Condition()
        self._failures = 0
        self._told_at = 0.0

    def run(self) -> None:
        """Commit until another attempt owns the trial."""
        while not self._owner.lost:
            self._asked.wait(self._pause_s())
            self._asked.clear()
            wanted = self._wanted
            try:
                self._commit(whole=wanted > self._done)
            except ReplacedError:
                self._owner.lost = True
                return
            except Exception as error:  # noqa: BLE001 - whatever a store's library raises must not reach the training
                self._note_failure(error)
            else:
                self._note_success(wanted)

    def settle(self, within_s: float) -> bool:
        """Commit all that there is by now, and return whether the store holds it within so many seconds."""
        give_up = time.monotonic() + within_s
        with self._settled:
            self._wanted += 1
            wanted = self._wanted
        while not self._owner.lost and self.is_alive():
            self._asked.set()
            with self._settled:
                if self._done >= wanted:
                    return True
                left = give_up - time.monotonic()
                if left <= 0:
                    return False
                self._settled.wait(min(left, 1.0))
        return False

    def _pause_s(self) -> float:
        if self._failures:
            return float(min(2.0 ** min(self._failures, 10), LONGEST_PAUSE_S))
        age = time.monotonic() - self._began_at
        return min(max(LEAST_COMMIT_S, _COMMIT_PART * age), MOST_COMMIT_S)

    def _commit(self, *, whole: bool) -> None:
        newest, now = self._newest(), time.monotonic()
        if newest is None or self._mirror.holds(newest) or not (whole or now >= self._checkpoint_at):
            self._mirror.commit()
            return
        self._mirror.commit(newest)
        took = time.monotonic() - now
        self._checkpoint_at = now + took + pause_after(took, CHECKPOINT_S, self._grace_s)

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        now = time.monotonic()
        if self._failures == 1 or now >= self._told_at + _TOLD_AGAIN_S:
            report(f"the store of checkpoints does not take them ({error}); the training goes on, and they come later")
            self._told_at = now

    def _note_success(self, wanted: int) -> None:
        if self._failures:
            report("the store of checkpoints takes them again")
        self._failures = 0
        with self._settled:
            self._done = wanted
            self._settled.notify_all()
